//! Whether what a tool says can be true, and what it leaves out.
//!
//! The kernel's wakeup latency is a lower bound of what a probe of timers measures: it begins at the
//! waking that the expired timer causes and ends before the return to user space. So of both
//! distributions the tool's must lie at or above the kernel's, at every value.

mod busy;
mod periodic;
mod reason;
mod throughput;

use latency_common::hist::{bucket_high_ns, bucket_low_ns};

use self::reason::Reasons;
use super::Tool;
use crate::model::{
    Agreement, Buckets, ClaimedSeries, Claims, Reason, ReasonKind, SeenByKernel, SeenThread,
};

/// All there is to say about the claims. The recorder missed so many switches: as many wakeups may be
/// missing.
#[must_use]
pub fn judge(
    tool: Tool,
    claims: &Claims,
    seen: &SeenByKernel,
    missed_switches: u64,
) -> Vec<Reason> {
    let mut reasons = Reasons::default();
    if tool.has_measuring_threads() {
        threads_are_there(claims, seen, &mut reasons);
    }
    for (series, thread) in paired(claims, seen) {
        match tool {
            Tool::Oslat => busy::judge(series, thread, &mut reasons),
            _ => periodic::judge(tool, series, thread, missed_switches, &mut reasons),
        }
    }
    match tool {
        Tool::Hackbench | Tool::PerfBench => throughput::judge(tool, claims, seen, &mut reasons),
        Tool::Schbench => throughput::batches(claims, seen, missed_switches, &mut reasons),
        Tool::Cyclictest | Tool::Oslat | Tool::StressNg => {}
    }
    if claims.holds_cpu_latency {
        let text = "it held /dev/cpu_dma_latency at 0: the CPUs stayed out of deep idle states, for everybody";
        reasons.note("cpu_latency_held", text);
    }
    reasons.into_sorted()
}

/// One word for all reasons.
#[must_use]
pub fn verdict(reasons: &[Reason]) -> Agreement {
    match reasons.iter().map(|reason| reason.kind).max() {
        Some(ReasonKind::Contradiction) => Agreement::Disagrees,
        Some(ReasonKind::Omission) => Agreement::Omits,
        Some(ReasonKind::Note) | None => Agreement::Agrees,
    }
}

fn paired<'a>(
    claims: &'a Claims,
    seen: &'a SeenByKernel,
) -> impl Iterator<Item = (&'a ClaimedSeries, &'a SeenThread)> {
    claims.series.iter().filter_map(|series| {
        let thread = seen
            .threads
            .iter()
            .find(|thread| thread.name == series.name);
        thread.map(|thread| (series, thread))
    })
}

fn threads_are_there(claims: &Claims, seen: &SeenByKernel, reasons: &mut Reasons) {
    let (claimed, found) = (claims.series.len() as u64, seen.threads.len() as u64);
    if claimed == 0 {
        reasons.contradiction(
            "no_figures",
            (0, found, 0),
            "it names no measuring thread".into(),
        );
    } else if found < claimed {
        let text = format!("it has figures of {claimed} threads, of which the kernel saw {found}");
        reasons.contradiction("threads_not_seen", (claimed, found, 0), text);
    }
}

/// Samples that are certainly longer than `ns`.
fn n_longer(buckets: &Buckets, ns: u64) -> u64 {
    let longer = buckets
        .counts
        .iter()
        .filter(|(bucket, _)| bucket_low_ns(usize::from(*bucket)) > ns);
    longer.map(|(_, n)| n).sum::<u64>() + buckets.overflow
}

/// What the longest `n` samples take together at most; none is longer than `max_ns`.
fn longest_ns(buckets: &Buckets, n: u64, max_ns: u64) -> u64 {
    let mut left = n.saturating_sub(buckets.overflow);
    let mut sum_ns = n.min(buckets.overflow).saturating_mul(max_ns);
    for &(bucket, count) in buckets.counts.iter().rev() {
        let longest_ns = bucket_high_ns(usize::from(bucket)).min(max_ns);
        let taken = count.min(left);
        sum_ns = sum_ns.saturating_add(taken.saturating_mul(longest_ns));
        left -= taken;
    }
    sum_ns
}

#[cfg(test)]
mod tests;
