//! `schedlat probe yield` on the live kernel: a yield is what the kernel saw of it, and nothing hangs.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use latency_tests::{
    check,
    load::Load,
    probe::{Document, probe},
    spin::{YieldSeries, yields},
};
use rustix::process::Signal;

/// What holds for any cell: the kernel counted every call, and every switch lies in a call.
fn bears_out(series: &YieldSeries) -> Result<()> {
    ensure!(
        series.kernel_saw == Some(series.yields),
        "{:?} calls counted of {}",
        series.kernel_saw,
        series.yields
    );
    let populations = series.switched_ns.count + series.unswitched_ns.count + series.lost;
    ensure!(populations == series.yields, "{series:?}");
    ensure!(series.switched == series.switched_ns.count, "{series:?}");
    // A switch that a hidden thread cuts has no wait of its own: it is counted, and not seen.
    let seen = series.switched + series.unmatched;
    ensure!(series.kernel_switched >= seen, "{series:?}");
    check::near("switches by yield", seen, series.kernel_switched, 0.001, 10)?;
    ensure!(series.worst_disagreement_ns <= 100, "{series:?}");
    Ok(())
}

#[test]
fn every_combination_has_its_verdict() -> Result<()> {
    let report = yields("--cpu 1")?;
    assert_eq!(report.series.len(), 6);
    for series in &report.series {
        bears_out(series)?;
    }
    for policy in ["other", "fifo:50"] {
        let alone = report.beside(policy, "none")?;
        assert_eq!(alone.verdict, "system call only", "{alone:?}");
        let yielder = report.beside(policy, "yielder")?;
        assert_eq!(yielder.verdict, "real switch", "{yielder:?}");
        assert!(yielder.switched_pct >= 99.0, "{yielder:?}");
        let peer = yielder.ran_instead.iter().find(|task| task.is_peer);
        let peer = peer.context("the peer did not run")?;
        assert_eq!(peer.comm, "yielder");
        // It runs once for each call that gives it the CPU.
        check::near("the peer's turns", peer.count, yielder.switched, 0.02, 10)?;
        // C096: a system call costs less than a switch there and back.
        let (call, switch) = (alone.unswitched_ns.p50()?, yielder.switched_ns.p50()?);
        assert!(2 * call < switch, "{call} ns alone, {switch} ns switched");
        assert!(call < 3_000, "{call} ns for a system call");
    }
    Ok(())
}

/// C096: beside a spinner, what switched and what was ignored are numbers of their own.
#[test]
fn c096_yield_beside_a_spinner_is_ignored_in_part() -> Result<()> {
    let report = yields("--cpu 1 --policy other --peer spinner")?;
    let series = report.only()?;
    bears_out(series)?;
    assert!(series.verdict.starts_with("yield ignored "), "{series:?}");
    assert!(series.switched > 0 && series.unswitched_ns.count > 0);
    assert_eq!(series.ended_by, "time");
    let spinner = series.ran_instead.iter().find(|task| task.is_peer);
    let spinner = spinner.context("the spinner did not run")?;
    // A turn of the spinner is a slice, and a slice is milliseconds.
    assert!(spinner.sum_ns / spinner.count > 1_000_000, "{spinner:?}");
    let switched = series.switched_ns.mean_ns.context("no mean")?;
    let ignored = series.unswitched_ns.mean_ns.context("no mean")?;
    assert!(switched > 100 * ignored, "{switched} and {ignored}");
    Ok(())
}

