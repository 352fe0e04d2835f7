//! Probes of timers: every sample is a wakeup, and every period should have one.

use super::{longest_ns, n_longer, reason::Reasons};
use crate::{
    model::{ClaimedSeries, SeenThread},
    reconcile::foreign::Tool,
    units,
};

/// Wakeups of a measuring thread that are no samples: its start, its end, signals. One in a hundred
/// and so many more.
const OTHER_WAKEUPS: u64 = 20;

/// How far looking now and then may be off, at either end.
const LOOKS_NS: u64 = 50_000_000;

/// A kernel's mean is exact; the tool's may be rounded in its text, once more than cut.
const MEAN_PART: u64 = 100;

pub(super) fn judge(
    tool: Tool,
    series: &ClaimedSeries,
    thread: &SeenThread,
    missed_switches: u64,
    reasons: &mut Reasons,
) {
    reasons.of_series(&series.name);
    let is_prefix = prefix(series, thread, reasons);
    samples(series, thread, missed_switches, reasons);
    periods(series, thread, reasons);
    lower_bounds(series, thread, is_prefix, reasons);
    beyond(series, thread, is_prefix, reasons);
    slack(tool, thread, reasons);
    if let Some(n) = series.beyond_histogram.filter(|n| *n > 0) {
        let text = format!(
            "{} samples lie beyond its histogram, whose document does not say so",
            units::count(n)
        );
        reasons.remark("histogram_overflow", (0, n, 0), text);
    }
}

/// Whether its figures rest on the first samples only.
fn prefix(series: &ClaimedSeries, thread: &SeenThread, reasons: &mut Reasons) -> bool {
    let Some((kept, taken)) = series.latency.count.zip(series.taken) else {
        return false;
    };
    if kept >= taken {
        return false;
    }
    let longest = thread.wakeup_latency.max_ns;
    let text = format!(
        "its figures rest on the first {} of {} samples; the longest wakeup latency of all was {}, its maximum is {}",
        units::count(kept),
        units::count(taken),
        units::duration(longest),
        units::duration(series.latency.max_ns.unwrap_or(0)),
    );
    reasons.omission("first_samples_only", (kept, taken, 0), text);
    true
}

/// Samples against wakeups.
fn samples(
    series: &ClaimedSeries,
    thread: &SeenThread,
    missed_switches: u64,
    reasons: &mut Reasons,
) {
    let Some(taken) = series.taken else {
        return;
    };
    let wakeups = thread.wakeup_latency.count;
    let allowed = taken / 100 + OTHER_WAKEUPS + missed_switches;
    let numbers = (taken, wakeups, allowed);
    let (claimed, saw) = (units::count(taken), units::count(wakeups));
    if taken > wakeups + allowed {
        let text =
            format!("it claims {claimed} samples, and the kernel woke the thread {saw} times");
        reasons.contradiction("samples_exceed_wakeups", numbers, text);
    } else if wakeups > taken + allowed {
        let text = format!("the kernel woke the thread {saw} times, and it has {claimed} samples");
        reasons.omission("wakeups_not_sampled", numbers, text);
    } else {
        let text = format!("{claimed} samples, and {saw} wakeups seen by the kernel");
        reasons.remark("samples", numbers, text);
    }
}

/// Periods that passed without a sample.
fn periods(series: &ClaimedSeries, thread: &SeenThread, reasons: &mut Reasons) {
    let known = thread.periods.zip(thread.missed_periods);
    let Some(((periods, missed), interval_ns)) = known.zip(series.interval_ns) else {
        return;
    };
    let allowed = periods / 100 + LOOKS_NS / interval_ns.max(1) + 2;
    if missed <= allowed {
        return;
    }
    let stopped_ns = thread
        .conditions
        .as_ref()
        .map_or(0, |conditions| conditions.stopped_ns);
    let why = match stopped_ns {
        0 => "it was not stopped, but came late".to_owned(),
        ns => format!("it was stopped for {}", units::duration(ns)),
    };
    let text = format!(
        "{} of {} periods ({}) passed without a sample: {why}; each would have been late, and its figures hold at most one sample for all that follow each other",
        units::count(missed),
        units::count(periods),
        units::percent(100.0 * units::ratio(missed, periods)),
    );
    let taken = series.taken.unwrap_or(0);
    reasons.omission("missed_periods", (taken, periods, allowed), text);
}

