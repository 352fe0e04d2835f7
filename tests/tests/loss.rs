//! What is lost is counted exactly: the counters equal a prediction made beforehand.

use std::{thread, time::Duration};

use anyhow::Result;
use latency_common::record::TaskRecord;
use latency_tests::{check, load::Load, report::Report, schedlat::Schedlat};
use rustix::process::Signal;

/// Bytes that the ring puts before each record.
const RING_HEADER: usize = 8;

/// How many of a report's distributions need a histogram, and how many have one.
#[derive(Debug, Default)]
struct Histograms {
    /// With samples.
    wanted: u64,
    /// With percentiles that can only come from a histogram.
    kept: u64,
    /// Of a single sample, which is every percentile: it may have a histogram or not.
    single: u64,
}

impl Histograms {
    fn of(report: &Report) -> Self {
        let mut this = Self::default();
        for row in &report.tasks {
            let waits = &row.stats.waits;
            for dist in [&waits.wakeup, &waits.preemption, &row.stats.wakeup_latency] {
                this.wanted += u64::from(dist.count > 0);
                this.kept += u64::from(dist.count > 1 && dist.p50_ns.is_some());
                this.single += u64::from(dist.count == 1);
            }
        }
        this
    }
}

#[test]
fn a_tiny_pool_counts_the_histograms_it_could_not_keep() -> Result<()> {
    const SLOTS: u64 = 16;
    // Each thread sleeps, so each wants a histogram of its waits and one of its latencies.
    let load = Load::workload("threads 50 --sleeps 600 --name tiny-pool")?;
    thread::sleep(Duration::from_millis(300));
    let recorder = Schedlat::record()
        .pid(load.pid())
        .args(&format!("--max-histograms {SLOTS}"));
    let recording = recorder.start()?;
    thread::sleep(Duration::from_secs(2));
    let report = recording.stop()?;
    let found = Histograms::of(&report);
    assert!(found.wanted >= 100, "{found:?}");
    assert!(
        found.kept <= SLOTS && found.kept + found.single >= SLOTS,
        "{found:?} with {SLOTS} slots"
    );
    assert_eq!(
        report.lost("task_histograms")?,
        found.wanted - SLOTS,
        "histograms counted as lost: {found:?}"
    );
    // Counts, sums and extremes need no slot.
    check::rows_add_up(&report)?;
    check::switches_agree(&report.audit, latency_tests::truth::n_cpus()?)?;
    // The samples of the rest are in the totals' own distributions.
    assert!(
        report.totals.waits.wakeup.p50_ns.is_some(),
        "the totals lost their percentiles"
    );
    Ok(())
}

#[test]
fn c022_a_tiny_ring_counts_the_tasks_it_could_not_report() -> Result<()> {
    const RING: usize = 16 << 10;
    const FORKS: u64 = 200;
    let fits = records_that_fit(RING);
    assert!(fits > 0 && fits < FORKS, "{fits} records fit");
    let recorder = Schedlat::record()
        .comm("tiny-ring")
        // Records of long waits would take room as well.
        .args(&format!("--strict --detail causes --ring-bytes {RING}"));
    let recording = recorder.start()?;
    recording.signal(Signal::STOP)?;
    let load = Load::workload(&format!("forks {FORKS} --name tiny-ring"))?;
    let pid = load.pid();
    load.truth()?;
    recording.signal(Signal::CONT)?;
    thread::sleep(Duration::from_millis(500));
    let outcome = recording.interrupt()?;
    assert_eq!(
        outcome.code(),
        3,
        "a row that is missing is a breach: {}",
        outcome.messages
    );
    let report = outcome.report()?;
    // The load itself has ended too.
    let ended = FORKS + 1;
    assert_eq!(
        report.lost("exit_records")?,
        ended - fits,
        "of {ended} with room for {fits}"
    );
    assert_eq!(report.tasks.len() as u64, fits);
    // It ended last, when the ring was full.
    assert!(
        report.task(pid).is_err(),
        "the ring was full and has the last record"
    );
    check::every_new_task_waited_once(&report, FORKS)?;
    check::switches_agree(&report.audit, latency_tests::truth::n_cpus()?)?;
    Ok(())
}

#[test]
fn a_strict_breach_is_exit_3_unless_the_command_failed() -> Result<()> {
    // Two records fit, and the ring is read ten times a second: most rows are lost.
    let script = "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done; exit";
    for (status, code) in [(0, 3), (7, 7)] {
        let outcome = Schedlat::record()
            .args("--strict --ring-bytes 4096")
            .running_words(&["sh", "-c", &format!("{script} {status}")])
            .run()?;
        assert_eq!(outcome.code(), code, "{}", outcome.messages);
        let report = outcome.report()?;
        assert!(!report.audit.ok, "the audit has nothing against the loss");
        assert!(report.lost("exit_records")? > 0, "{:?}", report.loss);
        check::sums_are_conserved(&report)?;
    }
    Ok(())
}

/// The ring is full when the next record would leave no byte free.
fn records_that_fit(ring: usize) -> u64 {
    let record = (size_of::<TaskRecord>() + RING_HEADER).next_multiple_of(8);
    ((ring - 1) / record) as u64
}
