//! Single waits, printed as they end: each is whole, names who ran, and is counted where it is not shown.

use anyhow::{Context as _, Result};
use latency_tests::{cgroup::Cgroup, load::Load, schedlat::Schedlat};
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
