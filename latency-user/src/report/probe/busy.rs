//! Tables of `probe busy`: what was lost, to what, and on demand every gap.

use super::text::{beside, columns_of, frame, indented, ran_instead, signed};
use crate::{
    model::probe::{BusySeries, CauseGaps, Pair, ProbeReport},
    report::text::table::{self, known},
    units,
};

/// Culprits of a cause that are named.
const N_NAMED: usize = 5;

/// The whole report in text.
#[must_use]
pub fn render(report: &ProbeReport<BusySeries>) -> String {
    let mut tables = summary(&report.series);
    for series in &report.series {
        tables += "\n";
        tables += &details(series);
    }
    for series in &report.series {
        if let Some(pairs) = &series.pairs {
            tables += "\n";
            tables += &name(series);
            tables += "\n";
            tables += &list(pairs);
        }
    }
    frame(
        report,
        "busy: a loop that reads the clock, and what interrupted it",
        &tables,
    )
}

/// Who a series is of.
fn name(series: &BusySeries) -> String {
    let beside = beside(&series.load, series.preemption.as_deref());
    format!("{}, CPU {}{beside}", series.policy, series.cpu)
}

/// All series beside each other.
fn summary(series: &[BusySeries]) -> String {
    let columns = [
        "interruptions",
        "gaps",
        "lost",
        "share",
        "mean",
        "longest",
        "HZ",
        "turn",
        "threshold",
        "verdict",
    ];
    let mut rows = vec![table::cells(columns)];
    rows.extend(series.iter().map(|series| {
        vec![
            name(series),
            units::count(series.gaps.count),
            units::duration(series.lost_ns),
            units::percent(series.lost_pct),
            known(series.gaps.mean_ns, signed),
            known(series.gaps.max_ns, signed),
            known(series.hz, units::count),
            units::duration(series.turn.median_ns),
            units::duration(series.threshold_ns),
            series.verdict.verdict.clone(),
        ]
    }));
    table::aligned("<>>>>>>>><", &rows)
}

/// The gaps of one series by cause.
fn details(series: &BusySeries) -> String {
    let mut rows = vec![table::cells([
        &name(series),
        "gaps",
        "per second",
        "sum",
        "in events",
        "min",
        "mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
    ])];
    let causes = &series.causes;
    let named = [
        ("the tick", &causes.tick),
        ("interrupts", &causes.irq),
        ("softirqs", &causes.softirq),
        ("other CPUs (IPI)", &causes.ipi),
        ("other tasks", &causes.preempted),
        ("lower classes (throttled)", &causes.throttled),
        ("unexplained", &causes.unexplained),
    ];
    for (name, gaps) in named {
        if gaps.length.count > 0 {
            rows.push(row(name, gaps));
            rows.extend(culprits(gaps));
        }
    }
    table::aligned("<>>>>>>>>>>>", &rows) + &closing(series)
}

fn row(name: &str, gaps: &CauseGaps) -> Vec<String> {
    let mut row = vec![
        name.to_owned(),
        units::count(gaps.length.count),
        format!("{:.1}", gaps.per_second),
        units::duration(gaps.length.sum_ns.unsigned_abs()),
        units::duration(gaps.kernel_ns),
    ];
    row.extend(columns_of(&gaps.length));
    row
}

/// Who it was; not where the cause says it already.
fn culprits(gaps: &CauseGaps) -> Vec<Vec<String>> {
    let is_tick_alone = matches!(&gaps.by[..], [only] if only.name == "tick");
    let named = if is_tick_alone { &[][..] } else { &gaps.by[..] };
    let shown = named.iter().take(N_NAMED).map(|by| {
        let name = match by.tid {
            Some(tid) if tid != 0 => format!("  {}[{tid}]", by.name),
            _ => format!("  {}", by.name),
        };
        let mut cells = vec![
            name,
            units::count(by.count),
            String::new(),
            units::duration(by.sum_ns),
        ];
        cells.resize(11, String::new());
        cells.push(units::duration(by.max_ns));
        cells
    });
    shown.collect()
}

