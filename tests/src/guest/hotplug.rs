//! CPUs that go offline and come back while a recording goes on.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::checks::check_counts;
use crate::{
    check,
    load::Load,
    report::{Interval, Report},
    schedlat::{Recording, Schedlat},
};

/// The one that goes.
const CPU: u64 = 7;

fn set_online(is_online: bool) -> Result<()> {
    let file = format!("/sys/devices/system/cpu/cpu{CPU}/online");
    fs::write(&file, if is_online { "1" } else { "0" })
        .with_context(|| format!("cannot write {file}"))
}

/// Takes the CPU away until this is dropped.
struct Offline;

impl Offline {
    fn take() -> Result<Self> {
        set_online(false)?;
        Ok(Self)
    }

    fn give_back(self) -> Result<()> {
        std::mem::forget(self);
        set_online(true)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        // The check has failed already.
        drop(set_online(true));
    }
}

fn start() -> Result<Recording> {
    Schedlat::record().args("--interval 1s").start()
}

/// Ends a recording, and requires that everything in it adds up.
fn finish(recording: Recording) -> Result<(Report, Vec<Interval>)> {
    let documents = recording.interrupt()?.success()?.documents()?;
    let last = documents.last().map(Value::to_string);
    let report = Report::parse(&last.context("no final document")?)?;
    check_counts(&report)?;
    let longest = report.totals.waits.max_ns();
    ensure!(longest <= report.window_ns(), "a wait of {longest} ns");
    let intervals = Interval::among(&documents)?;
    let sum = |figure: fn(&Interval) -> u64| -> u64 { intervals.iter().map(figure).sum() };
    ensure!(sum(|it| it.totals.switches.voluntary) == report.totals.switches.voluntary);
    ensure!(sum(|it| it.totals.migrations) == report.totals.migrations);
    Ok((report, intervals))
}

/// Tasks that were bound to the CPU go on elsewhere, intervals go on, and what runs on the CPU when it
/// is back is seen.
pub(super) fn goes_and_comes() -> Result<String> {
    let bound = [
        Load::workload(&format!("burn 3600 --cpu {CPU}"))?,
        Load::workload(&format!("periodic 3600 --interval-us 10000 --cpu {CPU}"))?,
    ];
    let _pair = Load::workload(&format!("pipe 3600 --cpu 6 --peer-cpu {CPU}"))?;
    let recording = start()?;
    thread::sleep(Duration::from_secs(2));
    let offline = Offline::take()?;
    thread::sleep(Duration::from_secs(2));
    offline.give_back()?;
    let after = Load::workload(&format!("burn 3600 --cpu {CPU}"))?;
    thread::sleep(Duration::from_secs(2));
    let (report, intervals) = finish(recording)?;
    for load in &bound {
        let row = report.task(load.pid())?;
        ensure!(row.stats.migrations > 0, "{:?} was not moved", row.comm);
    }
    runs_on_it(&report, &after)?;
    // One ends with each second, the last one with the recording.
    ensure!(intervals.len() >= 6, "{} intervals", intervals.len());
    for interval in &intervals {
        let n = interval.totals.switches.voluntary;
        ensure!(n > 0, "no switches in an interval");
    }
    Ok(format!(
        "missed switches {}",
        report.lost("missed_switches")?
    ))
}

/// The CPU is not there when the recording begins.
pub(super) fn starts_without() -> Result<String> {
    let offline = Offline::take()?;
    let recording = start()?;
    thread::sleep(Duration::from_secs(1));
    offline.give_back()?;
    let after = Load::workload(&format!("burn 3600 --cpu {CPU}"))?;
    thread::sleep(Duration::from_secs(2));
    let (report, _) = finish(recording)?;
    runs_on_it(&report, &after)?;
    Ok(format!(
        "missed switches {}",
        report.lost("missed_switches")?
    ))
}

/// A burner that was started on the CPU has run, and what it did not run it waited, as the kernel says.
fn runs_on_it(report: &Report, burner: &Load) -> Result<()> {
    let row = report.task(burner.pid())?;
    ensure!(
        row.stats.on_cpu_ns > 0,
        "nothing ran on the CPU that is back"
    );
    let audit = &row.audit;
    check::near(
        "time of the burner on the CPU that is back",
        audit.on_cpu_ours_ns,
        audit.on_cpu_kernel_ns,
        0.1,
        100_000_000,
    )
}
