//! Repetitions summed up: means and bounds column by column, and delays by cause.

use std::collections::BTreeMap;

use crate::model::{BenchFigures, BenchRun, BenchSummary, DelayByCause, Statistic};

/// Three rows for each label, in the order of `labels`.
#[must_use]
pub fn summary(runs: &[BenchRun], labels: &[String]) -> Vec<BenchSummary> {
    labels
        .iter()
        .flat_map(|label| {
            let figures: Vec<_> = runs
                .iter()
                .filter(|run| run.label == *label)
                .map(|run| as_floats(&run.figures))
                .collect();
            rows(label, &figures)
        })
        .collect()
}

fn rows(label: &str, figures: &[BenchFigures<f64>]) -> Vec<BenchSummary> {
    let row = |statistic, over: fn(&[f64]) -> f64| BenchSummary {
        label: label.to_owned(),
        statistic,
        n_runs: figures.len() as u64,
        figures: column_by_column(figures, over),
    };
    if figures.is_empty() {
        return Vec::new();
    }
    vec![
        row(Statistic::Average, mean),
        row(Statistic::Minimum, |values| {
            values.iter().copied().fold(f64::INFINITY, f64::min)
        }),
        row(Statistic::Maximum, |values| {
            values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        }),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "a number of repetitions")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn column_by_column(
    figures: &[BenchFigures<f64>],
    over: impl Fn(&[f64]) -> f64,
) -> BenchFigures<f64> {
    let of = |column: fn(&BenchFigures<f64>) -> f64| {
        let values: Vec<_> = figures.iter().map(column).collect();
        over(&values)
    };
    let idle: Option<Vec<_>> = figures.iter().map(|it| it.idle_while_runnable_s).collect();
    BenchFigures {
        real_s: of(|it| it.real_s),
        cpu_s: of(|it| it.cpu_s),
        sys_pct: of(|it| it.sys_pct),
        tpt_pct: of(|it| it.tpt_pct),
        delay_s: of(|it| it.delay_s),
        cxsw: of(|it| it.cxsw),
        voluntary: of(|it| it.voluntary),
        involuntary: of(|it| it.involuntary),
        r#yield: of(|it| it.r#yield),
        migrations: of(|it| it.migrations),
        waiters: of(|it| it.waiters),
        delay_per_switch_ns: of(|it| it.delay_per_switch_ns),
        idle_while_runnable_s: idle.map(|values| over(&values)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "means are read to a few digits")]
fn as_floats(figures: &BenchFigures<u64>) -> BenchFigures<f64> {
    let BenchFigures {
        real_s,
        cpu_s,
        sys_pct,
        tpt_pct,
        delay_s,
        waiters,
        idle_while_runnable_s,
        ..
    } = *figures;
    BenchFigures {
        real_s,
        cpu_s,
        sys_pct,
        tpt_pct,
        delay_s,
        cxsw: figures.cxsw as f64,
        voluntary: figures.voluntary as f64,
        involuntary: figures.involuntary as f64,
        r#yield: figures.r#yield as f64,
        migrations: figures.migrations as f64,
        waiters,
        delay_per_switch_ns: figures.delay_per_switch_ns as f64,
        idle_while_runnable_s,
    }
}

/// Both accounts of the delays of all repetitions, the largest first.
#[must_use]
pub fn delay_by_cause(runs: &[BenchRun]) -> Vec<DelayByCause> {
    let mut causes: BTreeMap<&'static str, DelayByCause> = BTreeMap::new();
    for (cause, account) in runs.iter().flat_map(|run| &run.audit.by_cause) {
        let all = &mut causes.entry(*cause).or_default().account;
        all.count += account.count;
        all.ours_ns += account.ours_ns;
        all.kernel_ns += account.kernel_ns;
    }
    let named = causes.into_iter().map(|(cause, all)| DelayByCause {
        cause,
        account: all.account,
    });
    let mut all: Vec<_> = named.collect();
    all.sort_by_key(|delay| std::cmp::Reverse(delay.account.ours_ns));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Audit, AuditClass};

    #[test]
    fn summary_has_three_rows_for_each_label_in_their_order() {
        let run = |label: &str, real_ms: u32| BenchRun {
            label: label.into(),
            figures: BenchFigures {
                real_s: f64::from(real_ms) / 1000.0,
                ..BenchFigures::default()
            },
            ..BenchRun::default()
        };
        let runs = [run("b", 300), run("a", 100), run("b", 100), run("b", 200)];
        let labels = ["a", "b", "never ran"].map(str::to_owned);
        let rows = summary(&runs, &labels);
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.label.as_str(), row.statistic, row.n_runs))
            .collect();
        let (average, minimum, maximum) =
            (Statistic::Average, Statistic::Minimum, Statistic::Maximum);
        assert_eq!(
            found,
            [
                ("a", average, 1),
                ("a", minimum, 1),
                ("a", maximum, 1),
                ("b", average, 3),
                ("b", minimum, 3),
                ("b", maximum, 3),
            ]
        );
        let real = |index: usize| rows[index].figures.real_s;
        for (index, expected) in [(3, 0.2), (4, 0.1), (5, 0.3)] {
            assert!((real(index) - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn delays_of_all_repetitions_add_up_by_cause() {
        let run = |tick: u64, wakeup: u64| {
            let class = |ours_ns| AuditClass {
                count: 1,
                ours_ns,
                kernel_ns: ours_ns - 1,
            };
            BenchRun {
                audit: Audit {
                    by_cause: [("after_wakeup", class(wakeup)), ("tick", class(tick))].into(),
                    ..Audit::default()
                },
                ..BenchRun::default()
            }
        };
        let delays = delay_by_cause(&[run(100, 10), run(300, 20)]);
        assert_eq!((delays[0].cause, delays[1].cause), ("tick", "after_wakeup"));
        let tick = delays[0].account;
        assert_eq!((tick.count, tick.ours_ns, tick.kernel_ns), (2, 400, 398));
    }
}
