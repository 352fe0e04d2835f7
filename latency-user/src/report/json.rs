//! The JSON contract: one document, or a line of JSON for each interval.
//!
//! `schema` names the meaning of the keys: a key whose meaning changes gets another name, and a
//! document that loses one another schema. Durations are integers in nanoseconds, and every key
//! says so; shares and percents are floats. Lines of one recording come as one
//! `schedlat.record.start`, any number of `schedlat.record.interval` and `schedlat.record.wait`, one
//! `schedlat.record`.

use latency_common::hist::{HistKind, bucket_high_ns, bucket_low_ns};
use serde::Serialize;

use super::VERSION;
use crate::analysis::escape;
use crate::model::{
    Audit, Autopsy, Buckets, Censored, Cost, DetailLevel, FlightDump, GroupBy, Host,
    InterruptTotalStats, Losses, OverStats, PathStats, Report, Row, RowIdent, Stats, Tally, Window,
};

/// The whole report.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    version: &'static str,
    host: &'a Host,
    window: Window,
    target: &'a str,
    by: GroupBy,
    detail: DetailLevel,
    n_tasks: u64,
    n_processes: u64,
    totals: Totals<'a>,
    #[serde(flatten)]
    rows: Rows<&'a [Row]>,
    interrupts: &'a [InterruptTotalStats],
    longest: &'a [Autopsy],
    #[serde(flatten)]
    stacks: &'a PathStats,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<OverStats>,
    audit: &'a Audit,
    censored: Censored,
    loss: Losses,
    cost: Cost,
    steal_ns: u64,
    degraded: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    flight: &'a [FlightDump],
}

/// What is known when recording begins.
#[derive(Serialize)]
struct Start<'a> {
    schema: &'static str,
    version: &'static str,
    host: &'a Host,
    target: &'a str,
    window: WindowStart,
}

#[derive(Serialize)]
struct WindowStart {
    start_at_ns: u64,
    start_wall_ns: u64,
}

/// One interval. It has no audit: a stint that lasts over its end would look like a difference.
#[derive(Serialize)]
struct IntervalLine<'a> {
    schema: &'static str,
    version: &'static str,
    interval: u64,
    window: Window,
    by: GroupBy,
    n_tasks: u64,
    totals: Totals<'a>,
    #[serde(flatten)]
    rows: Rows<Vec<IntervalRow<'a>>>,
    interrupts: &'a [InterruptTotalStats],
    censored: Censored,
    loss: Losses,
    steal_ns: u64,
}

/// A wait over the threshold, as it ended.
#[derive(Serialize)]
struct WaitLine<'a> {
    schema: &'static str,
    version: &'static str,
    #[serde(flatten)]
    wait: &'a Autopsy,
    /// Such waits before this one that were too many to be shown.
    not_shown_before: u64,
}

/// The rows under the key that says what they are.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Rows<T> {
    Tasks(T),
    Groups(T),
}

#[derive(Serialize)]
struct IntervalRow<'a> {
    #[serde(flatten)]
    ident: &'a RowIdent,
    #[serde(flatten)]
    stats: &'a Stats,
}

#[derive(Serialize)]
struct Totals<'a> {
    #[serde(flatten)]
    stats: &'a Stats,
    histograms: Histograms,
}

/// Samples by bucket: `[low_ns, high_ns, count]`, both bounds within the bucket.
#[derive(Serialize)]
struct Histograms {
    wakeup: Vec<[u64; 3]>,
    preemption: Vec<[u64; 3]>,
    new_task: Vec<[u64; 3]>,
    wakeup_latency: Vec<[u64; 3]>,
    overflow: Overflow,
}

/// Samples beyond the last bucket.
#[derive(Serialize)]
struct Overflow {
    wakeup: u64,
    preemption: u64,
    new_task: u64,
    wakeup_latency: u64,
}

