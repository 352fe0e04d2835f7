//! The only room that knows aya: type information, feature detection, the loaded object, its maps.

mod arch;
pub mod btf;
mod btf_reader;
mod bytes;
mod feature;
mod features;
mod flight;
mod functions;
mod globals;
mod idle;
mod load;
mod loaded;
mod mapped;
mod object;
mod pool;
mod prepare;
mod programs;
mod record;
mod resched;
mod rights;
mod symbols;
mod trace;
mod tracepoints;
mod whole;

pub use feature::{Availability, Feature};
pub use features::{Features, KERNEL_PATHS};
pub use flight::{FlightRings, FlightSize};
pub use functions::Functions;
pub use idle::IdleMeter;
pub use loaded::{Kernel, RunTotals};
pub use object::{LoadOptions, Selection};
pub use pool::{HistPool, buckets};
pub use prepare::{Loader, prepare};
pub use programs::{CgroupNeed, Needs};
pub use record::Record;
pub use rights::Rights;
pub use trace::MalformedRecord;

use std::os::fd::OwnedFd;

use aya::sys::{Stats, enable_stats};

/// Inode of the initial pid namespace (`PROC_PID_INIT_INO`).
const INIT_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Whether this process sees all tasks, by the ids that the kernel side sees.
#[must_use]
pub fn is_init_pid_namespace() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() == INIT_PID_NAMESPACE)
}

/// Whether `CLOCK_MONOTONIC` reads here as the kernel side reads it: a time namespace may shift it.
fn is_clock_the_kernels() -> bool {
    // Without the file there are no time namespaces.
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let mut monotonic = offsets
        .lines()
        .filter_map(|line| line.strip_prefix("monotonic"));
    monotonic.all(|numbers| numbers.split_whitespace().all(|number| number == "0"))
}

/// Switches the kernel's BPF statistics on for as long as the result is open; none without the right.
#[must_use]
pub fn switch_statistics_on() -> Option<OwnedFd> {
    enable_stats(Stats::RunTime).ok()
}

/// The kernel's release, as in `uname -r`.
#[must_use]
pub fn release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}
