//! Who took the CPU, and why.

use anyhow::{Result, ensure};
use latency_common::counters::N_PREEMPTORS;

use super::share;
use crate::report::{Preemptor, Stats};

/// Every wait that a task's loss of the CPU began names who took it. Where more names are needed
/// than there is room for, the last row holds the rest.
pub fn preemptors_are_named(stats: &Stats) -> Result<()> {
    let all = &stats.preemptors;
    let sum = |is_it: &dyn Fn(&&Preemptor) -> bool| -> u64 {
        all.iter().filter(is_it).map(|by| by.count).sum()
    };
    let others = sum(&|by| by.tid == 0);
    // One of the rows may be of a wait that is still open.
    ensure!(
        others == 0 || all.len() >= N_PREEMPTORS - 1,
        "{others} waits have no preemptor of their own though there was room: {all:?}"
    );
    for cause in [
        "wakeup",
        "higher_class",
        "stopper",
        "yield",
        "tick",
        "hrtick",
        "unknown",
    ] {
        let named = sum(&|by| by.cause == cause && by.tid != 0 && !by.comm.is_empty());
        let n = stats.cause(cause).count;
        // The counts of a running task are read one after the other.
        ensure!(
            named <= n + 1 && n <= named + others + 1,
            "{n} waits lost to '{cause}', {named} name who took the CPU, {others} are several: {all:?}"
        );
    }
    // Out of budget a task may give way to nobody.
    let (n, named) = (
        stats.n_lost_cpu() - stats.cause("throttled").count,
        sum(&|_| true),
    );
    ensure!(
        named + 1 >= n,
        "{n} waits after losing the CPU, {named} name who took it: {all:?}"
    );
    Ok(())
}

/// Of two tasks that share a CPU: one loses it to the other by `causes` in at least this share, and
/// every other loss names somebody else. Returns how often it lost it to the other by those.
///
/// Third parties run on any machine: they take the CPU, mostly by a wakeup, and are named. Now and
/// then their wakeup asks for a switch in which the other load is picked.
pub fn loses_to_fellow(stats: &Stats, fellow: u32, causes: &[&str], at_least: f64) -> Result<u64> {
    preemptors_are_named(stats)?;
    let sum = |is_it: &dyn Fn(&&Preemptor) -> bool| -> u64 {
        let rows = stats.preemptors.iter().filter(is_it);
        rows.map(|by| by.count).sum()
    };
    let expected = sum(&|by| by.tid == fellow && causes.contains(&by.cause.as_str()));
    let by_wakeup = sum(&|by| by.tid == fellow && by.cause == "wakeup");
    let third_parties = sum(&|by| by.tid != fellow);
    ensure!(
        by_wakeup <= third_parties + 5,
        "{by_wakeup} losses to the other by wakeups, {third_parties} to third parties"
    );
    let to_fellow = sum(&|by| by.tid == fellow) - by_wakeup;
    let what = format!("losses to the other by {causes:?}");
    share(&what, expected, to_fellow, at_least)?;
    Ok(expected)
}
