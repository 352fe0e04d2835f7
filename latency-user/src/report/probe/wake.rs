//! Tables of `probe wake`: how late, and what the lateness is made of.

use super::text::{columns_of, frame, signed, under};
use crate::{
    model::probe::{Figures, ProbeReport, WakeSeries},
    report::text::table,
    units,
};

/// The whole report in text.
#[must_use]
pub fn render(report: &ProbeReport<WakeSeries>) -> String {
    let title = report.series.first().map_or_else(
        || "wake: nothing was measured".to_owned(),
        |series| {
            format!(
                "wake: a timer every {}, by {}",
                units::duration(series.interval_ns),
                series.via
            )
        },
    );
    let mut tables = summary(&report.series);
    for series in &report.series {
        tables += "\n";
        tables += &details(series);
    }
    frame(report, &title, &tables)
}

/// Who a series is of.
fn name(series: &WakeSeries) -> String {
    let place = series
        .cpu
        .map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let model = under(series.preemption.as_deref());
    format!("{}, {place}, load {}{model}", series.policy, series.load)
}

/// All series beside each other.
fn summary(series: &[WakeSeries]) -> String {
    let columns = [
        "lateness", "samples", "missed", "min", "mean", "p50", "p90", "p99", "p99.9", "max",
    ];
    let mut rows = vec![table::cells(columns)];
    rows.extend(series.iter().map(|series| {
        let mut row = vec![
            name(series),
            units::count(series.samples.taken),
            units::count(series.samples.missed_periods),
        ];
        row.extend(columns_of(&series.lateness));
        row
    }));
    table::aligned("<>>>>>>>>>", &rows)
}

/// What the lateness of one series is made of, and what the kernel says of it.
fn details(series: &WakeSeries) -> String {
    let mut rows = vec![table::cells([
        &name(series),
        "samples",
        "share",
        "min",
        "mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
    ])];
    let whole_ns: i64 = series.phases.list().iter().map(|it| it.1.sum_ns).sum();
    for (key, figures) in series.phases.list() {
        rows.push(row(phase_name(key), &figures, Some(whole_ns)));
    }
    rows.push(row("lateness", &series.lateness, None));
    if series.samples.missed_periods > 0 {
        rows.push(row("  of every intended period", &series.intended, None));
    }
    if series.slack.max_ns.is_some_and(|ns| ns > 1) {
        rows.push(row("timer slack, no lateness", &series.slack, None));
    }
    rows.push(row("jitter", &series.jitter, None));
    rows.push(row(
        "  shorter than the period",
        &series.jitter_negative,
        None,
    ));
    table::aligned("<>>>>>>>>>", &rows) + &closing(series)
}

fn row(name: &str, figures: &Figures, whole_ns: Option<i64>) -> Vec<String> {
    let share = whole_ns.map_or_else(String::new, |whole_ns| {
        let part = figures.sum_ns.max(0).unsigned_abs();
        units::percent(100.0 * units::ratio(part, whole_ns.max(0).unsigned_abs()))
    });
    let mut row = vec![name.to_owned(), units::count(figures.count), share];
    row.extend(columns_of(figures));
    row
}

fn phase_name(key: &str) -> &'static str {
    match key {
        "expiry_lateness" => "until the timer fired",
        "timer_handler" => "until it woke the thread",
        "placement" => "until it was queued",
        "ipi_idle_exit" => "queued, CPU left idle",
        "queue_wait" => "queued, CPU had others",
        "switch_return" => "switch and return",
        _ => "unaccounted",
    }
}

/// The lines under the phases.
fn closing(series: &WakeSeries) -> String {
    let samples = &series.samples;
    let mut lines = Vec::new();
    if let Some(worst_ns) = series.composed_worst_ns {
        lines.push(format!(
            "composed worst case: {}, were the largest of each phase to come together",
            signed(worst_ns)
        ));
    }
    if samples.missed_periods > 0 {
        lines.push(format!(
            "missed {} periods: {} of the samples, and {} of the intended periods, were later than {}",
            units::count(samples.missed_periods),
            units::percent(series.late_by_a_period_pct),
            units::percent(series.intended_late_by_a_period_pct),
            units::duration(series.interval_ns)
        ));
    }
    let apart = [
        (samples.missed_switch, "cut by a switch without event"),
        (samples.other_waker, "woken by something else"),
        (samples.awake, "not asleep yet"),
        (samples.unmatched, "not seen"),
    ];
    let mut matched = format!("{} matched", units::count(samples.matched));
    for (n, what) in apart.into_iter().filter(|(n, _)| *n > 0) {
        matched += &[", ", &units::count(n), " ", what].concat();
    }
    lines.push(format!(
        "the kernel saw {} wakeups for {} samples, {matched}; worst disagreement {}",
        units::count(samples.kernel_saw),
        units::count(samples.taken),
        units::duration(series.disagreement.max_ns)
    ));
    lines.push(format!("verdict: {}", series.verdict.verdict));
    lines.extend(
        series
            .verdict
            .reasons
            .iter()
            .map(|reason| format!("  {reason}")),
    );
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::probe::{Conditions, Verdict, WakePhases, WakeSamples},
        report::fixture,
    };

    fn figures(count: u64, ns: i64) -> Figures {
        Figures {
            count,
            sum_ns: ns * count.cast_signed(),
            min_ns: Some(ns),
            mean_ns: Some(ns),
            max_ns: Some(ns * 2),
            p50_ns: Some(ns),
            ..Figures::default()
        }
    }

    fn series() -> WakeSeries {
        WakeSeries {
            policy: "fifo:80".into(),
            cpu: Some(1),
            load: "cpu".into(),
            via: "nanosleep",
            interval_ns: 1_000_000,
            samples: WakeSamples {
                taken: 60,
                kernel_saw: 59,
                matched: 57,
                other_waker: 1,
                awake: 0,
                missed_switch: 2,
                unmatched: 0,
                missed_periods: 40,
            },
            lateness: figures(60, 10_000),
            intended: figures(100, 20_000),
            late_by_a_period_pct: 1.7,
            intended_late_by_a_period_pct: 40.0,
            slack: figures(57, 50_000),
            jitter: figures(59, -20),
            jitter_negative: figures(30, -40),
            phases: WakePhases {
                expiry_lateness: figures(57, 4_000),
                switch_return: figures(57, 6_000),
                ..WakePhases::default()
            },
            composed_worst_ns: Some(20_000),
            verdict: Verdict {
                verdict: "agrees".into(),
                reasons: vec!["a reason".into()],
                is_breach: false,
            },
            ..WakeSeries::default()
        }
    }

    #[test]
    fn lateness_is_told_with_what_it_is_made_of() {
        let report = ProbeReport {
            host: fixture::report().host,
            conditions: Conditions::default(),
            warnings: Vec::new(),
            series: vec![series()],
            record: fixture::report(),
        };
        let text = render(&report);
        let (own, _) = text.split_once("\nconditions").unwrap();
        insta::assert_snapshot!(own.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
    }

    #[test]
    fn what_did_not_happen_is_not_told() {
        let quiet = WakeSeries {
            slack: figures(9, 0),
            samples: WakeSamples::default(),
            ..series()
        };
        let text = details(&quiet);
        for absent in ["slack", "missed", "intended", "without event", "not seen"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
    }
}
