//! Judgements over a report: the sums that must be conserved, and the tolerances they are held to.
//!
//! Shared by the live tests and the VM. Each returns an error that names both figures. Tolerances are
//! those of the issue and of MEASUREMENT.md; a bound without a reason beside it is a bug. Here is
//! what holds for any recording; the two accounts, `/proc` and preemptors have files of their own.

mod accounts;
mod attribution;
mod preemptors;
mod proc;

use anyhow::{Result, ensure};

pub use self::{accounts::*, attribution::*, preemptors::*, proc::*};
use crate::report::{Report, Stats, WaitStats};

/// What one wait may be off: the events are not at the very place of the kernel's clock reads.
const PER_WAIT_NS: u64 = 3_000;

/// `/proc/TID/schedstat` is read around the run, not at its edges.
const AROUND_NS: u64 = 5_000_000;

/// Losses that this kind of host always has: no event fires while a thread of a hidden pid 1 is
/// current, so its switch-out is missing and the wait before it was not seen. And where all tasks are
/// recorded, a storm of somebody else's may use up the histograms, which costs percentiles only, and
/// stacks of what has ended, which costs paths only.
const UNAVOIDABLE: [&str; 4] = [
    "missed_switches",
    "unmeasured_waits",
    "task_histograms",
    "stacks",
];

/// The clocks of two virtual CPUs may differ by nanoseconds, seen once in a million switches.
const SWITCHES_PER_CLOCK_DISORDER: u64 = 20_000;

/// `part` of `whole`, 0 of nothing.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "a ratio for a bound, never a figure shown"
)]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// At least this share of `whole`.
pub fn share(what: &str, part: u64, whole: u64, at_least: f64) -> Result<()> {
    let share = ratio(part, whole);
    ensure!(
        share >= at_least,
        "{what}: {part} of {whole} is {share:.5}, below {at_least}"
    );
    Ok(())
}

/// Two accounts of one quantity, within a ratio or an absolute bound, whichever is larger.
pub fn near(what: &str, ours: u64, theirs: u64, within: f64, or_ns: u64) -> Result<()> {
    let gap = ours.abs_diff(theirs);
    ensure!(
        gap <= or_ns || ratio(gap, theirs) <= within,
        "{what}: ours {ours}, the other account {theirs}; they differ by {gap} ({:.4} %)",
        100.0 * ratio(gap, theirs)
    );
    Ok(())
}
/// Nothing was lost but what this kind of host always loses.
pub fn nothing_lost(report: &Report) -> Result<()> {
    nothing_lost_but(report, &[])
}

/// The same, with so many at most of some kinds.
pub fn nothing_lost_but(report: &Report, known: &[(&str, u64)]) -> Result<()> {
    let disorder = 1 + report.audit.switches.all_ours / SWITCHES_PER_CLOCK_DISORDER;
    // An interrupt that comes upon such a task, or that lets one go, is seen at one end only.
    let unpaired = 2 + report.audit.switches.missed;
    let allowed = |kind: &str| match kind {
        kind if UNAVOIDABLE.contains(&kind) => u64::MAX,
        "unpaired_interrupts" => unpaired,
        "clock_backwards" => disorder,
        kind => known
            .iter()
            .find(|(known, _)| *known == kind)
            .map_or(0, |(_, most)| *most),
    };
    let is_lost = |(kind, count): &(&String, &u64)| **count > allowed(kind.as_str());
    let lost: Vec<_> = report.loss.iter().filter(is_lost).collect();
    ensure!(lost.is_empty(), "lost: {lost:?}");
    Ok(())
}
/// The rows add up to the totals.
pub fn rows_add_up(report: &Report) -> Result<()> {
    type Figure = fn(&Stats) -> u64;
    const FIGURES: [(&str, Figure); 8] = [
        ("wakeup waits", |stats| stats.waits.wakeup.count),
        ("preemption waits", |stats| stats.waits.preemption.count),
        ("first waits", |stats| stats.waits.new_task.count),
        ("ns waited", |stats| stats.waits.sum_ns()),
        ("voluntary switches", |stats| stats.switches.voluntary),
        ("involuntary switches", |stats| stats.switches.involuntary),
        ("migrations", |stats| stats.migrations),
        ("ns on a CPU", |stats| stats.on_cpu_ns),
    ];
    let rows = if report.tasks.is_empty() {
        &report.groups
    } else {
        &report.tasks
    };
    for (name, figure) in FIGURES {
        let sum: u64 = rows.iter().map(|row| figure(&row.stats)).sum();
        let total = figure(&report.totals);
        ensure!(
            sum == total,
            "{name}: the rows sum to {sum}, the total is {total}"
        );
    }
    Ok(())
}

