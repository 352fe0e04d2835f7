//! `schedlat probe busy` on the live kernel: every gap has its cause, and what others did is counted.

use std::{fs, path::PathBuf, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use latency_tests::{
    check,
    load::Load,
    probe::{Document, probe},
    schedlat::Schedlat,
    spin::{BusySeries, GapsBy, busy},
};
use rustix::process::Signal;

/// What holds for any series: each gap is in one cause, and the sums are the whole.
fn adds_up(series: &BusySeries) -> Result<()> {
    let causes = series.causes.all();
    let count: u64 = causes.iter().map(|cause| cause.length.count).sum();
    ensure!(count == series.gaps.count, "{count} gaps in causes");
    let sum_ns: i64 = causes.iter().map(|cause| cause.length.sum_ns).sum();
    ensure!(sum_ns == series.gaps.sum_ns, "{sum_ns} ns in causes");
    ensure!(series.dropped_gaps == 0, "{} dropped", series.dropped_gaps);
    ensure!(series.lost_ns.cast_signed() == sum_ns);
    let unexplained = &series.causes.unexplained;
    ensure!(series.gaps_without_event <= unexplained.length.count);
    ensure!(unexplained.by.is_empty(), "{unexplained:?}");
    for cause in &causes[..6] {
        let by: u64 = cause.by.iter().map(|row| row.count).sum();
        ensure!(by == cause.length.count, "{cause:?}");
    }
    ensure!(series.repicked_ticks <= series.asking_ticks);
    // A reading of the clock on each side.
    ensure!(series.worst_disagreement_ns <= 1_000, "{series:?}");
    ensure!(series.gaps.min_ns.unwrap_or(i64::MAX) >= series.threshold_ns.cast_signed());
    Ok(())
}

fn of<'a>(by: &'a [GapsBy], load: &Load) -> Result<&'a GapsBy> {
    by.iter()
        .find(|row| row.tid == Some(load.pid()))
        .with_context(|| format!("{} is not named in {by:?}", load.pid()))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate times a few seconds"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "counts of a few seconds")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// The competitor is stopped before the run and ends within it, so that all it does can be counted.
#[test]
fn interruptions_by_a_competitor_of_a_tenth_are_counted_and_named() -> Result<()> {
    // Above whatever else the machine does, so that nothing but the two is counted.
    let line = "periodic 8 --cpu 1 --fifo 95 --interval-us 10000 --work-us 1000 --name tenth";
    let rival = Load::workload(line)?;
    let pid = rival.pid();
    rival.signal(Signal::STOP)?;
    let running = probe("busy --cpu 1 --policy fifo:90 --for 12s").spawn()?;
    thread::sleep(Duration::from_secs(3));
    rival.signal(Signal::CONT)?;
    let truth = rival.truth()?;
    let report: Document<BusySeries> = Document::of("busy", &running.finish()?.success()?)?;
    let series = report.only()?;
    adds_up(series)?;
    let done = truth.number("activations")?;
    assert!(done > 350, "{done} activations");
    let turns = series.ran_instead.iter().find(|task| task.tid == pid);
    let turns = turns.with_context(|| format!("not named in {:?}", series.ran_instead))?;
    assert_eq!(turns.comm, "tenth");
    check::near("interruptions", turns.count, done, 0.02, 2)?;
    // Once a second the deadline server has the CPU when it comes, and what is left of the gap is its.
    let by = &series.causes.preempted.by;
    let found = by.iter().find(|row| row.tid == Some(pid));
    let found = found.with_context(|| format!("not named in {by:?}"))?;
    assert_eq!(found.name, "tenth");
    check::near("gaps", found.count, done, 0.02, 5)?;
    // Each is the work and two switches.
    check::near("time", turns.sum_ns, truth.counters.exec_ns, 0.03, 0)?;
    Ok(())
}

#[test]
fn every_gap_of_a_tick_is_a_tick_and_hz_is_that_of_the_kernel() -> Result<()> {
    let report = busy("--cpu 1 --policy fifo:50,rr:50,other --for 4s --pairs")?;
    let hz = report.whole["host"]["hz"]
        .as_u64()
        .context("HZ is not known")?;
    assert_eq!(report.series.len(), 3);
    for series in &report.series {
        adds_up(series)?;
        assert_eq!(series.hz, Some(hz), "{series:?}");
        let pairs = series.pairs.as_ref().context("no pairs")?;
        assert_eq!(pairs.len() as u64, series.gaps.count);
        let (mut n_ticks, mut n_between) = (0, 0);
        let mut last_at_ns = None;
        for pair in pairs.iter().filter(|pair| pair.cause == "tick") {
            n_ticks += 1;
            assert!(pair.kernel_ns > 0 && pair.by.is_some(), "{pair:?}");
            let period_ns = 1_000_000_000 / hz;
            let since_last = last_at_ns.map_or(0, |last| (pair.at_ns - last) % period_ns);
            // A guest's timer may come late, and the next one does not.
            let off_ns = since_last.min(period_ns - since_last);
            n_between += u64::from(off_ns > period_ns / 10);
            last_at_ns = Some(pair.at_ns);
        }
        assert_eq!(n_ticks, series.causes.tick.length.count);
        assert!(n_between * 20 <= n_ticks, "{n_between} of {n_ticks}");
        // What was no gap of a tick alone came with another interrupt or in another task's time.
        let due = rounded(per_second(hz, 1.0) * series.seconds);
        assert!(n_ticks <= due + 2, "{n_ticks} of {due}");
        let others = &series.causes;
        let elsewhere = others.preempted.length.count
            + others.irq.length.count
            + others.ipi.length.count
            + others.softirq.length.count;
        let missed_ns = others.preempted.length.sum_ns + others.throttled.length.sum_ns;
        let missed = missed_ns.unsigned_abs() * hz / 1_000_000_000;
        assert!(
            n_ticks + elsewhere + missed + due / 50 >= due,
            "{n_ticks} of {due}, {elsewhere} with others, {missed} missed"
        );
    }
    Ok(())
}

