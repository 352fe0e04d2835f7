//! Waits over the threshold in dumps: they ask for one, and are marked where the report says.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use latency_tests::load::Load;
use serde_json::Value;

use super::{Dumps, dumps_of, trace::Dump};

#[test]
fn wait_over_the_threshold_saves_a_dump_in_which_it_is_marked() -> Result<()> {
    let dumps = Dumps::new()?;
    let _loads = [
        Load::workload("burn 60 --cpu 1")?,
        Load::workload("burn 60 --cpu 1")?,
    ];
    let recording = dumps.record("2s").args("--over 1ms").start()?;
    thread::sleep(Duration::from_secs(1));
    let outcome = recording.interrupt()?.success()?;
    let said = dumps_of(&outcome)?;
    let reasons: Vec<_> = said.iter().map(|dump| &dump["reason"]).collect();
    assert_eq!(reasons, ["wait", "end"], "one in a window");
    let dump = Dump::read(&dumps.path("a-2.pftrace"))?;
    assert_eq!(said[1]["n_marked"].as_u64(), Some(dump.marks.len() as u64));
    let documents = outcome.documents()?;
    let waits: Vec<_> = documents
        .iter()
        .filter(|line| line["schema"] == "schedlat.record.wait")
        .collect();
    ensure!(!waits.is_empty(), "no wait was reported");
    for wait in waits {
        check_mark(wait, &dump).with_context(|| format!("{wait}"))?;
    }
    Ok(())
}

/// The mark of a wait is where the report says, and between the two switches that it is made of.
fn check_mark(wait: &Value, dump: &Dump) -> Result<()> {
    let number = |value: &Value| value.as_u64().context("no number");
    let (at_ns, wait_ns) = (number(&wait["at_ns"])?, number(&wait["wait_ns"])?);
    let tid = u32::try_from(number(&wait["victim"]["tid"])?)?;
    let mark = dump
        .marks
        .iter()
        .find(|mark| (mark.tid, mark.from_ns) == (tid, at_ns));
    let mark = mark.context("it is not marked")?;
    assert_eq!(mark.until_ns, at_ns + wait_ns);
    assert_eq!(mark.numbers["wait_ns"], wait_ns);
    assert_eq!(
        mark.name,
        format!("waited: {}", wait["cause"].as_str().unwrap_or_default())
    );
    let parts = mark.numbers.iter().filter(|(name, _)| *name != "wait_ns");
    assert_eq!(parts.map(|(_, ns)| ns).sum::<u64>(), wait_ns);
    let is_near = |a: u64, b: u64| a.abs_diff(b) < 100_000;
    let pid = tid.cast_signed();
    let mut switches = dump.switches();
    ensure!(
        switches.any(|(event, it)| it.next_pid() == pid && is_near(event.at_ns, mark.until_ns)),
        "no switch ends it"
    );
    Ok(())
}
