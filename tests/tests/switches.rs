//! Switches over all tasks of the host, against the kernel's own counters, on every kind of load.

use std::{thread, time::Duration};

use anyhow::Result;
use latency_tests::{
    check,
    load::{Load, is_installed},
    report::Report,
    schedlat::Schedlat,
};

/// Records all tasks while a load runs; hackbench and its like end by themselves.
fn record_all(seconds: u64) -> Result<Report> {
    let recording = Schedlat::record().start()?;
    thread::sleep(Duration::from_secs(seconds));
    recording.stop()
}

/// What holds for any load: switches to the unit, and the on-CPU gap within bounds and printed.
fn check_all(what: &str, report: &Report) -> Result<()> {
    check::sound(report).map_err(|cause| cause.context(what.to_owned()))?;
    let gap = check::on_cpu_is_not_more(report)?;
    let s = &report.audit.switches;
    writeln(&format!(
        "{what}: voluntary {} = {}, involuntary {} = {}, all {} + {} = {}, on-CPU gap {gap:.3} %",
        s.voluntary_ours,
        s.voluntary_kernel,
        s.involuntary_ours,
        s.involuntary_kernel,
        s.all_ours,
        s.missed,
        s.all_kernel
    ))?;
    for row in &report.tasks {
        check::switches_agree(&row.audit, 1)?;
    }
    Ok(())
}

fn writeln(line: &str) -> Result<()> {
    use std::io::Write as _;
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

#[test]
fn switches_equal_the_kernels_on_every_workload() -> Result<()> {
    for loads in [
        &["burn 20 --cpu 1", "burn 20 --cpu 1"][..],
        &["burn-syscall 20 --cpu 1", "burn-syscall 20 --cpu 1"],
        &["yield 20 --cpu 1", "yield 20 --cpu 1"],
        &["burn 20 --cpu 1", "periodic 20 --cpu 1 --fifo 50"],
        &["pipe 20 --cpu 1 --peer-cpu 1"],
        &["pipe 20 --cpu 0 --peer-cpu 1"],
        &["futex-running 20"],
        &["wake 20000 --interval-us 100 --cpu 0 --peer-cpu 1"],
    ] {
        let running = loads
            .iter()
            .map(|line| Load::workload(line))
            .collect::<Result<Vec<_>>>()?;
        let report = record_all(3)?;
        drop(running);
        check_all(&loads.join(" + "), &report)?;
    }
    Ok(())
}

#[test]
fn c004_switches_and_waits_add_up_under_hackbench() -> Result<()> {
    assert!(
        is_installed("hackbench"),
        "install rt-tests: `cargo xtask test` does"
    );
    let load = Load::program("hackbench", &["-T", "-g", "2", "-l", "1000000"])?;
    let report = record_all(4)?;
    drop(load);
    check_all("hackbench", &report)?;
    // Wakeup waits of the kernel's account are a lower bound: it misses those that preempt at once.
    let wakeups = report.audit.class("after_wakeup");
    check::share(
        "wakeup waits against the kernel's",
        wakeups.ours_ns,
        wakeups.kernel_ns,
        0.995,
    )?;
    assert!(
        report.audit.switches.all_ours > 20_000,
        "hackbench hardly ran"
    );
    for row in &report.tasks {
        let (waits, sleeps) = (row.stats.waits.wakeup.count, row.stats.switches.voluntary);
        assert!(
            waits <= sleeps + 1,
            "{:?}: {waits} wakeup waits, {sleeps} sleeps",
            row.comm
        );
    }
    Ok(())
}

#[test]
fn short_lived_tasks_leave_their_switches_in_the_totals() -> Result<()> {
    let load = Load::workload("forks 100000")?;
    let report = record_all(3)?;
    drop(load);
    check::sums_are_conserved(&report)?;
    assert!(
        report.totals.waits.new_task.count > 500,
        "{:?}",
        report.totals.waits.new_task
    );
    Ok(())
}
