//! Single waits, printed as they end: each is whole, names who ran, and is counted where it is not shown.

use std::{collections::BTreeMap, thread, time::Duration};

use anyhow::{Context as _, Result};
use latency_tests::{cgroup::Cgroup, check, load::Load, schedlat::Schedlat};
use serde_json::Value;

/// Two burners that share CPU 1.
fn burners(group: &Cgroup) -> Result<[Load; 2]> {
    let line = "burn 20 --cpu 1";
    Ok([group.workload(line)?, group.workload(line)?])
}

fn recorder(schedlat: Schedlat, loads: &[Load; 2]) -> Schedlat {
    schedlat
        .pid(loads[0].pid())
        .pid(loads[1].pid())
        .args("--over 2ms --for 2s")
}

fn number(value: &Value, key: &str) -> Result<u64> {
    value[key].as_u64().with_context(|| format!("no '{key}'"))
}

/// Waits that were moved, or are longer than what is remembered, are not told whole.
fn is_whole(wait: &Value) -> bool {
    wait["hidden_spans"] == false && wait["here_at_ns"] == wait["at_ns"]
}

#[test]
fn waits_over_the_threshold_are_told_whole() -> Result<()> {
    let group = Cgroup::preferred("over")?;
    let loads = burners(&group)?;
    let documents = recorder(Schedlat::record(), &loads)
        .run()?
        .success()?
        .documents()?;
    assert_eq!(documents[0]["schema"], "schedlat.record.start");
    let last = documents.last().context("no final document")?;
    let waits: Vec<_> = documents
        .iter()
        .filter(|line| line["schema"] == "schedlat.record.wait")
        .collect();
    assert!(waits.len() > 5, "{} waits", waits.len());
    for wait in &waits {
        let wait_ns = number(wait, "wait_ns")?;
        assert!(wait_ns >= 2_000_000, "{wait}");
        let parts = wait["parts"].as_object().context("no parts")?;
        let parts = parts.values().map(|part| number(part, "sum_ns"));
        assert_eq!(parts.sum::<Result<u64>>()?, wait_ns, "{wait}");
    }
    let whole: Vec<_> = waits.iter().filter(|wait| is_whole(wait)).collect();
    assert!(whole.len() * 2 > waits.len(), "{} are whole", whole.len());
    for wait in whole {
        let spans = wait["spans"].as_array().context("no spans")?;
        let of = |tid: u32| {
            let spans = spans.iter().filter(move |span| span["tid"] == tid);
            spans.map(|span| number(span, "ns")).sum::<Result<u64>>()
        };
        let sum: u64 = spans
            .iter()
            .map(|span| number(span, "ns"))
            .sum::<Result<_>>()?;
        let wait_ns = number(wait, "wait_ns")?;
        // An interrupt within which the wait begins is cut by its share.
        assert!(sum.abs_diff(wait_ns) * 100 <= wait_ns, "{sum} ns in {wait}");
        let ran = of(loads[0].pid())? + of(loads[1].pid())?;
        assert!(
            ran * 10 >= wait_ns * 8,
            "the burners ran {ran} ns in {wait}"
        );
        assert_eq!(wait["hint"], "pinned to CPU 1");
    }
    let (count, not_shown) = (
        number(&last["over"], "count")?,
        number(&last["over"], "not_shown")?,
    );
    assert_eq!(count, waits.len() as u64 + not_shown);
    // Ten in each of the three seconds that a recording of two may touch.
    assert!(waits.len() <= 30, "{} waits", waits.len());
    Ok(())
}

#[test]
fn waits_are_told_in_words_above_the_report() -> Result<()> {
    let group = Cgroup::preferred("over-text")?;
    let loads = burners(&group)?;
    let output = recorder(Schedlat::command("record"), &loads)
        .run()?
        .success()?
        .output();
    let (waits, report) = output.split_once("\nschedlat 0").context("no report")?;
    let other = format!("workload[{}]", loads[0].pid());
    assert!(waits.contains("preempted by the tick; then "), "{waits}");
    assert!(output.contains(&other), "{output}");
    assert!(report.contains("\nwaits of at least 2.00 ms: "), "{report}");
    assert!(report.contains("\nthe longest: "), "{report}");
    Ok(())
}

#[test]
fn single_waits_have_no_form_in_csv_and_none_without_attribution() -> Result<()> {
    let refused = Schedlat::command("record")
        .args("--over 1ms --for 1s --format csv")
        .run()?;
    refused.fails_with(2, &["--over", "--format csv"])?;
    let refused = Schedlat::command("record")
        .args("--over 1ms --for 1s --detail causes")
        .run()?;
    refused.fails_with(2, &["--over", "--detail full"])
}

