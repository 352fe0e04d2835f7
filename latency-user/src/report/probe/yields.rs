//! Tables of `probe yield`: what a call costs, whether it switches, and who ran instead.

use super::text::{beside, columns_of, frame, indented, ran_instead, signed};
use crate::{
    model::probe::{ProbeReport, YieldSeries},
    report::text::table::{self, known},
    units,
};

/// The whole report in text.
#[must_use]
pub fn render(report: &ProbeReport<YieldSeries>) -> String {
    let mut tables = summary(&report.series);
    for series in &report.series {
        tables += "\n";
        tables += &details(series);
    }
    frame(report, "yield: sched_yield, call by call", &tables)
}

/// Who a series is of.
fn name(series: &YieldSeries) -> String {
    let beside = beside(&series.load, series.preemption.as_deref());
    format!(
        "{}, CPU {}, beside {}{beside}",
        series.policy, series.cpu, series.peer
    )
}

/// All series beside each other.
fn summary(series: &[YieldSeries]) -> String {
    let columns = [
        "yields",
        "count",
        "kernel saw",
        "switched",
        "share",
        "per yield",
        "verdict",
    ];
    let mut rows = vec![table::cells(columns)];
    rows.extend(series.iter().map(|series| {
        vec![
            name(series),
            units::count(series.yields),
            known(series.kernel_saw, units::count),
            units::count(series.switched),
            units::percent(series.switched_pct),
            known(series.ns_per_yield, signed),
            series.verdict.verdict.clone(),
        ]
    }));
    table::aligned("<>>>>><", &rows)
}

/// Both populations of one series, and who ran instead.
fn details(series: &YieldSeries) -> String {
    let mut rows = vec![table::cells([
        &name(series),
        "calls",
        "min",
        "mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
    ])];
    let populations = [
        ("switched", &series.switched_ns),
        ("came back at once", &series.unswitched_ns),
        ("lost the CPU otherwise", &series.lost_ns),
    ];
    for (name, population) in populations {
        if population.count > 0 {
            let mut row = vec![name.to_owned(), units::count(population.count)];
            row.extend(columns_of(population));
            rows.push(row);
        }
    }
    table::aligned("<>>>>>>>>", &rows) + &closing(series)
}

fn closing(series: &YieldSeries) -> String {
    let mut lines = ran_instead(&series.ran_instead);
    if series.ended_by != "count" {
        lines.push(format!("ended by: {}", series.ended_by));
    }
    lines.extend(series.verdict.reasons.iter().cloned());
    lines.push(format!(
        "the recorder counted {} switches by yield; {} of those it saw are in no call; \
         at worst a wait was {} longer than its call",
        units::count(series.kernel_switched),
        units::count(series.unmatched),
        units::duration(series.worst_disagreement_ns)
    ));
    indented(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::probe::{Figures, RanInstead, Verdict};

    fn series() -> YieldSeries {
        YieldSeries {
            policy: "other".into(),
            cpu: 1,
            peer: "spinner",
            load: "none".into(),
            yields: 1_425,
            kernel_saw: Some(1_425),
            switched: 516,
            switched_pct: 36.2,
            kernel_switched: 516,
            worst_disagreement_ns: 40,
            ns_per_yield: Some(1_406_275),
            switched_ns: Figures {
                count: 516,
                sum_ns: 2_000_000_000,
                min_ns: Some(2_990_000),
                mean_ns: Some(3_880_000),
                max_ns: Some(4_010_000),
                p50_ns: Some(3_990_000),
                p90_ns: Some(4_000_000),
                ..Figures::default()
            },
            ran_instead: vec![RanInstead {
                comm: "spinner".into(),
                tid: 77,
                is_peer: true,
                count: 516,
                sum_ns: 2_000_000_000,
                mean_ns: 3_880_000,
                max_ns: 4_010_000,
                ..RanInstead::default()
            }],
            ended_by: "time",
            verdict: Verdict {
                verdict: "yield ignored 64 %".into(),
                ..Verdict::default()
            },
            ..YieldSeries::default()
        }
    }

    #[test]
    fn tables_say_what_a_yield_was() {
        insta::assert_snapshot!(summary(&[series()]) + &details(&series()));
    }
}
