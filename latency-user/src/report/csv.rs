//! CSV: a row for the totals and one for each task or group, every figure under a key with its unit.
//!
//! Values are the integers of the JSON document; what a row does not have is empty. Lists have no
//! place in a row, so preemptors, culprits and wakers are in the JSON only. Rows of intervals have one more column,
//! `interval`, empty for the whole recording, and no verdict of an audit: a stint that lasts over
//! the end of an interval would look like a difference.

use super::VERSION;
use crate::model::{
    Audit, CauseStats, GroupBy, Parts, Report, RowIdent, Stats, StolenStats, WaitStats,
};

/// A row: keys and values, in the order of the columns.
type Cells = Vec<(String, String)>;

/// What a row covers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Span {
    Interval,
    Recording,
}

/// The whole report with its header.
#[must_use]
pub fn render(report: &Report) -> String {
    let rows = rows(report, Span::Recording);
    lines(std::iter::once(keys(&rows)).chain(rows.iter().map(values)))
}

/// The header of rows of intervals.
#[must_use]
pub fn interval_header() -> String {
    let no_rows = rows(&Report::default(), Span::Recording);
    let mut header = keys(&no_rows);
    header.insert(0, "interval");
    lines([header])
}

/// The rows of one interval; the first is number 1.
#[must_use]
pub fn interval_rows(report: &Report, index: u64) -> String {
    rows_after(&rows(report, Span::Interval), &index.to_string())
}

/// The rows of the whole recording, after those of its intervals.
#[must_use]
pub fn final_rows(report: &Report) -> String {
    rows_after(&rows(report, Span::Recording), "")
}

fn rows_after(rows: &[Cells], interval: &str) -> String {
    lines(rows.iter().map(|row| {
        let mut values = values(row);
        values.insert(0, interval);
        values
    }))
}

/// The totals, then all rows.
fn rows(report: &Report, span: Span) -> Vec<Cells> {
    let verdict = |audit: &Audit| (span == Span::Recording).then_some(audit.ok);
    let all = RowIdent {
        n_tasks: report.n_tasks,
        ..RowIdent::default()
    };
    let totals = cells("total", &all, &report.totals, verdict(&report.audit));
    let scope = match report.by {
        GroupBy::Tid => "tid",
        GroupBy::Pid => "pid",
        GroupBy::Comm => "comm",
        GroupBy::Cgroup => "cgroup",
    };
    let rows = report.rows.iter();
    let rows = rows.map(|row| cells(scope, &row.ident, &row.stats, verdict(&row.audit)));
    std::iter::once(totals).chain(rows).collect()
}

