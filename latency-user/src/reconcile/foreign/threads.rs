//! Which threads of a tool measure, and what the kernel saw of them.
//!
//! They are told by structure: a tool names all its threads alike, and its main thread measures nothing.

use latency_common::hist::HistKind;

use super::Tool;
use crate::model::{
    ClaimedSeries, Claims, Report, Row, SeenByKernel, SeenInterruptions, SeenLatency, SeenThread,
    WaitStats, Watched,
};

/// What the kernel saw of a tool that made these claims.
#[must_use]
pub fn seen(tool: Tool, claims: &Claims, report: &Report, watched: &[Watched]) -> SeenByKernel {
    let totals = &report.totals;
    let threads = pairs(tool, claims, &report.rows);
    SeenByKernel {
        elapsed_ns: report.window.end_at_ns - report.window.start_at_ns,
        n_tasks: report.n_tasks + report.loss.exit_records + report.loss.folded_rows,
        wakeups: totals.wakeup_latency.count,
        switches: totals.switches.voluntary + totals.switches.involuntary,
        on_cpu_ns: totals.on_cpu_ns,
        waited_ns: totals.waited_ns,
        threads: threads
            .into_iter()
            .map(|(series, row)| thread(series, row, watched))
            .collect(),
    }
}

/// Each series with the row of its thread, as far as there is one.
fn pairs<'a>(tool: Tool, claims: &'a Claims, rows: &'a [Row]) -> Vec<(&'a ClaimedSeries, &'a Row)> {
    let n_series = claims.series.len();
    let mut candidates: Vec<_> = rows.iter().filter(|row| may_measure(tool, row)).collect();
    candidates.sort_by_key(|row| (row.ident.start_time_ns, row.ident.tid));
    let ordered: Vec<&Row> = match tool {
        Tool::Cyclictest => candidates,
        // Others like them have warmed the CPUs up before.
        Tool::Oslat => {
            let n_before = candidates.len().saturating_sub(n_series);
            candidates.split_off(n_before)
        }
        // One of its processes measures, the other waits for it.
        Tool::StressNg => {
            let busiest = candidates
                .into_iter()
                .max_by_key(|row| row.stats.wakeup_latency.count);
            busiest.into_iter().collect()
        }
        Tool::Hackbench | Tool::PerfBench | Tool::Schbench => Vec::new(),
    };
    let of_series = |(index, series): (usize, &'a ClaimedSeries)| {
        let by_id = |row: &&&Row| series.tid.is_some() && row.ident.tid == series.tid;
        let known = ordered.iter().find(by_id).copied();
        let row = known.or_else(|| ordered.get(index).copied());
        row.map(|row| (series, row))
    };
    claims
        .series
        .iter()
        .enumerate()
        .filter_map(of_series)
        .collect()
}

fn may_measure(tool: Tool, row: &Row) -> bool {
    let is_named = |names: &Option<String>, prefix: &str| {
        names
            .as_deref()
            .is_some_and(|name| name.starts_with(prefix))
    };
    let is_main = row.ident.tid == row.ident.tgid;
    match tool {
        Tool::StressNg => is_named(&row.ident.comm, "stress-ng-cycli"),
        _ => !is_main && is_named(&row.ident.process_comm, tool.name()),
    }
}

fn thread(series: &ClaimedSeries, row: &Row, watched: &[Watched]) -> SeenThread {
    let stats = &row.stats;
    let tid = row.ident.tid.unwrap_or_default();
    let watched = watched.iter().find(|watched| watched.tid == tid);
    let alive_ns = watched
        .zip(row.ident.start_time_ns)
        .map(|(watched, start)| watched.last_seen_boot_ns.saturating_sub(start));
    let periods = watched
        .zip(series.interval_ns)
        .and_then(|(watched, interval)| periods(watched, interval));
    let lost = stats.waits.preemption;
    let stolen = stats.stolen;
    SeenThread {
        name: series.name.clone(),
        tid,
        tgid: row.ident.tgid.unwrap_or_default(),
        comm: row.ident.comm.clone().unwrap_or_default(),
        alive_ns,
        wakeup_latency: latency(&stats.wakeup_latency),
        interruptions: SeenInterruptions {
            lost_cpu: lost.count,
            lost_cpu_sum_ns: lost.sum_ns,
            lost_cpu_max_ns: lost.max_ns,
            interrupts: stolen.irqs + stolen.softirqs + stolen.ticks,
            interrupts_sum_ns: stolen.irq_ns + stolen.softirq_ns + stolen.tick_ns,
        },
        periods,
        missed_periods: periods
            .zip(series.taken)
            .map(|(periods, taken)| periods.saturating_sub(taken)),
        conditions: watched.map(|watched| watched.conditions.clone()),
        latency_buckets: stats.tally.hists[HistKind::Latency as usize].clone(),
        lost_cpu_buckets: stats.tally.hists[HistKind::Preemption as usize].clone(),
    }
}

/// Periods that passed while a thread measured: the sleeps it had behind it at a moment, and the time from
/// then on. How long it took to start, or to end, is not in it.
fn periods(watched: &Watched, interval_ns: u64) -> Option<u64> {
    let (from_ns, n_sleeps) = watched.measuring_from?;
    let measured_ns = watched.measuring_until_ns.saturating_sub(from_ns);
    Some(n_sleeps + measured_ns.checked_div(interval_ns)?)
}

fn latency(waits: &WaitStats) -> SeenLatency {
    SeenLatency {
        count: waits.count,
        min_ns: waits.min_ns,
        mean_ns: waits.sum_ns.checked_div(waits.count).unwrap_or(0),
        max_ns: waits.max_ns,
        p50_ns: waits.p50_ns,
        p90_ns: waits.p90_ns,
        p99_ns: waits.p99_ns,
        p999_ns: waits.p999_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_those_of_the_time_it_measured() {
        const MS: u64 = 1_000_000;
        let mut watched = Watched {
            // It took half a second to start, and two to be gone.
            last_seen_boot_ns: 12_500 * MS,
            measuring_from: Some((7_510 * MS, 10)),
            measuring_until_ns: 10_500 * MS,
            ..Watched::default()
        };
        assert_eq!(periods(&watched, MS), Some(10 + 2_990));
        assert_eq!(periods(&watched, 0), None);
        watched.measuring_from = None;
        assert_eq!(periods(&watched, MS), None);
    }
}
