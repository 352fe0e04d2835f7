//! A dump of the flight recorder: the rings as they are now, and the names that their events lack.

use std::collections::BTreeMap;

use super::interrupts::irq_names;
use crate::{
    analysis::flight::{cut, threads},
    clocks, host,
    kernel::{self, FlightRings},
    model::{Autopsy, ClockOffsets, DumpReason, Flight, FlightRing, FlightThread},
    tasks,
};

/// What the rings hold of the time from the first to the second reading of the clock, which is now,
/// with those waits marked that ended in it.
pub(super) fn dump(
    rings: &FlightRings,
    (from_ns, at_ns): (u64, u64),
    reason: DumpReason,
    mut marked: Vec<Autopsy>,
) -> Flight {
    let rings = rings.copy();
    let cpus: Vec<_> = rings
        .into_iter()
        .filter(has_run)
        .map(|ring| cut(ring, from_ns, at_ns))
        .collect();
    marked.retain(|wait| wait.at_ns.saturating_add(wait.wait_ns) >= from_ns);
    let mut threads = threads(&cpus);
    // Inside another pid namespace its /proc has other ids.
    if kernel::is_init_pid_namespace() {
        find_processes(&mut threads);
    }
    let uname = rustix::system::uname();
    Flight {
        reason,
        from_ns,
        at_ns,
        processes: process_names(&threads),
        interrupts: irq_names(),
        cpus,
        threads,
        marked,
        clocks: clock_offsets(),
        kernel: uname.release().to_string_lossy().into_owned(),
        arch: uname.machine().to_string_lossy().into_owned(),
    }
}

/// CPUs that may come to be have rings too.
fn has_run(ring: &FlightRing) -> bool {
    !ring.records.is_empty() || ring.is_overwritten || ring.n_torn > 0
}

/// A thread that was never switched out within the dump still runs or waits: it can be looked up.
fn find_processes(threads: &mut BTreeMap<u32, FlightThread>) {
    for (tid, thread) in threads {
        if *tid != 0 && thread.tgid.is_none() {
            thread.tgid = tasks::tgid_of(*tid);
        }
    }
}

/// Names of the processes' leaders, which need not occur themselves.
fn process_names(threads: &BTreeMap<u32, FlightThread>) -> BTreeMap<u32, Vec<u8>> {
    let members = threads.iter().filter_map(|(tid, thread)| {
        let tgid = thread.tgid?;
        (*tid != 0).then_some((tgid, thread))
    });
    let mut names = BTreeMap::new();
    for (tgid, member) in members {
        names.entry(tgid).or_insert_with(|| {
            let leader = threads.get(&tgid).map(|leader| leader.comm.to_vec());
            leader
                .or_else(|| leader_name(tgid))
                .unwrap_or_else(|| member.comm.to_vec())
        });
    }
    names
}

fn leader_name(tgid: u32) -> Option<Vec<u8>> {
    if !kernel::is_init_pid_namespace() {
        return None;
    }
    tasks::comm(tgid)
}

fn clock_offsets() -> ClockOffsets {
    ClockOffsets {
        boottime_ns: clocks::suspended_ns(),
        realtime_ns: clocks::ahead_ns(host::wall_clock_ns),
    }
}
