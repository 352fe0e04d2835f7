//! Overload, bursts and open waits: no figure may be beyond physics, and none may go missing.

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use latency_tests::{
    check,
    load::{Load, is_installed},
    report::{Interval, ns_of_seconds},
    schedlat::Schedlat,
};

#[test]
fn c001_c008_no_wait_is_absurd_and_idle_is_no_task() -> Result<()> {
    let quiet = Schedlat::record().args("--for 3s").report()?;
    let storm = Load::program("hackbench", &["-g", "4", "-l", "1000000"])?;
    let busy = Schedlat::record().args("--for 5s").report()?;
    drop(storm);
    for report in [quiet, busy] {
        check::sound(&report)?;
        assert!(report.totals.waits.max_ns() <= report.window_ns() + 5_000_000);
        for row in &report.tasks {
            assert_ne!(row.tid, Some(0), "the idle task is no task");
            let idle = row
                .stats
                .preemptors
                .iter()
                .find(|by| by.comm.starts_with("swapper/"));
            assert!(
                idle.is_none(),
                "idle is no preemptor: {idle:?} of {:?}",
                row.comm
            );
        }
    }
    Ok(())
}

#[test]
fn c007_an_interval_holds_no_more_than_its_tasks_could_wait() -> Result<()> {
    const BURNERS: u64 = 8;
    let recorder = Schedlat::record()
        .comm("burst")
        .args("--interval 1s --for 8s");
    let recording = recorder.start()?;
    let burners = (0..BURNERS)
        .map(|_| Load::workload("burn 5 --name burst"))
        .collect::<Result<Vec<_>>>()?;
    let outcome = recording.finish()?.success()?;
    drop(burners);
    let documents = outcome.documents()?;
    let mut waited = 0;
    for interval in Interval::among(&documents)? {
        let most = BURNERS * ns_of_seconds(interval.window.seconds) * 105 / 100;
        let own = interval.totals.waited_ns;
        assert!(own <= most, "{own} ns in {} s", interval.window.seconds);
        waited += own;
    }
    let report = outcome.report()?;
    check::sound(&report)?;
    assert_eq!(
        waited, report.totals.waited_ns,
        "intervals against the final report"
    );
    // Eight on two CPUs for five seconds: three quarters of their time is waiting, more when others
    // run as well.
    let all = BURNERS * 5_000_000_000;
    check::near(
        "running and waiting",
        report.totals.on_cpu_ns + waited,
        all,
        0.05,
        0,
    )?;
    check::share("waits of the burst", waited, all, 0.7)
}

#[test]
fn c024_a_wait_that_spans_the_window_is_shown_as_open() -> Result<()> {
    let victim = Load::workload("burn 20 --cpu 1 --name victim")?;
    let _hog = Load::workload("burn 20 --cpu 1 --fifo 50 --name rthog")?;
    // Shorter than the real-time limit's period: most windows see the victim wait all the time.
    let mut open = 0;
    for _ in 0..6 {
        let report = Schedlat::record()
            .pid(victim.pid())
            .args("--for 300ms")
            .report()?;
        let row = report.task(victim.pid())?;
        let stats = &row.stats;
        check::runs_or_waits_all_the_time(&report, row)?;
        open += stats.censored.open_at_end;
    }
    assert!(open >= 3, "{open} of 6 windows ended in a wait");
    Ok(())
}

#[test]
fn c025_other_tracers_take_nothing_away() -> Result<()> {
    assert!(
        is_installed("bpftrace"),
        "install bpftrace: `cargo xtask test` does"
    );
    let _storm = Load::program("hackbench", &["-T", "-g", "2", "-l", "1000000"])?;
    let script = "tracepoint:sched:sched_switch { @s = count(); } \
        tracepoint:sched:sched_wakeup { @w = count(); } \
        tracepoint:irq:softirq_entry { @i = count(); }";
    let tracer = Tracer::start(script)?;
    thread::sleep(Duration::from_secs(3));
    let report = Schedlat::record().args("--for 4s").report()?;
    drop(tracer);
    check::sound(&report)?;
    let missed = report.lost("missed_switches")?;
    let all = report.audit.switches.all_ours;
    check::share("switches seen", all, all + missed, 0.999)
}

/// A bpftrace that runs as long as this value.
struct Tracer(Child);

impl Tracer {
    fn start(script: &str) -> Result<Self> {
        let mut command = Command::new("bpftrace");
        command
            .args(["-e", script])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(Self(command.spawn().context("cannot start bpftrace")?))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.0.kill().expect("end bpftrace");
        self.0.wait().expect("wait for bpftrace");
    }
}
