//! A machine that is suspended to memory while a recording goes on, and woken by its real-time clock.
//!
//! Every process is frozen meanwhile, all CPUs but the first go offline and come back, and
//! `CLOCK_MONOTONIC` stands still, unlike `CLOCK_BOOTTIME`.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::time::{ClockId, clock_gettime};

use super::checks::{FEW, check_counts, last_cpu};
use crate::{
    check,
    load::Load,
    report::{Interval, Report},
    schedlat::Schedlat,
    truth::{monotonic, nanos},
};

/// After so many seconds the machine is woken. A machine that is slow to fall asleep is woken before it
/// has, and then it is given longer.
const ALARMS_S: [u32; 3] = [4, 16, 64];

/// A machine that slept for less has slept for too little to be told from everything else.
const LEAST: Duration = Duration::from_secs(1);

/// How far `CLOCK_BOOTTIME` is ahead: the time for which the machine was suspended so far. Of several
/// readings the largest is the nearest, since the second clock went on after the first was read.
fn suspended_so_far() -> Duration {
    let reading = |_| {
        let boottime = Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default();
        boottime.saturating_sub(monotonic())
    };
    (0..10).map(reading).max().unwrap_or_default()
}

/// Whether the machine has a state in which all CPUs are off. Others keep the first one running, and no
/// emulated device wakes them.
fn can_sleep() -> Result<bool> {
    let states = fs::read_to_string("/sys/power/mem_sleep").unwrap_or_default();
    let can_sleep = states.contains("[deep]");
    // The emulator has no such state elsewhere.
    ensure!(
        can_sleep || !cfg!(target_arch = "x86_64"),
        "the only states are '{states}'"
    );
    Ok(can_sleep)
}

/// Suspends the machine until it has slept for long enough, and returns for how long it has.
fn suspend() -> Result<Duration> {
    let before = suspended_so_far();
    for alarm_s in ALARMS_S {
        if let Err(cause) = sleep_until_alarm(alarm_s) {
            super::say(&format!("guest: not suspended: {cause:#}"));
        }
        let suspended = suspended_so_far().saturating_sub(before);
        if suspended >= LEAST {
            return Ok(suspended);
        }
    }
    bail!("the machine was woken before it slept, each time")
}

fn sleep_until_alarm(alarm_s: u32) -> Result<()> {
    let alarm = "/sys/class/rtc/rtc0/wakealarm";
    let count = "/sys/power/wakeup_count";
    fs::write(alarm, "0").context("cannot clear the alarm")?;
    // An alarm that comes too early then ends the attempt, and is not lost: nothing else would wake
    // the machine.
    let wakeups = fs::read_to_string(count).context("cannot count wakeups")?;
    fs::write(count, wakeups.trim()).context("woken meanwhile")?;
    fs::write(alarm, format!("+{alarm_s}")).context("cannot set the alarm")?;
    fs::write("/sys/power/state", "mem").context("cannot suspend")
}

/// How far our readings of two clocks may be from the recorder's: it reads them one after the other, and
/// the machine may stand still in between, eight times in a row.
const APART: Duration = Duration::from_millis(100);

/// The time for which the machine was suspended is told, and is in no wait, no stint and no sum: what
/// always wants a CPU could not have run and waited for so long.
pub(super) fn is_in_no_figure() -> Result<String> {
    if !can_sleep()? {
        return Ok("this machine cannot be suspended".to_owned());
    }
    let cpu = last_cpu()?;
    let burner = format!("burn 3600 --cpu {cpu}");
    let burners = [Load::workload(&burner)?, Load::workload(&burner)?];
    let sleeper = Load::workload(&format!("periodic 3600 --interval-us 5000 --cpu {cpu}"))?;
    let began = monotonic();
    let recording = Schedlat::record().args("--interval 500ms").start()?;
    thread::sleep(Duration::from_secs(1));
    let suspended = suspend()?;
    thread::sleep(Duration::from_secs(1));
    let documents = recording.interrupt()?.success()?.documents()?;
    let most_ns = nanos(monotonic().saturating_sub(began));
    let report = Report::parse(&documents.last().context("no final document")?.to_string())?;

    let told = Duration::from_nanos(report.window.suspended_ns);
    let intervals = Interval::among(&documents)?;
    let sum: u64 = intervals.iter().map(|it| it.window.suspended_ns).sum();
    for told in [told, Duration::from_nanos(sum)] {
        ensure!(
            told.abs_diff(suspended) <= APART,
            "suspended for {suspended:?}, the report says {told:?}"
        );
    }

    let window_ns = report.window_ns();
    ensure!(
        (2_000_000_000..=most_ns).contains(&window_ns),
        "the window is {window_ns} ns, at most {most_ns} ns passed"
    );
    check_counts(&report)?;
    check::figures_are_possible(&report)?;
    for load in burners.iter().chain([&sleeper]) {
        let row = report.task(load.pid())?;
        ensure!(row.stats.on_cpu_ns > 0, "{:?} did not run", row.comm);
    }
    ensure!(report.task(sleeper.pid())?.stats.waits.wakeup.count > FEW);
    Ok(format!("{told:?}"))
}
