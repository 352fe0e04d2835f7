//! The outputs as other programs read them: keys, numbers, lines, and hostile names.

use std::{collections::BTreeMap, thread, time::Duration};

use anyhow::{Context as _, Result};
use latency_tests::{
    check,
    load::Load,
    report::{Interval, Report, Stats},
    schedlat::Schedlat,
};
use serde_json::Value;

/// A figure that intervals must sum to.
type Figure = fn(&Stats) -> u64;

/// Not UTF-8, a quote, separators, a newline and an escape sequence.
const ODD_COMM: &str = "fffe223b7c0a1b5b33316d41";

#[test]
fn c035_a_hostile_name_breaks_no_format() -> Result<()> {
    let load = Load::workload(&format!("odd-comm {ODD_COMM} 30"))?;
    // Alone on a CPU it would wait for nobody, and have no row.
    let _rivals = [
        Load::workload("burn 30 --cpu 0")?,
        Load::workload("burn 30 --cpu 1")?,
    ];
    let brief = |format: &str| {
        let command = Schedlat::command("record").pid(load.pid());
        command
            .args(&format!("--for 500ms --format {format}"))
            .run()?
            .success()
    };
    let report = brief("json")?.report()?;
    let name = report.task(load.pid())?.comm.clone().context("no name")?;
    assert!(
        name.contains('A') && name.contains("[31m"),
        "not recognisable: {name:?}"
    );
    assert!(!name.contains(['\n', '\u{1b}']), "not escaped: {name:?}");
    for format in ["text", "csv"] {
        let output = brief(format)?.output();
        assert!(
            !output.contains('\u{1b}'),
            "{format} has a raw escape: {output:?}"
        );
        assert!(
            output.contains("[31m"),
            "{format} does not show the name: {output:?}"
        );
    }
    let csv = brief("csv")?.output();
    assert_eq!(
        csv.lines().count(),
        3,
        "a header, the totals and one row: {csv:?}"
    );
    Ok(())
}

#[test]
fn c070_every_line_arrives_when_it_is_made() -> Result<()> {
    let _load = Load::workload("burn 20 --cpu 1")?;
    let recorder = Schedlat::record().args("--interval 1s --for 4s");
    let outcome = recorder.run()?.success()?;
    let schemas: Vec<_> = outcome
        .documents()?
        .iter()
        .map(|line| line["schema"].clone())
        .collect();
    assert_eq!(
        schemas.first().context("no lines")?,
        "schedlat.record.start"
    );
    assert_eq!(schemas.last().context("no lines")?, "schedlat.record");
    let intervals: Vec<_> = outcome
        .lines
        .iter()
        .zip(&schemas)
        .filter(|(_, schema)| *schema == "schedlat.record.interval")
        .map(|((at, _), _)| *at)
        .collect();
    assert_eq!(intervals.len(), 4, "{schemas:?}");
    let ready = outcome.lines[0].0;
    for (n, at) in (1_u32..).zip(&intervals) {
        let late = (*at - ready).abs_diff(Duration::from_secs(1) * n);
        assert!(
            late < Duration::from_millis(150),
            "line {n} is {late:?} off"
        );
    }
    Ok(())
}

#[test]
fn c026_intervals_sum_to_the_final_report_and_do_not_drift() -> Result<()> {
    let _load = Load::program("hackbench", &["-T", "-g", "1", "-l", "1000000"])?;
    let recording = Schedlat::record().args("--interval 500ms").start()?;
    thread::sleep(Duration::from_millis(5_250));
    let documents = recording.interrupt()?.success()?.documents()?;
    let intervals = Interval::among(&documents)?;
    let last = Report::parse(&documents.last().context("no final document")?.to_string())?;
    check::sound(&last)?;
    let figures: [(&str, Figure); 6] = [
        ("ns waited", |stats| stats.waited_ns),
        ("wakeup waits", |stats| stats.waits.wakeup.count),
        ("ns waited after wakeups", |stats| stats.waits.wakeup.sum_ns),
        ("preemption waits", |stats| stats.waits.preemption.count),
        ("voluntary switches", |stats| stats.switches.voluntary),
        ("migrations", |stats| stats.migrations),
    ];
    for (name, figure) in figures {
        let sum: u64 = intervals
            .iter()
            .map(|interval| figure(&interval.totals))
            .sum();
        let total = figure(&last.totals);
        assert_eq!(
            sum, total,
            "{name}: the intervals sum to {sum}, the report says {total}"
        );
    }
    // The last one is the rest, up to the interrupt.
    for (n, interval) in intervals.iter().take(10).enumerate() {
        let begins = interval.window.start_at_ns - last.window.start_at_ns;
        let due = 500_000_000 * n as u64;
        assert!(
            begins.abs_diff(due) < 50_000_000,
            "interval {n} begins at {begins} ns"
        );
    }
    Ok(())
}

