//! Judgements over a report: the sums that must be conserved, and the tolerances they are held to.
//!
//! Shared by the live tests and the VM. Each returns an error that names both figures. Tolerances are
//! those of the issue and of MEASUREMENT.md; a bound without a reason beside it is a bug.

use anyhow::{Result, ensure};
use latency_common::counters::N_PREEMPTORS;

use crate::{
    observe::Observed,
    report::{Audit, Preemptor, Report, Row, Stats, WaitStats},
    truth::Counters,
};

/// What one wait may be off: the events are not at the very place of the kernel's clock reads.
const PER_WAIT_NS: u64 = 3_000;

/// `/proc/TID/schedstat` is read around the run, not at its edges.
const AROUND_NS: u64 = 5_000_000;

/// Steal time is counted in the steps of `/proc/stat`.
const STEAL_STEP_NS: u64 = 10_000_000;

/// The longest stint of a burner in company: a slice of some milliseconds ends at a tick.
const LONGEST_SLICE_NS: u64 = 12_000_000;

/// Losses that this kind of host always has: no event fires while a thread of a hidden pid 1 is
/// current, so its switch-out is missing and the wait before it was not seen.
const UNAVOIDABLE: [&str; 2] = ["missed_switches", "unmeasured_waits"];

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

/// Our account of time on a CPU without what a hypervisor kept meanwhile, which the kernel's task
/// clock leaves out; never below the kernel's.
#[must_use]
pub fn without_steal(report: &Report, ours: u64, theirs: u64) -> u64 {
    let stolen = if report.steal_ns > 0 {
        report.steal_ns + STEAL_STEP_NS
    } else {
        0
    };
    ours - stolen.min(ours.saturating_sub(theirs))
}

/// A task that always wants a CPU runs or waits all the time: within 0.1 % or 1 ms, but for what
/// the blind spot of this kind of host cut out.
pub fn runs_or_waits_all_the_time(report: &Report, row: &Row) -> Result<()> {
    let (spent, window) = (
        row.stats.on_cpu_ns + row.stats.waited_ns,
        report.window_ns(),
    );
    let unseen = row.audit.class("unmeasured");
    let cut_out = unseen.kernel_ns + unseen.count * LONGEST_SLICE_NS;
    let missing = window.saturating_sub(spent);
    let accounted = spent + missing.min(cut_out);
    near("running and waiting", accounted, window, 0.001, 1_000_000)
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

/// On-CPU time within 0.5 % of the kernel's, steal time apart: holds where no wakeup preempts.
pub fn on_cpu_agrees(report: &Report, audit: &Audit) -> Result<()> {
    let (ours, kernel) = (audit.on_cpu_ours_ns, audit.on_cpu_kernel_ns);
    near(
        "on-CPU time",
        without_steal(report, ours, kernel),
        kernel,
        0.005,
        0,
    )
}

/// On-CPU time not above the kernel's, which charges the switch of a preempting wakeup to the woken
/// task; 0.5 % covers the clocks. Returns the gap in percent.
pub fn on_cpu_is_not_more(report: &Report) -> Result<f64> {
    let kernel = report.audit.on_cpu_kernel_ns;
    let ours = without_steal(report, report.audit.on_cpu_ours_ns, kernel);
    ensure!(
        ours <= kernel || ratio(ours - kernel, kernel) <= 0.005,
        "on-CPU time: ours {ours} ns is above the kernel's {kernel} ns"
    );
    Ok(100.0 * ratio(kernel.saturating_sub(ours), kernel))
}

/// Nothing was lost but what this kind of host always loses.
pub fn nothing_lost(report: &Report) -> Result<()> {
    let disorder = 1 + report.audit.switches.all_ours / SWITCHES_PER_CLOCK_DISORDER;
    let allowed = |kind: &str| match kind {
        kind if UNAVOIDABLE.contains(&kind) => u64::MAX,
        "clock_backwards" => disorder,
        _ => 0,
    };
    let is_lost = |(kind, count): &(&String, &u64)| **count > allowed(kind.as_str());
    let lost: Vec<_> = report.loss.iter().filter(is_lost).collect();
    ensure!(lost.is_empty(), "lost: {lost:?}");
    Ok(())
}

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
    ensure!(
        report.audit.ok,
        "the audit failed: {:?}",
        report.audit.findings
    );
    Ok(())
}