/// The whole report, for people to read too.
#[must_use]
pub fn render(report: &Report) -> String {
    ended(serde_json::to_string_pretty(&document(report)))
}

/// The first line of a recording that reports intervals, as soon as it measures.
#[must_use]
pub fn start_line(host: &Host, target: &str, start_at_ns: u64, start_wall_ns: u64) -> String {
    line(&Start {
        schema: "schedlat.record.start",
        version: VERSION,
        host,
        target: &escape::text(target),
        window: WindowStart {
            start_at_ns,
            start_wall_ns,
        },
    })
}

/// The line of one interval; the first is number 1.
#[must_use]
pub fn interval_line(report: &Report, index: u64) -> String {
    let rows = report.rows.iter();
    let rows = rows
        .map(|row| IntervalRow {
            ident: &row.ident,
            stats: &row.stats,
        })
        .collect();
    line(&IntervalLine {
        schema: "schedlat.record.interval",
        version: VERSION,
        interval: index,
        window: report.window,
        by: report.by,
        n_tasks: report.n_tasks,
        totals: totals(report),
        rows: by_kind(report.by, rows),
        interrupts: &report.interrupts,
        censored: report.censored,
        loss: report.loss,
        steal_ns: report.steal_ns,
    })
}

/// The line of a wait over the threshold, and how many before it were not shown.
#[must_use]
pub fn wait_line(wait: &Autopsy, not_shown_before: u64) -> String {
    line(&WaitLine {
        schema: "schedlat.record.wait",
        version: VERSION,
        wait,
        not_shown_before,
    })
}

/// The last line of a recording that reports intervals: the whole report.
#[must_use]
pub fn final_line(report: &Report) -> String {
    line(&document(report))
}

fn line(document: &impl Serialize) -> String {
    ended(serde_json::to_string(document))
}

/// A document with its last line ended.
pub(super) fn ended(document: serde_json::Result<String>) -> String {
    // SANITY: all keys are text, and memory takes every write.
    document.expect("a report is valid JSON") + "\n"
}

/// A document whose keys are those of `report`, behind its schema and our version.
pub(super) fn versioned(schema: &'static str, report: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: &'static str,
        version: &'static str,
        #[serde(flatten)]
        report: &'a T,
    }
    ended(serde_json::to_string_pretty(&Versioned {
        schema,
        version: VERSION,
        report,
    }))
}

/// The whole report as what it is in JSON, for documents that contain it.
pub(super) fn document(report: &Report) -> impl Serialize {
    Document {
        schema: "schedlat.record",
        version: VERSION,
        host: &report.host,
        window: report.window,
        target: &report.target,
        by: report.by,
        detail: report.detail,
        n_tasks: report.n_tasks,
        n_processes: report.n_processes,
        totals: totals(report),
        rows: by_kind(report.by, &report.rows),
        interrupts: &report.interrupts,
        longest: &report.longest,
        stacks: &report.stacks,
        over: report.over,
        audit: &report.audit,
        censored: report.censored,
        loss: report.loss,
        cost: report.cost,
        steal_ns: report.steal_ns,
        degraded: &report.degraded,
        flight: &report.flight,
    }
}

fn by_kind<T>(by: GroupBy, rows: T) -> Rows<T> {
    match by {
        GroupBy::Tid => Rows::Tasks(rows),
        GroupBy::Pid | GroupBy::Comm | GroupBy::Cgroup => Rows::Groups(rows),
    }
}

fn totals(report: &Report) -> Totals<'_> {
    let stats = &report.totals;
    Totals {
        stats,
        histograms: histograms(&stats.tally),
    }
}