/// One real-time yield beside an equal spinner never comes back: a verdict, not a hang.
#[test]
fn real_time_yield_beside_a_spinner_is_ended_by_the_watchdog() -> Result<()> {
    let outcome = probe("yield --cpu 1 --policy fifo:50 --peer spinner").run()?;
    assert!(outcome.took < Duration::from_secs(10), "{:?}", outcome.took);
    let report: Document<YieldSeries> = Document::of("yield", &outcome.success()?)?;
    let series = report.only()?;
    assert_eq!(series.verdict, "never came back", "{series:?}");
    assert_eq!(series.ended_by, "watchdog");
    assert_eq!((series.yields, series.switched), (1, 1));
    // The watchdog waits for two seconds.
    let length_ns = series.switched_ns.max_ns.context("no length")?;
    assert!((1_500_000_000..2_500_000_000).contains(&length_ns));
    assert!(series.ran_instead.iter().any(|task| task.is_peer));
    Ok(())
}

#[test]
fn hidden_competitor_is_named() -> Result<()> {
    let hidden = Load::workload("yield 30 --cpu 1 --fifo 50 --name hidden-yielder")?;
    let report = yields("--cpu 1 --policy fifo:50 --peer none --count 20000")?;
    let series = report.only()?;
    bears_out(series)?;
    assert_eq!(series.verdict, "real switch", "{series:?}");
    let found = series
        .ran_instead
        .iter()
        .find(|task| task.tid == hidden.pid());
    let found = found.context("the competitor is not named")?;
    assert_eq!(found.comm, "hidden-yielder");
    assert!(!found.is_peer);
    check::near("its turns", found.count, series.switched, 0.02, 10)?;
    assert!(!series.reasons.is_empty());
    Ok(())
}

/// A competitor of the same priority that is not ours and never ends: our thread is helped back.
#[test]
fn foreign_spinner_does_not_keep_the_probe() -> Result<()> {
    let hidden = Load::workload("burn 20 --cpu 1 --fifo 50 --name hidden-burner")?;
    let outcome = probe("yield --cpu 1 --policy fifo:50 --peer none").run()?;
    assert!(outcome.took < Duration::from_secs(12), "{:?}", outcome.took);
    let report: Document<YieldSeries> = Document::of("yield", &outcome.success()?)?;
    let series = report.only()?;
    assert_eq!(series.ended_by, "watchdog", "{series:?}");
    let is_hidden = |tid: u32| tid == hidden.pid();
    // It comes first, and yields not at all where it gets no turn before the end.
    assert!(series.yields <= 1, "{series:?}");
    assert!(series.ran_instead.iter().any(|task| is_hidden(task.tid)));
    Ok(())
}

#[test]
fn required_switch_that_is_missing_is_exit_3() -> Result<()> {
    for (peer, expected) in [("yielder", 0), ("spinner", 3), ("none", 3)] {
        let line = format!("yield --cpu 1 --policy other --peer {peer} --require-switch");
        let outcome = probe(&line).run()?;
        assert_eq!(outcome.code(), expected, "{peer}: {}", outcome.messages);
        // The report comes all the same.
        let report: Document<YieldSeries> = Document::of("yield", &outcome)?;
        assert_eq!(report.series.len(), 1);
    }
    Ok(())
}

#[test]
fn signal_ends_it_with_a_report() -> Result<()> {
    // As many as are kept, of the two classes together: more than a second's.
    let running = probe("yield --cpu 1 --peer none --count 5000000 --for 60s").spawn()?;
    thread::sleep(Duration::from_millis(1_500));
    running.signal(Signal::INT)?;
    let outcome = running.finish()?;
    assert!(outcome.took < Duration::from_secs(20), "{:?}", outcome.took);
    let report: Document<YieldSeries> = Document::of("yield", &outcome.success()?)?;
    // The class that was measured then; the other one was not begun.
    let series = report.only()?;
    assert_eq!(series.ended_by, "signal");
    assert!(report.warns("ended_early"));
    Ok(())
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_remedy() -> Result<()> {
    let deadline = probe("yield --policy deadline:1ms/2ms/2ms").run()?;
    deadline.fails_with(2, &["--policy deadline", "fifo:N"])?;
    let top = probe("yield --policy fifo:99").run()?;
    top.fails_with(2, &["99", "watchdog"])
}
