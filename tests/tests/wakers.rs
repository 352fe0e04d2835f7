//! Who ended a sleep, and the way from there to running.

use std::time::Duration;

use anyhow::{Context as _, Result};
use latency_tests::{
    check,
    load::Load,
    observe::Observed,
    report::{Row, Stats, Waker},
};

const SECONDS: Duration = Duration::from_secs(3);

/// Wakeups by those wakers that `is_it` names, and by all.
fn woken_by(stats: &Stats, is_it: impl Fn(&Waker) -> bool) -> Result<(u64, u64)> {
    let wakers = stats.attribution.wakers()?;
    let own = wakers.iter().filter(|waker| is_it(waker));
    Ok((
        own.map(|waker| waker.count).sum(),
        wakers.iter().map(|waker| waker.count).sum(),
    ))
}

/// The stages of all wakeups sum to their latency within 1 %, and each wakeup is in each.
fn check_stages(row: &Row) -> Result<()> {
    let (path, all) = (row.stats.attribution.wake_path()?, row.stats.wakeup_latency);
    let stages = [path.waking_to_queued, path.queued_to_running];
    for stage in stages {
        assert_eq!(stage.count, all.count, "{path:?}");
        assert!(
            stage.max_ns <= all.max_ns && stage.max_ns <= stage.sum_ns,
            "{path:?}"
        );
    }
    let sum = stages.iter().map(|stage| stage.sum_ns).sum();
    check::near("stages", sum, all.sum_ns, 0.01, 0)?;
    // The second stage is the wait.
    let waits = row.stats.waits.wakeup.sum_ns;
    check::near("waits", path.queued_to_running.sum_ns, waits, 0.01, 0)?;
    let places = [
        path.placements.same_cpu,
        path.placements.same_cache,
        path.placements.other_cache,
    ];
    let n_placed: u64 = places.iter().map(|place| place.count).sum();
    assert!(n_placed <= all.count, "{path:?}");
    let latency: u64 = places.iter().map(|place| place.latency_sum_ns).sum();
    assert!(latency <= all.sum_ns, "{path:?}");
    Ok(())
}

/// Records a ping-pong, and requires that each side woke the other; returns who ran on the CPU of
/// its waker, in percent.
fn check_partners(line: &str) -> Result<[f64; 2]> {
    let load = Load::workload(line)?;
    let observed = Observed::of(&[&load], SECONDS)?;
    let report = &observed.report;
    check::sound(report)?;
    check::attribution_sound(report)?;
    let peer = *load.tids.first().context("no peer")?;
    let mut same_cpu = [0.0; 2];
    for (index, (own, other)) in [(load.pid(), peer), (peer, load.pid())]
        .into_iter()
        .enumerate()
    {
        let row = report.task(own)?;
        let (by_other, all) = woken_by(&row.stats, |waker| waker.tid == Some(other))?;
        check::share("woken by its partner", by_other, all, 0.99)?;
        assert!(all > 1_000, "only {all} wakeups");
        for waker in row.stats.attribution.wakers()? {
            let is_task = waker.kind == "task";
            assert_eq!(waker.comm.is_some(), is_task, "{waker:?}");
            assert_eq!(waker.name.is_none(), is_task, "{waker:?}");
        }
        check_stages(row)?;
        let path = row.stats.attribution.wake_path()?;
        same_cpu[index] = path.same_cpu_pct.context("no share")?;
    }
    Ok(same_cpu)
}

#[test]
fn partners_on_one_cpu_wake_each_other_there() -> Result<()> {
    for share in check_partners("pipe 20 --cpu 1 --peer-cpu 1 --nice -15")? {
        assert!(share >= 99.0, "{share} % on the waker's CPU");
    }
    Ok(())
}

#[test]
fn partners_on_two_cpus_wake_each_other_across() -> Result<()> {
    for share in check_partners("pipe 20 --cpu 1 --peer-cpu 0 --nice -15")? {
        assert!(share <= 1.0, "{share} % on the waker's CPU");
    }
    Ok(())
}

#[test]
fn c029_a_timer_is_the_waker_and_not_the_task_it_interrupted() -> Result<()> {
    let burner = Load::workload("burn 20 --cpu 1 --nice -15")?;
    let line = "periodic 20 --interval-us 1000 --work-us 20 --cpu 1 --fifo 80 --name sleeper";
    let sleeper = Load::workload(line)?;
    let observed = Observed::of(&[&burner, &sleeper], SECONDS)?;
    let report = &observed.report;
    check::sound(report)?;
    check::attribution_sound(report)?;
    let row = report.task(sleeper.pid())?;
    let is_timer =
        |waker: &Waker| waker.kind != "task" && waker.name.as_deref() == Some("local timer");
    let (by_timer, all) = woken_by(&row.stats, is_timer)?;
    check::share("woken by the timer", by_timer, all, 0.99)?;
    assert!(all >= 2_000, "only {all} wakeups");
    let (by_burner, _) = woken_by(&row.stats, |waker| waker.tid == Some(burner.pid()))?;
    assert_eq!(by_burner, 0, "{:?}", row.stats.attribution.wakers()?);
    check_stages(row)?;
    // The burner is the one that was preempted.
    let victim = report.task(burner.pid())?;
    let by_sleeper = victim.stats.cause("higher_class").count;
    check::share("losses of the burner", by_sleeper, all, 0.9)
}

#[test]
fn c019_a_task_that_lost_the_cpu_has_no_waker() -> Result<()> {
    let line = "burn 20 --cpu 1 --nice -15";
    let loads = [Load::workload(line)?, Load::workload(line)?];
    let observed = Observed::of(&[&loads[0], &loads[1]], SECONDS)?;
    check::attribution_sound(&observed.report)?;
    for load in &loads {
        let stats = &observed.report.task(load.pid())?.stats;
        assert!(stats.waits.preemption.count > 100, "{:?}", stats.waits);
        let wakers = stats.attribution.wakers()?;
        assert!(wakers.is_empty(), "nobody woke it: {wakers:?}");
    }
    Ok(())
}

#[test]
fn the_writer_of_a_pipe_is_the_waker_of_its_reader() -> Result<()> {
    let line = "wake 20000 --interval-us 200 --cpu 0 --peer-cpu 1 --name writer --nice -15";
    let load = Load::workload(line)?;
    let observed = Observed::of(&[&load], SECONDS)?;
    let report = &observed.report;
    check::attribution_sound(report)?;
    let reader = report.task(*load.tids.first().context("no reader")?)?;
    let (by_writer, all) = woken_by(&reader.stats, |waker| {
        waker.tid == Some(load.pid()) && waker.comm.as_deref() == Some("writer")
    })?;
    check::share("woken by the writer", by_writer, all, 0.99)?;
    check_stages(reader)?;
    // The writer sleeps by the clock, and nobody but a timer ends that.
    let writer = report.task(load.pid())?;
    let (by_tasks, all) = woken_by(&writer.stats, |waker| waker.kind == "task")?;
    assert!(
        by_tasks * 100 <= all,
        "{:?}",
        writer.stats.attribution.wakers()?
    );
    check_stages(writer)
}