fn histograms(tally: &Tally) -> Histograms {
    let of = |kind: HistKind| buckets(&tally.hists[kind as usize]);
    let overflow = |kind: HistKind| tally.hists[kind as usize].overflow;
    Histograms {
        wakeup: of(HistKind::Wakeup),
        preemption: of(HistKind::Preemption),
        new_task: of(HistKind::NewTask),
        wakeup_latency: of(HistKind::Latency),
        overflow: Overflow {
            wakeup: overflow(HistKind::Wakeup),
            preemption: overflow(HistKind::Preemption),
            new_task: overflow(HistKind::NewTask),
            wakeup_latency: overflow(HistKind::Latency),
        },
    }
}

fn buckets(buckets: &Buckets) -> Vec<[u64; 3]> {
    let bounds = |&(bucket, count): &(u16, u64)| {
        let bucket = usize::from(bucket);
        [bucket_low_ns(bucket), bucket_high_ns(bucket), count]
    };
    buckets.counts.iter().map(bounds).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::fixture;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    /// C085: the golden file of keys, types and units.
    #[test]
    fn document_keeps_its_contract() {
        let text = render(&fixture::report()).replace(VERSION, "VERSION");
        insta::assert_snapshot!("json", text);
    }

    #[test]
    fn final_line_is_the_document_on_one_line() {
        let report = fixture::report();
        let line = final_line(&report);
        assert_eq!(line.find('\n'), Some(line.len() - 1));
        assert_eq!(parsed(&line), parsed(&render(&report)));
    }

    #[test]
    fn interval_is_one_numbered_line_without_audit() {
        let line = interval_line(&fixture::report(), 3);
        assert_eq!(line.find('\n'), Some(line.len() - 1));
        let interval = parsed(&line);
        assert_eq!(interval["schema"], "schedlat.record.interval");
        assert_eq!(interval["interval"], 3);
        assert_eq!(interval["tasks"][0]["tid"], 4121);
        assert_eq!(interval["tasks"][0]["audit"], Value::Null);
        assert_eq!(interval["totals"]["histograms"]["wakeup"][0][2], 90);
    }

    #[test]
    fn start_is_known_before_anything_is_measured() {
        let start = parsed(&start_line(&fixture::report().host, "all tasks", 7, 8));
        assert_eq!(start["schema"], "schedlat.record.start");
        assert_eq!(start["window"]["start_at_ns"], 7);
        assert_eq!(start["host"]["n_cpus"], 2);
    }

    #[test]
    fn wait_is_one_line_that_counts_those_not_shown() {
        let line = wait_line(&fixture::report().longest[1], 4);
        assert_eq!(line.find('\n'), Some(line.len() - 1));
        let wait = parsed(&line);
        assert_eq!(wait["schema"], "schedlat.record.wait");
        assert_eq!(
            (&wait["wait_ns"], &wait["not_shown_before"]),
            (&2_900_000.into(), &4.into())
        );
        assert_eq!(wait["waker"]["name"], "NET_RX");
        assert_eq!(wait["spans"][0]["tid"], Value::Null);
    }

    #[test]
    fn groups_are_under_their_own_key() {
        let report = Report {
            by: GroupBy::Comm,
            ..fixture::report()
        };
        let document = parsed(&render(&report));
        assert!(document["groups"].is_array() && document["tasks"].is_null());
    }

    /// C079: no float, no rounding.
    #[test]
    fn large_counts_stay_integers() {
        let mut report = fixture::report();
        report.totals.waits.wakeup.count = 12_874_080;
        report.totals.on_cpu_ns = u64::MAX;
        let text = render(&report);
        assert!(text.contains("\"count\": 12874080,"));
        assert!(text.contains("\"on_cpu_ns\": 18446744073709551615,"));
    }

    /// C076: an empty result is valid too.
    #[test]
    fn empty_report_is_a_document() {
        let document = parsed(&render(&Report::default()));
        assert_eq!(document["tasks"], Value::Array(Vec::new()));
        assert_eq!(document["totals"]["waits"]["wakeup"]["count"], 0);
        assert_eq!(document["totals"]["waits"]["wakeup"]["p50_ns"], Value::Null);
    }
}
