//! Judgements over a report: the sums that must be conserved, and the tolerances they are held to.
//!
//! Shared by the live tests and the VM. Each returns an error that names both figures. Tolerances are
//! those of the issue and of MEASUREMENT.md; a bound without a reason beside it is a bug.

use anyhow::{Result, ensure};

use crate::{
    report::{Audit, Report, Row, Stats, WaitStats},
    truth::Counters,
};

/// What one wait may be off: the events are not at the very place of the kernel's clock reads.
const PER_WAIT_NS: u64 = 3_000;

/// `/proc/TID/schedstat` is read around the run, not at its edges.
const AROUND_NS: u64 = 5_000_000;

/// Losses that this kind of host always has: no event fires while a thread of a hidden pid 1 is
/// current, so its switch-out is missing and the wait before it was not seen.
const UNAVOIDABLE: [&str; 2] = ["missed_switches", "unmeasured_waits"];

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

/// Both accounts of one class of waits agree: within a ratio plus so much per wait.
pub fn class_agrees(audit: &Audit, class: &str, within: f64, per_wait_ns: u64) -> Result<()> {
    let both = audit.class(class);
    let gap = both.ours_ns.abs_diff(both.kernel_ns);
    let spent = gap.saturating_sub(per_wait_ns * both.count);
    ensure!(
        ratio(spent, both.kernel_ns) <= within && (both.kernel_ns > 0 || spent == 0),
        "{class}: {} waits, ours {} ns, the kernel's {} ns: they differ by {gap} ns",
        both.count,
        both.ours_ns,
        both.kernel_ns
    );
    Ok(())
}

/// Waits after a slice that the timer ended: within 0.05 % of the kernel's account plus 3 µs each.
pub fn slices_agree(audit: &Audit) -> Result<()> {
    class_agrees(audit, "tick", 0.0005, PER_WAIT_NS)?;
    class_agrees(audit, "hrtick", 0.0005, PER_WAIT_NS)
}

/// All waits of a task against the growth of its schedstat: within 3 % or 5 ms.
pub fn waits_agree(row: &Row, truth: &Counters) -> Result<()> {
    near(
        "waits against schedstat",
        row.stats.waited_ns,
        truth.run_delay_ns,
        0.03,
        AROUND_NS,
    )
}

/// On-CPU time of a task against the growth of its schedstat: within 2 % or 5 ms.
pub fn on_cpu_agrees_with_proc(row: &Row, truth: &Counters) -> Result<()> {
    near(
        "on-CPU time against schedstat",
        row.stats.on_cpu_ns,
        truth.exec_ns,
        0.02,
        AROUND_NS,
    )
}

/// Switches equal to the unit with the kernel's counters.
///
/// One per CPU may be in flight. A switch that fired no event at all is in the kernel's count only,
/// and is a counted break in the chain.
pub fn switches_agree(audit: &Audit, n_cpus: u64) -> Result<()> {
    let s = &audit.switches;
    for (kind, ours, kernel) in [
        ("voluntary", s.voluntary_ours, s.voluntary_kernel),
        ("involuntary", s.involuntary_ours, s.involuntary_kernel),
    ] {
        ensure!(
            ours <= kernel + n_cpus && kernel <= ours + n_cpus + s.missed,
            "{kind} switches: ours {ours}, the kernel's {kernel}; {n_cpus} may be in flight, {} \
             were missed",
            s.missed
        );
    }
    Ok(())
}

/// Every switch of the host was seen, or is counted as a break in the chain.
pub fn chain_adds_up(audit: &Audit) -> Result<()> {
    let s = &audit.switches;
    let accounted = s.all_ours + s.missed;
    ensure!(
        accounted.abs_diff(s.all_kernel) <= s.all_kernel_slack,
        "switches of all CPUs: {} seen + {} missed = {accounted}, ctxt grew by {} (±{})",
        s.all_ours,
        s.missed,
        s.all_kernel,
        s.all_kernel_slack
    );
    Ok(())
}

/// On-CPU time within 0.5 % of the kernel's: holds where no wakeup preempts.
pub fn on_cpu_agrees(audit: &Audit) -> Result<()> {
    near(
        "on-CPU time",
        audit.on_cpu_ours_ns,
        audit.on_cpu_kernel_ns,
        0.005,
        0,
    )
}

/// On-CPU time not above the kernel's, which charges the switch of a preempting wakeup to the woken
/// task; 0.5 % covers the clocks. Returns the gap in percent.
pub fn on_cpu_is_not_more(audit: &Audit) -> Result<f64> {
    let (ours, kernel) = (audit.on_cpu_ours_ns, audit.on_cpu_kernel_ns);
    ensure!(
        ours <= kernel || ratio(ours - kernel, kernel) <= 0.005,
        "on-CPU time: ours {ours} ns is above the kernel's {kernel} ns"
    );
    Ok(100.0 * ratio(kernel.saturating_sub(ours), kernel))
}

/// Nothing was lost but what this kind of host always loses.
pub fn nothing_lost(report: &Report) -> Result<()> {
    let lost: Vec<_> = report
        .loss
        .iter()
        .filter(|(kind, count)| **count > 0 && !UNAVOIDABLE.contains(&kind.as_str()))
        .collect();
    ensure!(lost.is_empty(), "lost: {lost:?}");
    Ok(())
}

/// Every wait that a task's loss of the CPU began names who took it, slice ends and yields apart.
pub fn preemptors_are_named(stats: &Stats) -> Result<()> {
    for cause in ["wakeup", "higher_class", "stopper"] {
        let of_cause = stats
            .preemptors
            .iter()
            .filter(|preemptor| preemptor.cause == cause);
        let named = of_cause.filter(|preemptor| preemptor.tid != 0 && !preemptor.comm.is_empty());
        let n_named: u64 = named.map(|preemptor| preemptor.count).sum();
        let n = stats.cause(cause).count;
        ensure!(
            n_named == n,
            "{n} waits lost to '{cause}', {n_named} name who took the CPU: {:?}",
            stats.preemptors
        );
    }
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

/// What holds for every recording, whatever was observed.
pub fn sound(report: &Report) -> Result<()> {
    figures_are_possible(report)?;
    rows_add_up(report)?;
    nothing_lost(report)?;
    switches_agree(&report.audit, crate::truth::n_cpus()?)?;
    chain_adds_up(&report.audit)?;
    slices_agree(&report.audit)?;
    ensure!(
        report.audit.ok,
        "the audit failed: {:?}",
        report.audit.findings
    );
    Ok(())
}
