//! Why a task lost the CPU: each cause on a load that provokes it and little else.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result};
use latency_tests::{
    cgroup::Cgroup, check, load::Load, observe::Observed, report::Row, schedlat::Schedlat,
    workload::set_affinity,
};

const SECONDS: Duration = Duration::from_secs(3);

#[test]
fn two_yielders_lose_the_cpu_by_yielding() -> Result<()> {
    let line = "yield 60 --cpu 1 --nice -15";
    let loads = [Load::workload(line)?, Load::workload(line)?];
    let observed = Observed::of(&[&loads[0], &loads[1]], SECONDS)?;
    check::sound(&observed.report)?;
    check::yields_agree(&observed.report, &[loads[0].pid(), loads[1].pid()])?;
    let mut ticks = 0;
    let others = [loads[1].pid(), loads[0].pid()];
    for ((row, truth), other) in observed.pairs()?.into_iter().zip(others) {
        check::loses_to_fellow(&row.stats, other, &["yield"], 0.999)?;
        let yields = row.stats.cause("yield").count;
        assert!(
            yields > 100_000,
            "only {yields} yields that switched in 3 s"
        );
        // One wait may still be open, and of some the blind spot of this kind of host hid the end.
        let unseen = row.audit.class("unmeasured").count;
        assert!(
            row.stats.switches.r#yield.abs_diff(yields) <= 1 + unseen,
            "{yields} waits, {unseen} unseen, {:?}",
            row.stats.switches
        );
        check::waits_agree(row, truth)?;
        ticks += row.stats.cause("tick").count;
    }
    let real = observed.report.audit.ticks;
    assert!(ticks <= real, "{ticks} waits blamed on {real} ticks");
    Ok(())
}

#[test]
fn c096_a_lone_yielder_does_not_wait() -> Result<()> {
    let load = Load::workload("yield 60 --cpu 1 --nice -15")?;
    let observed = Observed::of(&[&load], SECONDS)?;
    check::sound(&observed.report)?;
    let (row, truth) = observed.main_of(&load)?;
    // A yield that finds nobody else does not switch. Others on the host may be there now and then,
    // and then the kernel counts the switch too.
    check::switches_agree_with_proc(&observed)?;
    check::preemptors_are_named(&row.stats)?;
    check::kernel_waits_agree(row, truth)?;
    // It always wants the CPU: what it did not get of it, it gave to those others by yielding.
    check::share(
        "on its CPU or waiting for it",
        row.stats.on_cpu_ns + row.stats.waited_ns,
        observed.report.window_ns(),
        0.9,
    )
}

#[test]
fn a_real_time_task_takes_the_cpu_from_a_burner() -> Result<()> {
    let burner = Load::workload("burn 60 --cpu 1 --nice -15")?;
    let line = "periodic 60 --interval-us 1000 --work-us 50 --cpu 1 --fifo 50 --name rt-periodic";
    let fifo = Load::workload(line)?;
    let observed = Observed::of(&[&burner, &fifo], SECONDS)?;
    check::sound(&observed.report)?;
    let (fifo_row, _) = observed.main_of(&fifo)?;
    let (burner_row, truth) = observed.main_of(&burner)?;
    check::kernel_waits_agree(burner_row, truth)?;
    check_real_time_wakeups(fifo_row, observed.report.window_ns())?;
    check_losses_to_real_time(burner_row, fifo_row)
}

/// It outranks everybody: it waits microseconds, most of the time.
fn check_real_time_wakeups(row: &Row, window_ns: u64) -> Result<()> {
    let (wakeups, latency) = (row.stats.waits.wakeup, row.stats.wakeup_latency);
    // Periods that a hypervisor kept are skipped.
    assert!(
        wakeups.count >= window_ns / 1_000_000 * 9 / 10,
        "{wakeups:?}"
    );
    assert!(wakeups.p50_ns.context("no median")? < 50_000, "{wakeups:?}");
    assert!(
        latency.sum_ns >= wakeups.sum_ns,
        "{latency:?} is below {wakeups:?}"
    );
    let classes = row.audit.class("after_wakeup");
    assert!(classes.ours_ns >= classes.kernel_ns, "{classes:?}");
    Ok(())
}