/// No figure is beyond what the window allows, and percentiles are in order.
pub fn figures_are_possible(report: &Report) -> Result<()> {
    let window = report.window_ns() + AROUND_NS;
    for row in report.tasks.iter().chain(&report.groups) {
        let who = format!("{:?} {:?}", row.comm, row.tid);
        let longest = row.stats.waits.max_ns();
        ensure!(
            longest <= window,
            "{who} waited {longest} ns in a window of {window} ns"
        );
        let spent = row.stats.on_cpu_ns + row.stats.waited_ns;
        ensure!(
            spent <= window * row.n_tasks,
            "{who} ran and waited {spent} ns in a window of {window} ns ({} tasks)",
            row.n_tasks
        );
        stats_are_consistent(&row.stats).map_err(|cause| cause.context(who))?;
    }
    stats_are_consistent(&report.totals)
}

fn stats_are_consistent(stats: &Stats) -> Result<()> {
    let waits = &stats.waits;
    for (kind, dist) in [
        ("wakeup", &waits.wakeup),
        ("preemption", &waits.preemption),
        ("new_task", &waits.new_task),
        ("wakeup_latency", &stats.wakeup_latency),
    ] {
        ensure!(
            is_ordered(dist),
            "{kind}: the distribution is out of order: {dist:?}"
        );
    }
    let (n, sum) = (stats.n_lost_cpu(), waits.preemption.count);
    ensure!(n == sum, "the causes count {n} waits, the kind {sum}");
    let censored = &stats.censored;
    let parts = waits.sum_ns() + censored.open_at_start_ns + censored.open_at_end_ns;
    ensure!(
        parts == stats.waited_ns,
        "the waits sum to {parts} ns, not {}",
        stats.waited_ns
    );
    let switches = &stats.switches;
    ensure!(
        switches.r#yield <= switches.involuntary,
        "{} yields among {} involuntary switches",
        switches.r#yield,
        switches.involuntary
    );
    Ok(())
}

fn is_ordered(dist: &WaitStats) -> bool {
    // A percentile is the middle of a bucket, so it may lie a 64th beyond the exact extremes.
    let low = dist.min_ns - dist.min_ns / 64;
    let high = dist.max_ns + dist.max_ns / 64 + 1;
    let percentiles = [dist.p50_ns, dist.p90_ns, dist.p99_ns, dist.p999_ns];
    let known: Vec<u64> = percentiles.into_iter().flatten().collect();
    known.is_sorted() && known.iter().all(|&value| (low..=high).contains(&value))
}

/// The sums that are conserved whatever else was lost: switches to the unit, each of all CPUs seen or
/// counted as missed, and no more time on a CPU than the kernel counts. Returns the gap in percent.
pub fn sums_are_conserved(report: &Report) -> Result<f64> {
    figures_are_possible(report)?;
    switches_agree(&report.audit, crate::truth::n_cpus()?)?;
    chain_adds_up(&report.audit)?;
    on_cpu_is_not_more(report)
}

/// Each of `n` new tasks waited for its first run, and is in the totals; of some the blind spot of this
/// kind of host hid the end of it.
pub fn every_new_task_waited_once(report: &Report, n: u64) -> Result<()> {
    let first = report.totals.waits.new_task.count;
    let unseen = report.audit.class("unmeasured").count;
    ensure!(
        first <= n && first + unseen >= n,
        "{first} first waits of {n} new tasks, {unseen} unseen"
    );
    for row in &report.tasks {
        let own = row.stats.waits.new_task.count;
        ensure!(own <= 1, "{:?} was born {own} times", row.comm);
    }
    Ok(())
}

/// What holds for every recording, whatever was observed.
pub fn sound(report: &Report) -> Result<()> {
    figures_are_possible(report)?;
    rows_add_up(report)?;
    nothing_lost(report)?;
    switches_agree(&report.audit, crate::truth::n_cpus()?)?;
    chain_adds_up(&report.audit)?;
    ensure!(
        report.audit.ok,
        "the audit failed: {:?}",
        report.audit.findings
    );
    Ok(())
}