#[test]
fn c085_the_keys_of_the_contract_are_there_with_their_types() -> Result<()> {
    let load = Load::workload("pipe 20 --cpu 1 --peer-cpu 1")?;
    let recorder = Schedlat::record().pid(load.pid()).args("--for 1s");
    let document = recorder
        .run()?
        .success()?
        .documents()?
        .pop()
        .context("no document")?;
    let mut kinds = BTreeMap::new();
    collect_kinds("", &document, &mut kinds);
    let expected = include_str!("golden/record-keys.txt");
    for line in expected.lines() {
        let (key, kind) = line
            .split_once(": ")
            .context("the golden file is malformed")?;
        let found = kinds.get(key).map(String::as_str);
        assert_eq!(found, Some(kind), "key {key} of the contract");
    }
    for (key, kind) in &kinds {
        assert!(
            !key.ends_with("_ns") || kind == "integer" || kind == "null",
            "{key} is a {kind}"
        );
    }
    Ok(())
}

/// Every key path and the type of its value; elements of a list share one path.
fn collect_kinds(path: &str, value: &Value, kinds: &mut BTreeMap<String, String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
        Value::Number(_) => "float",
        Value::String(_) => "string",
        Value::Array(elements) => {
            for element in elements {
                collect_kinds(&format!("{path}[]"), element, kinds);
            }
            "list"
        }
        Value::Object(members) => {
            for (key, member) in members {
                let dot = if path.is_empty() { "" } else { "." };
                collect_kinds(&format!("{path}{dot}{key}"), member, kinds);
            }
            "object"
        }
    };
    if !path.is_empty() {
        kinds.insert(path.to_owned(), kind.to_owned());
    }
}

#[test]
fn c079_csv_holds_whole_integers() -> Result<()> {
    let load = Load::workload("pipe 20 --cpu 1 --peer-cpu 1")?;
    let csv = Schedlat::command("record")
        .pid(load.pid())
        .args("--for 2s --format csv");
    let output = csv.run()?.success()?.output();
    let mut lines = output.lines();
    let header: Vec<&str> = lines.next().context("no header")?.split(',').collect();
    let row: Vec<&str> = lines.next().context("no row")?.split(',').collect();
    assert_eq!(header.len(), row.len(), "{output}");
    let mut numbers = 0;
    for (key, value) in header.iter().zip(&row) {
        if key.ends_with("_ns") || key.ends_with("count") {
            assert!(
                value.is_empty() || value.parse::<u64>().is_ok(),
                "{key} is '{value}'"
            );
            numbers += 1;
        }
    }
    assert!(numbers > 10, "{header:?}");
    Ok(())
}

#[test]
fn c120_c038_groups_have_the_right_rows_and_one_grand_total() -> Result<()> {
    let line = "team 60 --threads 4 --thread-name pool --name twin";
    let twins = [Load::workload(line)?, Load::workload(line)?];
    for (by, n) in [("tid", 8), ("pid", 2), ("comm", 1), ("cgroup", 1)] {
        let recorder = Schedlat::record()
            .comm("pool")
            .args(&format!("--for 1s --by {by}"));
        let report = recorder.report()?;
        check::sound(&report)?;
        let rows = if by == "tid" {
            &report.tasks
        } else {
            &report.groups
        };
        assert_eq!(rows.len(), n, "rows by {by}");
        assert_eq!(
            rows.iter().map(|row| row.n_tasks).sum::<u64>(),
            8,
            "tasks by {by}"
        );
        if by == "tid" {
            for row in rows {
                assert_eq!(row.comm.as_deref(), Some("pool"));
                assert_eq!(
                    row.process_comm.as_deref(),
                    Some("twin"),
                    "thread and process name"
                );
                assert!(twins.iter().any(|twin| Some(twin.pid()) == row.tgid));
            }
        }
    }
    Ok(())
}