fn check_losses_to_real_time(burner: &Row, fifo: &Row) -> Result<()> {
    let higher = burner.stats.cause("higher_class");
    let by_fifo = check::loses_to_fellow(
        &burner.stats,
        fifo.tid.context("no thread id")?,
        &["higher_class"],
        1.0,
    )?;
    let rows = burner.stats.preemptors.iter();
    for row in rows.filter(|row| row.tid != 0 && Some(row.tid) == fifo.tid) {
        assert_eq!(row.comm, "rt-periodic");
    }
    // Now and then it finds a third party on the CPU, and other real-time tasks run.
    let activations = fifo.stats.waits.wakeup.count;
    check::share("losses to it", by_fifo, activations, 0.8)?;
    check::share("of higher class", by_fifo, higher.count, 0.9)?;
    let mean = higher.sum_ns / higher.count.max(1);
    assert!(mean >= 50_000, "it works for 50 us each time: {higher:?}");
    Ok(())
}

#[test]
fn c014_a_throttled_cgroup_is_not_contention() -> Result<()> {
    let group = Cgroup::with_cpu_controller("quota")?;
    group.limit(Duration::from_millis(20), Duration::from_millis(100))?;
    group.prefer()?;
    let line = format!(
        "burn 20 --cpu 1 --nice -15 --cgroup {}",
        group.directory().display()
    );
    let load = Load::workload(&line)?;

    let recording = Schedlat::record().cgroup(group.directory()).start()?;
    let before = group.throttling()?;
    thread::sleep(SECONDS + Duration::from_secs(1));
    let after = group.throttling()?;
    let report = recording.stop()?;
    check::sound(&report)?;

    let row = report.task(load.pid())?;
    let throttled = row.stats.cause("throttled");
    check::share(
        "throttled time",
        throttled.sum_ns,
        row.stats.waits.sum_ns(),
        0.9,
    )?;
    let count = after.count - before.count;
    assert!(
        throttled.count.abs_diff(count) <= 2,
        "{throttled:?}, the kernel throttled {count}"
    );
    // The wait that is open at the end and the one at the start belong to it as well.
    let sum =
        throttled.sum_ns + row.stats.censored.open_at_start_ns + row.stats.censored.open_at_end_ns;
    // The kernel adds a throttled period at its end, of 80 ms each: one may be cut at either edge.
    check::near(
        "throttled",
        sum,
        after.sum_ns - before.sum_ns,
        0.03,
        170_000_000,
    )?;
    let idle = row
        .stats
        .preemptors
        .iter()
        .find(|by| by.comm.starts_with("swapper"));
    assert!(idle.is_none(), "idle is no culprit: {idle:?}");
    let path = row.cgroup.as_deref().unwrap_or_default();
    assert!(
        group
            .directory()
            .to_string_lossy()
            .ends_with(path.trim_start_matches('/')),
        "{path}"
    );
    Ok(())
}

#[test]
fn c113_the_stopper_is_named_where_it_moves_a_task() -> Result<()> {
    const FLIPS: u64 = 100;
    let load = Load::workload("burn 20 --fifo 20")?;
    set_affinity(Some(load.pid()), &[1])?;
    let recording = Schedlat::record().pid(load.pid()).start()?;
    for flip in 0..FLIPS {
        let cpu = usize::from(flip % 2 == 1);
        set_affinity(Some(load.pid()), &[cpu])?;
        thread::sleep(Duration::from_millis(10));
    }
    let report = recording.stop()?;
    check::sound(&report)?;
    let stats = &report.task(load.pid())?.stats;
    let stopper = stats.cause("stopper");
    assert!(
        (FLIPS - 5..=FLIPS + 10).contains(&stopper.count),
        "{:?}",
        stats.causes
    );
    check::preemptors_are_named(stats)?;
    let stoppers: Vec<_> = stats
        .preemptors
        .iter()
        .filter(|by| by.cause == "stopper")
        .collect();
    for cpu in ["migration/0", "migration/1"] {
        let by = stoppers.iter().find(|by| by.comm == cpu);
        let count = by.map_or(0, |by| by.count);
        assert!(
            (FLIPS / 2 - 5..=FLIPS / 2 + 10).contains(&count),
            "{cpu}: {stoppers:?}"
        );
    }
    // Pushed off a CPU it is free to run on the other at once.
    assert!(stopper.sum_ns / stopper.count < 1_000_000, "{stopper:?}");
    assert!(
        stats.migrations >= FLIPS - 5,
        "{} migrations",
        stats.migrations
    );
    Ok(())
}