/// At every value that is claimed: no more of the kernel's latencies are longer than of the tool's.
fn lower_bounds(
    series: &ClaimedSeries,
    thread: &SeenThread,
    is_prefix: bool,
    reasons: &mut Reasons,
) {
    let claimed = series.latency;
    let saw = thread.wakeup_latency;
    if saw.count == 0 {
        return;
    }
    let cut_ns = series.resolution_ns;
    if let Some(min_ns) = claimed.min_ns
        && min_ns + cut_ns < saw.min_ns
    {
        contradict(
            "min_below_kernel",
            "minimum",
            (min_ns, saw.min_ns, cut_ns),
            reasons,
        );
    }
    if is_prefix {
        return;
    }
    let n_others = saw.count.saturating_sub(series.taken.unwrap_or(saw.count));
    // Some samples may not have been seen: then the others are more than the difference.
    let allowed = n_others + OTHER_WAKEUPS / 10;
    if let Some(mean_ns) = claimed.mean_ns {
        mean(mean_ns, series, thread, allowed, reasons);
    }
    if let Some(max_ns) = claimed.max_ns {
        let longer = n_longer(&thread.latency_buckets, max_ns + cut_ns);
        if longer > allowed {
            contradict(
                "max_below_kernel",
                "maximum",
                (max_ns, saw.max_ns, cut_ns),
                reasons,
            );
        }
    }
    for (per_mille, ns) in claimed.percentiles() {
        let longer = n_longer(&thread.latency_buckets, ns + cut_ns);
        // So many may be longer by what a percentile is, and one for its rounding.
        let may_be = saw.count * (1000 - per_mille) / 1000 + 1;
        if longer > may_be + allowed + saw.count / 100 {
            let name = format!("{}.{} % quantile", per_mille / 10, per_mille % 10);
            contradict(
                "percentile_below_kernel",
                &name,
                (ns, longer, may_be),
                reasons,
            );
        }
    }
}

/// The kernel's sum without what may be no samples must not be above the tool's.
fn mean(
    mean_ns: u64,
    series: &ClaimedSeries,
    thread: &SeenThread,
    n_others: u64,
    reasons: &mut Reasons,
) {
    let saw = thread.wakeup_latency;
    let taken = series.taken.unwrap_or(saw.count);
    let others_ns = longest_ns(&thread.latency_buckets, n_others, saw.max_ns);
    let sum_ns = saw
        .mean_ns
        .saturating_mul(saw.count)
        .saturating_sub(others_ns);
    let least_ns = sum_ns.checked_div(taken.min(saw.count)).unwrap_or(0);
    let allowed_ns = series.resolution_ns + least_ns / MEAN_PART;
    if mean_ns + allowed_ns < least_ns {
        let numbers = (mean_ns, saw.mean_ns, allowed_ns);
        contradict("mean_below_kernel", "mean", numbers, reasons);
    }
}

fn contradict(code: &'static str, name: &str, numbers: (u64, u64, u64), reasons: &mut Reasons) {
    let (claimed, saw, _) = numbers;
    let text = if code == "percentile_below_kernel" {
        format!(
            "its {name} is {}, yet {} wakeups took longer in the kernel alone",
            units::duration(claimed),
            units::count(saw)
        )
    } else {
        format!(
            "its {name} of {} is below the kernel's {}, which is a part of it",
            units::duration(claimed),
            units::duration(saw)
        )
    };
    reasons.contradiction(code, numbers, text);
}

/// What the tool measures beyond waking to running.
fn beyond(series: &ClaimedSeries, thread: &SeenThread, is_prefix: bool, reasons: &mut Reasons) {
    let saw = thread.wakeup_latency;
    let Some(mean_ns) = series
        .latency
        .mean_ns
        .filter(|_| !is_prefix && saw.count > 0)
    else {
        return;
    };
    let Some(beyond_ns) = mean_ns.checked_sub(saw.mean_ns) else {
        return;
    };
    let stopped = match &thread.conditions {
        Some(conditions) if conditions.stops > 0 => ", the time it was stopped",
        _ => "",
    };
    let text = format!(
        "of its mean of {}, {} are from waking to running; {} are a late expiry of the timer, slack{stopped}, and the return to user space",
        units::duration(mean_ns),
        units::duration(saw.mean_ns),
        units::duration(beyond_ns),
    );
    reasons.remark(
        "beyond_wakeup_latency",
        (mean_ns, saw.mean_ns, beyond_ns),
        text,
    );
}

/// Slack is in the figures of a task that has any, and nobody's latency.
fn slack(tool: Tool, thread: &SeenThread, reasons: &mut Reasons) {
    let conditions = thread.conditions.as_ref();
    let Some((conditions, slack_ns)) =
        conditions.and_then(|it| Some((it, it.timer_slack_ns.filter(|ns| *ns > 1)?)))
    else {
        return;
    };
    if !matches!(conditions.policy, "other" | "batch" | "idle") {
        return;
    }
    let why = if tool == Tool::Cyclictest {
        "; a value set before it started is gone, because it tries a real-time policy and goes back"
    } else {
        ""
    };
    let text = format!(
        "its timers may expire up to {} late on purpose (timer slack of policy {}), which is in its figures{why}",
        units::duration(slack_ns),
        conditions.policy,
    );
    reasons.remark("timer_slack", (0, slack_ns, 0), text);
}