#[test]
fn pairs_are_the_run_without_a_rest() -> Result<()> {
    let report = busy("--cpu 1 --policy fifo:50 --for 1s --pairs")?;
    let series = report.only()?;
    let pairs = series.pairs.as_ref().context("no pairs")?;
    for pair in pairs.windows(2) {
        let next_at_ns = pair[0].at_ns + pair[0].length_ns + pair[0].to_next_ns;
        assert_eq!(next_at_ns, pair[1].at_ns);
    }
    let text = Schedlat::command("probe").args("busy --cpu 1 --policy fifo --for 200ms --pairs");
    let text = text.run()?.success()?.output();
    let header = "length µs  to the next µs  in events µs  cause";
    let (_, list) = text.split_once(header).context("no list of pairs")?;
    let first: Vec<_> = list
        .lines()
        .nth(1)
        .context("no pair")?
        .split_whitespace()
        .collect();
    for number in &first[..2] {
        ensure!(number.parse::<f64>().is_ok(), "{first:?}");
    }
    Ok(())
}

/// C099: what a real-time spinner loses to the limit of its class is named, and so is who got it.
#[test]
fn c099_real_time_limit_is_a_cause_of_its_own() -> Result<()> {
    let starved = Load::workload("burn 12 --cpu 1 --name starved")?;
    let report = busy("--cpu 1 --policy fifo:50 --for 5s")?;
    let series = report.only()?;
    adds_up(series)?;
    let throttled = &series.causes.throttled;
    let found = of(&throttled.by, &starved)?;
    assert_eq!(found.name, "starved");
    let pct = 100.0 * check::ratio(throttled.length.sum_ns.unsigned_abs(), series.lost_ns);
    assert!(pct > 80.0, "{pct} % of what was lost");
    // 50 ms of each second, in chunks of at most that and a tick.
    assert!((3.0..8.0).contains(&series.lost_pct), "{series:?}");
    assert!((3..=20).contains(&throttled.length.count), "{throttled:?}");
    let longest_ns = throttled.length.max_ns.context("no longest")?;
    assert!(longest_ns < 70_000_000, "{longest_ns} ns");
    assert!(
        series
            .reasons
            .iter()
            .any(|reason| reason.contains("real-time limit"))
    );
    assert!(report.warns("throttled"));
    Ok(())
}

/// A tick at which the slice is over asks for another task, unless there is none of its class.
#[test]
fn ticks_that_ask_for_another_task_are_counted() -> Result<()> {
    let alone = busy("--cpu 1 --policy fifo:50 --for 2s")?;
    // A task of the first of two classes is asked for nothing.
    assert_eq!(alone.only()?.repicked_ticks, 0);
    let rivals: Vec<_> = (0..3)
        .map(|_| Load::workload("burn 12 --cpu 1"))
        .collect::<Result<_>>()?;
    let report = busy("--cpu 1 --policy other --for 5s")?;
    drop(rivals);
    let series = report.only()?;
    adds_up(series)?;
    assert!(series.asking_ticks > 50, "{series:?}");
    Ok(())
}

/// C092: the probe leaves the system as it is.
#[test]
fn c092_nothing_on_the_system_is_changed() -> Result<()> {
    let settings = || -> Result<Vec<String>> {
        [
            "sched_rt_runtime_us",
            "sched_rt_period_us",
            "timer_migration",
        ]
        .iter()
        .map(|name| Ok(fs::read_to_string(format!("/proc/sys/kernel/{name}"))?))
        .collect()
    };
    let before = settings()?;
    let running = probe("busy --cpu 1 --policy other --for 2s").spawn()?;
    thread::sleep(Duration::from_secs(1));
    let files = fs::read_dir(format!("/proc/{}/fd", running.pid()))?;
    let held: Vec<PathBuf> = files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .filter(|path| path.ends_with("cpu_dma_latency"))
        .collect();
    assert!(held.is_empty(), "{held:?}");
    assert_eq!(settings()?, before);
    let outcome = running.finish()?.success()?;
    let report: Document<BusySeries> = Document::of("busy", &outcome)?;
    assert_eq!(report.whole["conditions"]["are_idle_states_held"], false);
    Ok(())
}
