//! What changes the whole machine: the clock of the day stepped, and no limit for real-time tasks.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};

use super::checks::{FEW, check_counts, last_cpu};
use crate::{
    load::Load,
    report::{Interval, Report},
    schedlat::Schedlat,
    truth::{monotonic, nanos},
};

const HOUR_S: i64 = 3_600;

/// Moves the clock of the day.
fn step(seconds: i64) -> Result<()> {
    let now = clock_gettime(ClockId::Realtime);
    let then = Timespec {
        tv_sec: now.tv_sec + seconds,
        ..now
    };
    clock_settime(ClockId::Realtime, then).context("cannot set the clock")
}

/// An hour forth and an hour back are in no interval, no wait and no sum.
pub(super) fn steps() -> Result<String> {
    let load = Load::workload("periodic 3600 --interval-us 5000")?;
    let before = monotonic();
    let recording = Schedlat::record().args("--interval 500ms").start()?;
    for seconds in [HOUR_S, -HOUR_S] {
        thread::sleep(Duration::from_secs(1));
        step(seconds)?;
    }
    thread::sleep(Duration::from_secs(1));
    let documents = recording.interrupt()?.success()?.documents()?;
    let most_ns = nanos(monotonic().saturating_sub(before));
    let last = documents.last().context("no final document")?;
    let report = Report::parse(&last.to_string())?;
    check_counts(&report)?;
    let window_ns = report.window_ns();
    ensure!(
        (3_000_000_000..=most_ns).contains(&window_ns),
        "the window is {window_ns} ns, at most {most_ns} ns passed"
    );
    let longest = report.totals.waits.max_ns();
    ensure!(longest <= window_ns, "a wait of {longest} ns");
    ensure!(report.task(load.pid())?.stats.waits.wakeup.count > FEW);
    let intervals = Interval::among(&documents)?;
    let mut end_ns = report.window.start_at_ns;
    for interval in &intervals {
        let (at, ns) = (
            interval.window.start_at_ns,
            crate::report::ns_of_seconds(interval.window.seconds),
        );
        // Seconds are rounded to a nanosecond.
        ensure!(
            at.abs_diff(end_ns) <= 1_000,
            "an interval begins at {at} ns, not {end_ns}"
        );
        end_ns = at + ns;
    }
    Ok(format!("{} intervals", intervals.len()))
}

/// Without a limit for real-time tasks a fair one waits for as long as one of them runs: the wait has
/// not ended when the recording does, and is there.
pub(super) fn endless_wait() -> Result<String> {
    let limit = "/proc/sys/kernel/sched_rt_runtime_us";
    let limit_before = fs::read_to_string(limit)?;
    fs::write(limit, "-1").context("cannot lift the limit of real-time tasks")?;
    let cpu = last_cpu()?;
    // From 6.12 on another server keeps a share for fair tasks.
    let server = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    let server_before = fs::read_to_string(&server).ok();
    if server_before.is_some() {
        fs::write(&server, "0").context("cannot stop the fair server")?;
    }
    let said = wait_without_end(cpu);
    // Some kernels refuse to have them back (6.12-rt: busy), and then what is left of this machine's
    // life goes without.
    if let Some(before) = server_before {
        fs::write(&server, before.trim()).unwrap_or_default();
    }
    fs::write(limit, limit_before.trim()).unwrap_or_default();
    said
}

fn wait_without_end(cpu: u64) -> Result<String> {
    let victim = Load::workload(&format!("burn 3600 --cpu {cpu} --name victim"))?;
    let recording = Schedlat::record().pid(victim.pid()).start()?;
    let hog = Load::workload(&format!("burn 6 --cpu {cpu} --fifo 50 --name rt-hog"))?;
    let began = monotonic();
    thread::sleep(Duration::from_secs(2));
    let least_ns = nanos(monotonic().saturating_sub(began));
    let report = recording.stop()?;
    drop(hog);
    let censored = report.task(victim.pid())?.stats.censored;
    ensure!(
        censored.open_at_end == 1 && censored.open_at_end_ns >= least_ns,
        "{censored:?}, it waited for {least_ns} ns at least"
    );
    Ok(format!("{} ns", censored.open_at_end_ns))
}
