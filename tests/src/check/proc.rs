//! A report against what the kernel says of the loads in `/proc`, read around the recording.

use anyhow::{Result, ensure};

use super::{AROUND_NS, near, without_steal};
use crate::{
    observe::Observed,
    report::{Report, Row},
    truth::Counters,
};

/// All waits of a task against the growth of its schedstat: within 3 % or 5 ms, but for what the
/// recording has in the kernel's account only, since a start or an end was not seen.
pub fn waits_agree(row: &Row, truth: &Counters) -> Result<()> {
    let missing = truth.run_delay_ns.saturating_sub(row.stats.waited_ns);
    let unseen = row.audit.class("unmeasured").kernel_ns;
    near(
        "waits against schedstat",
        row.stats.waited_ns + missing.min(unseen),
        truth.run_delay_ns,
        0.03,
        AROUND_NS,
    )
}

/// The kernel's account as the recording read it, against the growth of the task's schedstat: within
/// 3 % or 5 ms. Holds as well where ours differs, since wakeups preempt.
pub fn kernel_waits_agree(row: &Row, truth: &Counters) -> Result<()> {
    near(
        "the kernel's waits against schedstat",
        row.stats.run_delay_kernel_ns,
        truth.run_delay_ns,
        0.03,
        AROUND_NS,
    )
}

/// Switches of the observed tasks against the growth of their counters: within 1 %, and what the
/// edges of the recording may hold at a switch per microsecond.
pub fn switches_agree_with_proc(observed: &Observed) -> Result<()> {
    let edges = 3 + u64::try_from(observed.edges.as_micros())?;
    for (row, truth) in observed.pairs()? {
        let ours = row.stats.switches;
        for (kind, ours, theirs) in [
            ("voluntary", ours.voluntary, truth.voluntary),
            ("involuntary", ours.involuntary, truth.involuntary),
        ] {
            // The recording began before the counters were read, and ended after.
            ensure!(
                ours + 2 >= theirs && ours <= theirs + theirs / 100 + edges,
                "{kind} switches: ours {ours}, in /proc {theirs}, edges of {:?}",
                observed.edges
            );
        }
    }
    Ok(())
}

/// On-CPU time of all observed tasks against the growth of their schedstats: within 2 % or 5 ms.
///
/// Of tasks that wake each other the kernel charges one with the other's switches, so only their sum
/// can be compared.
pub fn on_cpu_agrees_with_proc(observed: &Observed) -> Result<()> {
    let pairs = observed.pairs()?;
    let ours = pairs.iter().map(|(row, _)| row.stats.on_cpu_ns).sum();
    let theirs = pairs.iter().map(|(_, truth)| truth.exec_ns).sum();
    ran_as_long(&observed.report, ours, theirs)
}

/// Time on a CPU against the growth of a schedstat: within 2 % or 5 ms, steal time apart.
pub fn ran_as_long(report: &Report, ours: u64, theirs: u64) -> Result<()> {
    near(
        "on-CPU time against schedstat",
        without_steal(report, ours, theirs),
        theirs,
        0.02,
        AROUND_NS,
    )
}
