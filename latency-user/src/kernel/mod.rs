//! The only room that knows aya: type information, feature detection, the loaded object, its maps.

pub mod btf;
mod features;
mod globals;
mod loaded;
mod pool;
mod programs;
mod resched;
mod rights;
mod symbols;

pub use features::{Availability, Feature, Features};
pub use loaded::{Kernel, LoadOptions, Record, RunTotals, Selection};
pub use pool::buckets;
pub use programs::Needs;
pub use rights::Rights;

/// The kernel's release, as in `uname -r`.
#[must_use]
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}
