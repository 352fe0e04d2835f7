//! The table of waits: by kind, by cause, cut ones, and the latency from waking to running.
//!
//! Shares are of all the time waited within the window, so the lines of kinds and of cut waits
//! make up the whole. Percentiles are kept by kind, not by cause.

use latency_common::class::WaitClass;

use super::table;
use crate::model::{CauseStats, DetailLevel, PreemptorStats, Stats, WaitStats};
use crate::units;

/// Names shown for who took the CPU most.
const N_NAMES: usize = 2;

/// The table of the waits of `stats`; causes only where they were asked for.
pub(super) fn render(stats: &Stats, detail: DetailLevel) -> String {
    let columns = [
        "waits for a CPU",
        "count",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "sum",
        "share",
        "",
    ];
    let mut rows = vec![table::cells(columns)];
    let whole = stats.waited_ns;
    rows.push(kind_row("after a wakeup", &stats.waits.wakeup, whole));
    rows.push(kind_row(
        "after losing the CPU",
        &stats.waits.preemption,
        whole,
    ));
    if detail >= DetailLevel::Causes {
        rows.extend(cause_rows(stats));
    }
    if stats.waits.new_task.count > 0 {
        rows.push(kind_row(
            "before the first run",
            &stats.waits.new_task,
            whole,
        ));
    }
    rows.extend(cut_rows(stats));
    if stats.wakeup_latency.count > 0 {
        let mut row = kind_row("from waking to running", &stats.wakeup_latency, whole);
        // It contains the waits after wakeups: a share would count them twice.
        row[8] = String::new();
        rows.push(row);
    }
    table::aligned("<>>>>>>>><", &rows)
}

fn kind_row(name: &str, waits: &WaitStats, whole: u64) -> Vec<String> {
    let mut row = vec![name.to_owned(), units::count(waits.count)];
    let percentiles = [waits.p50_ns, waits.p90_ns, waits.p99_ns, waits.p999_ns];
    if waits.count == 0 {
        row.resize(10, String::new());
        return row;
    }
    row.extend(percentiles.map(or_dash));
    row.push(units::duration(waits.max_ns));
    row.push(units::duration(waits.sum_ns));
    row.push(share(waits.sum_ns, whole));
    row.push(String::new());
    row
}

/// A percentile, or a dash where its histogram was not kept.
pub(super) fn or_dash(ns: Option<u64>) -> String {
    table::known(ns, units::duration)
}

pub(super) fn share(part: u64, whole: u64) -> String {
    units::percent(100.0 * units::ratio(part, whole))
}

/// The causes that occur.
fn cause_rows(stats: &Stats) -> Vec<Vec<String>> {
    let causes = &stats.causes;
    let causes = [
        ("  to the tick (slice end)", WaitClass::Tick, causes.tick),
        (
            "  to the slice timer (slice end)",
            WaitClass::Hrtick,
            causes.hrtick,
        ),
        ("  to a wakeup", WaitClass::WakeupPreemption, causes.wakeup),
        (
            "  to a higher class",
            WaitClass::HigherClass,
            causes.higher_class,
        ),
        ("  by sched_yield", WaitClass::Yield, causes.r#yield),
        (
            "  out of quota (throttled)",
            WaitClass::Throttled,
            causes.throttled,
        ),
        ("  to the stopper", WaitClass::Stopper, causes.stopper),
        ("  of unknown cause", WaitClass::Unknown, causes.unknown),
    ];
    let occur = causes.into_iter().filter(|(_, _, cause)| cause.count > 0);
    occur
        .map(|(name, class, cause)| {
            let takers = takers(&stats.preemptors, class.name(), cause.sum_ns);
            sum_row(name, cause, stats.waited_ns, takers)
        })
        .collect()
}

/// A line without percentiles.
fn sum_row(name: &str, waits: CauseStats, whole: u64, remark: String) -> Vec<String> {
    let mut row = vec![name.to_owned(), units::count(waits.count)];
    row.resize(6, String::new());
    row.push(units::duration(waits.max_ns));
    row.push(units::duration(waits.sum_ns));
    row.push(share(waits.sum_ns, whole));
    row.push(remark);
    row
}

/// Who took the CPU, e.g. `mostly kworker/1:1H, ksoftirqd/1`. Preemptors come largest first; those
/// that found no row of their own are not named, so the names may hold less than half.
fn takers(preemptors: &[PreemptorStats], cause: &str, sum_ns: u64) -> String {
    let of_cause = || preemptors.iter().filter(|row| row.cause == cause);
    let mut names: Vec<&str> = Vec::new();
    for preemptor in of_cause() {
        if !names.contains(&preemptor.comm.as_str()) {
            names.push(&preemptor.comm);
        }
    }
    names.truncate(N_NAMES);
    let shown = of_cause().filter(|row| names.contains(&row.comm.as_str()));
    let shown_ns: u64 = shown.map(|row| row.sum_ns).sum();
    let how_much = if shown_ns >= sum_ns / 2 {
        "mostly"
    } else {
        "among others"
    };
    if names.is_empty() {
        String::new()
    } else {
        format!("{how_much} {}", names.join(", "))
    }
}

/// Waits that the window cut: real, but of unknown full length.
fn cut_rows(stats: &Stats) -> Vec<Vec<String>> {
    let censored = stats.censored;
    let mut rows = Vec::new();
    if censored.open_at_start > 0 {
        let longest = stats.tally.class(WaitClass::OpenAtStart).max_ns;
        let waits = CauseStats {
            count: censored.open_at_start,
            sum_ns: censored.open_at_start_ns,
            max_ns: longest,
        };
        let remark = "since recording began".to_owned();
        rows.push(sum_row(
            "waiting from before",
            waits,
            stats.waited_ns,
            remark,
        ));
    }
    if censored.open_at_end > 0 {
        let waits = CauseStats {
            count: censored.open_at_end,
            sum_ns: censored.open_at_end_ns,
            max_ns: censored.open_at_end_max_ns,
        };
        let mut row = sum_row(
            "still waiting",
            waits,
            stats.waited_ns,
            "not ended".to_owned(),
        );
        row[6] = format!(">= {}", row[6]);
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takers_are_said_to_be_most_only_where_they_are() {
        let row = |comm: &str, sum_ns| PreemptorStats {
            cause: "tick",
            comm: comm.into(),
            tid: 1,
            count: 1,
            sum_ns,
        };
        let rows = [row("a", 30), row("b", 15), row("a", 10), row("c", 5)];
        assert_eq!(takers(&rows, "tick", 110), "mostly a, b");
        assert_eq!(takers(&rows, "tick", 112), "among others a, b");
        assert_eq!(takers(&rows, "yield", 5), "");
    }
}
