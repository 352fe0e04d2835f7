//! The text report of `probe pingpong`: one line for each series, and what a round trip went to.

use super::text::frame;
use crate::{
    model::probe::{PingpongSeries, ProbeReport, WakeupMeans},
    report::text::table::{self, known},
    units,
};

/// The whole report.
#[must_use]
pub fn render(report: &ProbeReport<PingpongSeries>) -> String {
    let runs = report
        .series
        .first()
        .map(|series| &series.round_trip.runs_ns);
    let title = match runs.map_or(0, Vec::len) {
        0 => "pingpong: nothing was measured".to_owned(),
        1 => "pingpong: two threads hand a token to and fro, one run of each".to_owned(),
        n_runs => {
            format!("pingpong: two threads hand a token to and fro, medians of {n_runs} runs")
        }
    };
    frame(report, &title, &tables(&report.series))
}

fn tables(series: &[PingpongSeries]) -> String {
    let header = [
        "transport",
        "placement",
        "CPUs",
        "beside",
        "round trip",
        "p50",
        "p99",
        "MB/s",
        "switches",
        "local",
        "remote",
        "IPIs",
        "to queue",
        "queue wait",
        "idle exit",
        "migrations",
        "verdict",
    ];
    let rows: Vec<_> = [table::cells(header)]
        .into_iter()
        .chain(series.iter().map(row))
        .collect();
    let mut text = table::aligned("<<<<>>>>>>>>>>>><", &rows);
    text += "switches and IPIs are those of a round trip, to queue, queue wait and idle exit those of a wakeup\n";
    for series in series {
        for reason in &series.verdict.reasons {
            let words = [series.transport, series.placement, &beside(series)].join(" ");
            text += &[&words, ": ", reason, "\n"].concat();
        }
    }
    text
}

fn row(series: &PingpongSeries) -> Vec<String> {
    let WakeupMeans {
        to_queue_ns,
        queue_wait_ns,
        idle_exit_ns,
        ..
    } = series.wakeups;
    let cpus = series
        .cpus
        .map_or_else(String::new, |[one, other]| format!("{one}, {other}"));
    let figures = &series.round_trip.figures;
    let percentile = |ns| known(ns, |ns: i64| units::duration(ns.unsigned_abs()));
    vec![
        series.transport.to_owned(),
        series.placement.to_owned(),
        cpus,
        beside(series),
        known(series.round_trip.median_ns, units::duration),
        percentile(figures.p50_ns),
        percentile(figures.p99_ns),
        known(series.bandwidth_mb_s, |mb_s| format!("{mb_s:.0}")),
        known(series.switches_per_round_trip, |count| {
            format!("{count:.2}")
        }),
        known(series.local_pct, units::percent),
        known(series.remote_pct, units::percent),
        known(series.ipis_per_round_trip, |count| format!("{count:.2}")),
        known(to_queue_ns, units::duration),
        known(queue_wait_ns, units::duration),
        known(idle_exit_ns, units::duration),
        units::count(series.migrations),
        series.verdict.verdict.clone(),
    ]
}

/// Under what it ran.
fn beside(series: &PingpongSeries) -> String {
    let policy = Some(series.policy.as_str()).filter(|policy| *policy != "other");
    let words = [
        Some(series.load.as_str()),
        policy,
        series.preemption.as_deref(),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::probe::{Figures, RoundTrip, Verdict};

    #[test]
    fn each_series_is_a_line_and_its_reasons_follow() {
        let same = PingpongSeries {
            transport: "pipe",
            placement: "same",
            cpus: Some([1, 1]),
            policy: "other".into(),
            load: "none".into(),
            round_trip: RoundTrip {
                median_ns: Some(4_900),
                runs_ns: vec![4_900],
                figures: Figures {
                    p99_ns: Some(7_000),
                    ..Figures::default()
                },
            },
            bandwidth_mb_s: Some(1234.5),
            switches_per_round_trip: Some(2.0),
            local_pct: Some(100.0),
            remote_pct: Some(0.0),
            ipis_per_round_trip: Some(0.0),
            wakeups: WakeupMeans {
                count: 10,
                to_queue_ns: Some(250),
                queue_wait_ns: Some(1_100),
                idle_exit_ns: Some(0),
            },
            verdict: Verdict {
                verdict: "on one CPU".into(),
                reasons: vec!["a reason".into()],
                is_breach: false,
            },
            ..PingpongSeries::default()
        };
        let futex = PingpongSeries {
            transport: "futex",
            placement: "auto",
            policy: "fifo:1".into(),
            load: "cpu".into(),
            preemption: Some("lazy".into()),
            ..PingpongSeries::default()
        };
        insta::assert_snapshot!(tables(&[same, futex]));
    }
}