fn closing(series: &BusySeries) -> String {
    let mut lines = vec![
        format!(
            "{} gaps without an event, {} events without a gap",
            units::count(series.gaps_without_event),
            units::count(series.events_without_gap)
        ),
        format!(
            "{} ticks asked for another task; after {} of them the same one went on",
            units::count(series.asking_ticks),
            units::count(series.repicked_ticks)
        ),
    ];
    if series.dropped_gaps > 0 {
        lines.push(format!(
            "{} gaps found no room: their time is in what was lost, and nothing else",
            units::count(series.dropped_gaps)
        ));
    }
    if series.worst_disagreement_ns > 0 {
        lines.push(format!(
            "at worst the events in a gap were {} longer than the gap",
            units::duration(series.worst_disagreement_ns)
        ));
    }
    lines.extend(ran_instead(&series.ran_instead));
    lines.extend(series.verdict.reasons.iter().cloned());
    indented(&lines)
}

/// Every gap: its length, the time to the next, what the kernel has of it, and its cause.
fn list(pairs: &[Pair]) -> String {
    let mut rows = vec![table::cells([
        "length µs",
        "to the next µs",
        "in events µs",
        "cause",
    ])];
    rows.extend(pairs.iter().map(|pair| {
        let by = pair.by.as_ref().filter(|by| *by != pair.cause);
        let by = by.map_or_else(String::new, |by| format!(" ({by})"));
        vec![
            units::micros(pair.length_ns),
            units::micros(pair.to_next_ns),
            units::micros(pair.kernel_ns),
            format!("{}{by}", pair.cause),
        ]
    }));
    table::aligned(">>><", &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::probe::{Figures, GapCauses, GapsBy, TurnFigures, Verdict};

    fn gaps(count: u64, each_ns: i64, by: &[(&str, Option<u32>)]) -> CauseGaps {
        let n = i64::try_from(count).unwrap();
        CauseGaps {
            per_second: 100.0,
            length: Figures {
                count,
                sum_ns: n * each_ns,
                min_ns: Some(each_ns),
                mean_ns: Some(each_ns),
                max_ns: Some(each_ns),
                p50_ns: Some(each_ns),
                ..Figures::default()
            },
            kernel_ns: (n * each_ns / 2).unsigned_abs(),
            by: by
                .iter()
                .map(|(name, tid)| GapsBy {
                    name: (*name).to_owned(),
                    tid: *tid,
                    count,
                    sum_ns: (n * each_ns).unsigned_abs(),
                    max_ns: each_ns.unsigned_abs(),
                })
                .collect(),
        }
    }

    fn pair(length_ns: u64, to_next_ns: u64, cause: &'static str, by: Option<&str>) -> Pair {
        Pair {
            length_ns,
            to_next_ns,
            kernel_ns: length_ns / 2,
            cause,
            by: by.map(str::to_owned),
            ..Pair::default()
        }
    }

    #[test]
    fn tables_say_what_was_lost_to_whom() {
        let series = BusySeries {
            policy: "fifo:50".into(),
            cpu: 1,
            load: "none".into(),
            threshold_ns: 600,
            turn: TurnFigures {
                min_ns: 20,
                median_ns: 30,
            },
            hz: Some(250),
            lost_ns: 120_000_000,
            lost_pct: 1.2,
            gaps: gaps(3_500, 34_000, &[]).length,
            causes: GapCauses {
                tick: gaps(2_500, 10_000, &[("tick", None)]),
                irq: gaps(10, 20_000, &[("virtio2-input.0", None)]),
                preempted: gaps(100, 950_000, &[("workload", Some(77))]),
                ..GapCauses::default()
            },
            events_without_gap: 2,
            asking_ticks: 3,
            repicked_ticks: 1,
            verdict: Verdict {
                verdict: "explained".into(),
                ..Verdict::default()
            },
            ..BusySeries::default()
        };
        let pairs = [
            pair(9_900, 966_870, "tick", Some("tick")),
            pair(9_980, 938_640, "irq", Some("eth0")),
            pair(7_730, 20_390, "unexplained", None),
        ];
        let shown = [
            summary(std::slice::from_ref(&series)),
            details(&series),
            list(&pairs),
        ];
        insta::assert_snapshot!(shown.join("\n"));
    }
}