/// Waits of at least so many nanoseconds by the histograms of a report: surely, and perhaps more.
fn n_at_least(report: &Value, least_ns: u64) -> Result<(u64, u64)> {
    let mut found = (0, 0);
    for kind in ["wakeup", "preemption", "new_task"] {
        let buckets = &report["totals"]["histograms"][kind];
        for bucket in buckets.as_array().into_iter().flatten() {
            let [low, high, n] = [0, 1, 2].map(|index| bucket[index].as_u64());
            let n = n.context("no count")?;
            if low.context("no lower bound")? >= least_ns {
                found.0 += n;
            } else if high.context("no upper bound")? >= least_ns {
                found.1 += n;
            }
        }
    }
    Ok(found)
}

fn n_waits(report: &Value) -> Result<u64> {
    let kinds = ["wakeup", "preemption", "new_task"];
    let counts = kinds.map(|kind| number(&report["totals"]["waits"][kind], "count"));
    counts.into_iter().sum()
}

fn longest_ns(report: &Value) -> Result<u64> {
    let kinds = ["wakeup", "preemption", "new_task"];
    let longest = kinds.map(|kind| number(&report["totals"]["waits"][kind], "max_ns"));
    let longest = longest.into_iter().collect::<Result<Vec<_>>>()?;
    longest.into_iter().max().context("no waits")
}

#[test]
fn c115_c118_a_threshold_counts_what_an_unfiltered_recording_has() -> Result<()> {
    const LEAST_NS: u64 = 2_000_000;
    let recorder = || Schedlat::record().comm("threshold");
    let recordings = [recorder().args("--over 2ms").start()?, recorder().start()?];
    // Both see the whole life of both.
    let group = Cgroup::preferred("threshold")?;
    let line = "burn 1.5 --cpu 1 --name threshold";
    let loads = [group.workload(line)?, group.workload(line)?];
    for load in loads {
        load.truth()?;
    }
    thread::sleep(Duration::from_millis(300));
    let mut reports = Vec::new();
    for recording in recordings {
        let documents = recording.interrupt()?.success()?.documents()?;
        reports.push(documents.last().context("no report")?.clone());
    }
    let [filtered, whole] = &reports[..] else {
        unreachable!("two recordings")
    };
    assert_eq!(n_waits(filtered)?, n_waits(whole)?);
    let count = number(&filtered["over"], "count")?;
    let lost = number(&filtered["loss"], "wait_records")?;
    // Each reads the clock for itself, so that a wait of just that length may be on either side.
    let (surely, perhaps) = n_at_least(whole, LEAST_NS)?;
    let apart = 1 + surely / 200 + perhaps;
    assert!(surely > 20, "{surely} waits of 2 ms");
    assert!(
        (count + lost).abs_diff(surely) <= apart,
        "{count} waits and {lost} lost, not {surely} to {}",
        surely + perhaps
    );
    let longest = [longest_ns(filtered)?, longest_ns(whole)?];
    check::near("the longest wait", longest[0], longest[1], 0.005, 1_000_000)
}

#[test]
fn c018_every_wait_is_an_event_of_its_own() -> Result<()> {
    const WAKEUPS: u64 = 500;
    let recording = Schedlat::record()
        .comm("wakee")
        .args("--over 1ns")
        .start()?;
    let load = Load::workload(&format!("wake {WAKEUPS}"))?;
    load.truth()?;
    thread::sleep(Duration::from_millis(300));
    let documents = recording.interrupt()?.success()?.documents()?;
    let report = documents.last().context("no report")?;
    let (shown, lost) = (
        number(&report["over"], "count")?,
        number(&report["loss"], "wait_records")?,
    );
    assert_eq!(shown + lost, n_waits(report)?, "{}", report["over"]);
    assert!(shown + lost >= WAKEUPS / 2, "{shown} waits, {lost} lost");
    // One starting point each: no two waits of a task begin at once, or overlap.
    let mut ends = BTreeMap::new();
    for wait in documents
        .iter()
        .filter(|it| it["schema"] == "schedlat.record.wait")
    {
        let (at, length) = (number(wait, "at_ns")?, number(wait, "wait_ns")?);
        let end = ends.insert(number(&wait["victim"], "tid")?, at + length);
        assert!(end.is_none_or(|end| at >= end), "{wait}");
    }
    Ok(())
}