fn cells(scope: &str, ident: &RowIdent, stats: &Stats, audit_ok: Option<bool>) -> Cells {
    let mut cells = Cells::new();
    let mut push = |key: &str, value: String| cells.push((key.to_owned(), value));
    push("schedlat_version", VERSION.to_owned());
    push("scope", scope.to_owned());
    push("tid", optional(ident.tid));
    push("tgid", optional(ident.tgid));
    push("comm", optional(ident.comm.as_ref()));
    push("process_comm", optional(ident.process_comm.as_ref()));
    push("cgroup", optional(ident.cgroup.as_ref()));
    push("start_time_ns", optional(ident.start_time_ns));
    push("exited", ident.exited.to_string());
    push("is_self", ident.is_self.to_string());
    push("n_tasks", ident.n_tasks.to_string());
    push("run_delay_ns", stats.run_delay_ns.to_string());
    push("run_delay_kernel_ns", stats.run_delay_kernel_ns.to_string());
    push("waited_ns", stats.waited_ns.to_string());
    push("on_cpu_ns", stats.on_cpu_ns.to_string());
    push("voluntary_switches", stats.switches.voluntary.to_string());
    push(
        "involuntary_switches",
        stats.switches.involuntary.to_string(),
    );
    push("yield_switches", stats.switches.r#yield.to_string());
    push("migrations", stats.migrations.to_string());
    push("wakeups_not_asleep", stats.wakeups_not_asleep.to_string());
    push("open_at_start", stats.censored.open_at_start.to_string());
    push(
        "open_at_start_ns",
        stats.censored.open_at_start_ns.to_string(),
    );
    push("open_at_end", stats.censored.open_at_end.to_string());
    push("open_at_end_ns", stats.censored.open_at_end_ns.to_string());
    push(
        "open_at_end_max_ns",
        stats.censored.open_at_end_max_ns.to_string(),
    );
    push("audit_ok", optional(audit_ok));
    cells.extend(wait_cells("wakeup", &stats.waits.wakeup));
    cells.extend(wait_cells("preemption", &stats.waits.preemption));
    cells.extend(wait_cells("new_task", &stats.waits.new_task));
    cells.extend(wait_cells("wakeup_latency", &stats.wakeup_latency));
    cells.extend(cause_cells("tick", stats.causes.tick));
    cells.extend(cause_cells("hrtick", stats.causes.hrtick));
    cells.extend(cause_cells("wakeup", stats.causes.wakeup));
    cells.extend(cause_cells("higher_class", stats.causes.higher_class));
    cells.extend(cause_cells("yield", stats.causes.r#yield));
    cells.extend(cause_cells("throttled", stats.causes.throttled));
    cells.extend(cause_cells("stopper", stats.causes.stopper));
    cells.extend(cause_cells("unknown", stats.causes.unknown));
    cells.extend(part_cells(&stats.parts));
    cells.extend(stolen_cells(stats.stolen));
    cells
}

fn wait_cells(name: &str, waits: &WaitStats) -> impl Iterator<Item = (String, String)> {
    let cells = [
        ("count", waits.count.to_string()),
        ("sum_ns", waits.sum_ns.to_string()),
        ("min_ns", waits.min_ns.to_string()),
        ("max_ns", waits.max_ns.to_string()),
        ("p50_ns", optional(waits.p50_ns)),
        ("p90_ns", optional(waits.p90_ns)),
        ("p99_ns", optional(waits.p99_ns)),
        ("p999_ns", optional(waits.p999_ns)),
    ];
    cells
        .map(|(key, value)| (format!("{name}_{key}"), value))
        .into_iter()
}

fn cause_cells(name: &str, cause: CauseStats) -> impl Iterator<Item = (String, String)> {
    let CauseStats {
        count,
        sum_ns,
        max_ns,
    } = cause;
    let cells = [("count", count), ("sum_ns", sum_ns), ("max_ns", max_ns)];
    cells
        .map(|(key, value)| (format!("cause_{name}_{key}"), value.to_string()))
        .into_iter()
}

fn part_cells(parts: &Parts) -> impl Iterator<Item = (String, String)> {
    let cell = |(key, ns): (&str, u64)| (format!("part_{key}_sum_ns"), ns.to_string());
    parts.list().map(cell).into_iter()
}

fn stolen_cells(stolen: StolenStats) -> impl Iterator<Item = (String, String)> {
    let cells = [
        ("irq_ns", stolen.irq_ns),
        ("softirq_ns", stolen.softirq_ns),
        ("tick_ns", stolen.tick_ns),
        ("irqs", stolen.irqs),
        ("softirqs", stolen.softirqs),
        ("ticks", stolen.ticks),
    ];
    cells
        .map(|(key, value)| (format!("stolen_{key}"), value.to_string()))
        .into_iter()
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The keys of the columns. There is always a row, that of the totals.
fn keys(rows: &[Cells]) -> Vec<&str> {
    rows.iter()
        .take(1)
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect()
}

fn values(row: &Cells) -> Vec<&str> {
    row.iter().map(|(_, value)| value.as_str()).collect()
}

fn lines<'a>(rows: impl IntoIterator<Item = Vec<&'a str>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        // SANITY: memory takes every write, and all rows have the same columns.
        writer.write_record(row).expect("rows are of one length");
    }
    let bytes = writer.into_inner().expect("memory takes every write");
    // SANITY: all that was written is text, and the quotes the writer adds are ASCII.
    String::from_utf8(bytes).expect("CSV of text is text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn columns_keep_their_names() {
        let text = render(&fixture::report()).replace(VERSION, "VERSION");
        insta::assert_snapshot!("csv", text);
    }

    #[test]
    fn interval_is_the_first_column() {
        let text = interval_header()
            + &interval_rows(&fixture::report(), 2)
            + &final_rows(&fixture::report());
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().clone();
        assert_eq!(&header[0], "interval");
        let audit = header.iter().position(|key| key == "audit_ok").unwrap();
        let shown: Vec<_> = reader
            .records()
            .map(|row| {
                row.map(|row| format!("{},{}", &row[0], &row[audit]))
                    .unwrap()
            })
            .collect();
        assert_eq!(shown, ["2,", "2,", "2,", ",true", ",true", ",true"]);
    }

    #[test]
    fn name_with_quotes_and_commas_stays_one_value() {
        let mut report = fixture::report();
        report.rows[0].ident.comm = Some("a\",b".into());
        let text = render(&report);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let row = reader.records().nth(1).unwrap().unwrap();
        assert_eq!(&row[4], "a\",b");
    }

    #[test]
    fn empty_report_has_a_row_of_zeros() {
        assert_eq!(render(&Report::default()).lines().count(), 2);
    }
}
