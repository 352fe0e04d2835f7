//! `schedlat probe wake` on the live kernel: every sample is one that the kernel saw, and its phases are
//! its lateness.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use latency_tests::{
    check,
    load::Load,
    probe::{Document, WakeSeries, probe, wake},
    schedlat::Recording,
};
use rustix::process::Signal;

/// What holds for any series that was not disturbed on purpose.
fn bears_out(series: &WakeSeries) -> Result<()> {
    let samples = series.samples;
    let apart = samples.missed_switch + samples.other_waker + samples.awake;
    check::share("matched", samples.matched, samples.taken - apart, 0.9999)?;
    // The hidden threads of the host take a few switches a second.
    ensure!(samples.missed_switch <= samples.taken / 50, "{samples:?}");
    ensure!(series.disagreement.max_ns <= 100, "{series:?}");
    let phases = series.phases.all();
    let sum_ns: i64 = phases.iter().map(|phase| phase.sum_ns).sum();
    ensure!(
        series.phases.unaccounted.sum_ns <= sum_ns / 50,
        "unaccounted {:?} of {sum_ns}",
        series.phases.unaccounted
    );
    for phase in phases {
        ensure!(phase.count == samples.matched, "{phase:?}");
    }
    if samples.matched == series.lateness.count {
        let within = 100 * samples.matched.cast_signed();
        ensure!(
            (series.lateness.sum_ns - sum_ns).abs() <= within,
            "{series:?}"
        );
    }
    ensure!(series.verdict == "agrees", "{:?}", series.reasons);
    Ok(())
}

#[test]
fn samples_of_a_real_time_thread_are_matched_idle_and_loaded() -> Result<()> {
    let report = wake("--policy fifo:80 --cpu 1 --for 11s --load cpu")?;
    let loads: Vec<_> = report.series.iter().map(|it| it.load.as_str()).collect();
    assert_eq!(loads, ["none", "cpu"]);
    for series in &report.series {
        bears_out(series)?;
        let samples = series.samples;
        assert_eq!(samples.taken + samples.missed_periods, 11_000);
        assert!(series.phases.switch_return.p999_ns.is_some() || samples.matched < 10_000);
        check::near("wakeups", samples.kernel_saw, samples.matched, 0.001, 10)?;
        // Jitter has a sign: about half of the distances are shorter than the period.
        let (all, negative) = (series.jitter, series.jitter_negative);
        assert_eq!(all.count, samples.taken - 1);
        assert!(negative.count > all.count / 10 && negative.max_ns < Some(0));
        assert!(series.composed_worst_ns >= series.phases.queue_wait.max_ns);
    }
    let threads = report.whole["conditions"]["threads"].as_array();
    for thread in threads.context("no threads")? {
        assert_eq!(
            (&thread["policy"], &thread["priority"]),
            (&"fifo".into(), &80.into())
        );
        assert_eq!(thread["affinity"], "1");
        assert_eq!(thread["is_as_asked"], true);
    }
    // The recorder's own report has the same threads.
    let tids: Vec<_> = report.series.iter().map(|it| u64::from(it.tid)).collect();
    let tasks = report.whole["record"]["tasks"]
        .as_array()
        .context("no tasks")?;
    let seen: Vec<_> = tasks
        .iter()
        .filter_map(|task| task["tid"].as_u64())
        .collect();
    assert!(
        tids.iter().all(|tid| seen.contains(tid)),
        "{tids:?}, {seen:?}"
    );
    Ok(())
}

#[test]
fn a_periodic_timerfd_is_matched_too() -> Result<()> {
    let report = wake("--policy fifo:80 --cpu 1 --count 1500 --via timerfd")?;
    let series = report.only()?;
    assert_eq!(series.samples.taken, 1_500);
    bears_out(series)
}

/// C097: a stop hides the samples that should have followed, and is counted once.
#[test]
fn c097_a_stop_is_missed_periods_and_no_better_percentiles() -> Result<()> {
    let running = probe("wake --policy fifo:80 --cpu 1 --for 6s").spawn()?;
    thread::sleep(Duration::from_secs(2));
    running.signal(Signal::STOP)?;
    let stopped = Instant::now();
    thread::sleep(Duration::from_millis(1_500));
    running.signal(Signal::CONT)?;
    let stopped_ms = u64::try_from(stopped.elapsed().as_millis())?;
    let report: Document<WakeSeries> = Document::of("wake", &running.finish()?.success()?)?;
    let series = report.only()?;
    let samples = series.samples;
    assert_eq!(samples.taken + samples.missed_periods, 6_000);
    check::near(
        "missed periods",
        samples.missed_periods,
        stopped_ms,
        0.05,
        0,
    )?;
    // A switch that fires no event may fall on the sample that the signal ended.
    assert!(
        samples.other_waker + samples.missed_switch >= 1,
        "{samples:?}"
    );
    assert!(series.late_by_a_period_pct < 1.0, "{series:?}");
    let intended = series.intended_late_by_a_period_pct;
    // A quarter of the time, as far as a sleep of that length is exact.
    let expected = 100.0 * check::ratio(stopped_ms, 6_000);
    assert!(
        (intended - expected).abs() < 1.5,
        "{intended}, not {expected}"
    );
    assert_eq!(series.intended.count, 6_000);
    assert!(series.lateness.max_ns > Some(1_400_000_000), "{series:?}");
    assert!(series.lateness.p99_ns < Some(100_000_000), "{series:?}");
    assert!(series.intended.p99_ns > Some(500_000_000), "{series:?}");
    Ok(())
}

/// The probe with a timer slack that its parent has set.
fn wake_with_slack_of_parent(slack_ns: u64, line: &str) -> Result<Document<WakeSeries>> {
    let script = format!("echo {slack_ns} > /proc/self/timerslack_ns && exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]);
    command.arg(latency_tests::schedlat::binary()?);
    command.args(["probe", "wake", "--format", "json"]);
    command.args(line.split_whitespace());
    Document::of("wake", &Recording::of(command)?.finish()?.success()?)
}

/// C094: slack is not lateness, be it the default, that of a parent, or none.
#[test]
fn c094_timer_slack_is_a_row_of_its_own() -> Result<()> {
    let line = "--policy other --cpu 1 --interval 5ms --count 600";
    let none = wake(&format!("{line} --slack 1ns"))?;
    let usual = wake_with_slack_of_parent(50_000, line)?;
    let long = wake_with_slack_of_parent(2_000_000, line)?;
    assert!(!none.warns("timer_slack") && usual.warns("timer_slack"));
    let (none, usual, long) = (none.only()?, usual.only()?, long.only()?);
    for series in [none, usual, long] {
        bears_out(series)?;
    }
    assert!(none.slack.max_ns <= Some(1), "{none:?}");
    assert!((40_000..=50_000).contains(&usual.slack.p50()?), "{usual:?}");
    assert!(long.slack.p50()? > 500_000, "{long:?}");
    // Without slack, or taken apart from it, the lateness is the same but for what else goes on.
    for series in [usual, long] {
        let apart = (series.lateness.p50()? - none.lateness.p50()?).abs();
        assert!(
            apart < 40_000,
            "{series:?}, without slack {:?}",
            none.lateness
        );
    }
    Ok(())
}

#[test]
fn a_deadline_task_is_measured_unpinned_and_refused_pinned() -> Result<()> {
    let line = "wake --policy deadline:300us/1ms/1ms --count 500";
    let outcome = probe(line).under("taskset -c 0-1").run()?.success()?;
    let report: Document<WakeSeries> = Document::of("wake", &outcome)?;
    let series = report.only()?;
    assert_eq!((series.cpu, series.samples.taken), (None, 500));
    let thread = &report.whole["conditions"]["threads"][0];
    assert_eq!(thread["policy"], "deadline");
    bears_out(series)?;
    let pinned = probe(&format!("{line} --cpu 1")).run()?;
    pinned.fails_with(2, &["deadline", "--cpu"])
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is() -> Result<()> {
    for (line, code, words) in [
        ("--cpu 900", 2, ["900", "online"]),
        ("--pid 1", 2, ["--also", "target"]),
        ("--also", 2, ["--also", "target"]),
        ("--also --pid 4194303", 1, ["4194303", "--pid"]),
        ("--interval 1us --for 1m", 2, ["--interval", "samples"]),
        (
            "--output /no/such/folder/x",
            1,
            ["/no/such/folder", "--output"],
        ),
        ("--policy deadline:1us/1ms/1ms", 1, ["deadline", "RUNTIME"]),
    ] {
        let began = Instant::now();
        probe(&format!("wake {line}"))
            .under("taskset -c 0-1")
            .run()?
            .fails_with(code, &words)?;
        assert!(began.elapsed() < Duration::from_secs(2), "{line}");
    }
    for line in [
        "--policy fifo:100",
        "--policy fast",
        "--cpu x",
        "--for 1",
        "--count 0",
    ] {
        let outcome = probe(&format!("wake {line}")).run()?;
        assert_eq!(outcome.code(), 2, "{line}: {}", outcome.messages);
    }
    Ok(())
}

#[test]
fn real_time_without_the_right_to_it_is_refused_with_advice() -> Result<()> {
    let unprivileged = "setpriv --bounding-set -sys_nice --inh-caps -sys_nice";
    let line = "wake --policy fifo:80 --count 10";
    let outcome = probe(line).under(unprivileged).run()?;
    outcome.fails_with(1, &["fifo:80", "CAP_SYS_NICE"])
}

/// C092: nothing of the system is changed, unless it is asked for and said.
#[test]
fn c092_idle_states_are_left_alone_unless_asked() -> Result<()> {
    let holds = |line: &str| -> Result<(bool, Document<WakeSeries>)> {
        let running = probe(&format!("wake --policy other --cpu 1 --for 3s {line}")).spawn()?;
        thread::sleep(Duration::from_millis(1_500));
        let files = fs::read_dir(format!("/proc/{}/fd", running.pid()))?;
        let mut open = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        let holds = open.any(|file| file.ends_with("cpu_dma_latency"));
        Ok((holds, Document::of("wake", &running.finish()?.success()?)?))
    };
    let said =
        |report: &Document<WakeSeries>| report.whole["conditions"]["are_idle_states_held"].clone();
    let (held, report) = holds("")?;
    assert!(!held && said(&report) == false);
    if fs::exists("/dev/cpu_dma_latency")? {
        let (held, report) = holds("--no-cstates")?;
        assert!(held && said(&report) == true);
    }
    Ok(())
}

#[test]
fn what_is_observed_alongside_stands_beside_the_probe() -> Result<()> {
    let load = Load::workload("burn 10 --cpu 1 --nice -15")?;
    let report = wake(&format!(
        "--policy fifo:80 --cpu 1 --for 2s --also --pid {}",
        load.pid()
    ))?;
    bears_out(report.only()?)?;
    let tasks = report.whole["record"]["tasks"]
        .as_array()
        .context("no tasks")?;
    let burner = tasks.iter().find(|task| task["tid"] == load.pid());
    let burner = burner.context("no row of the burner")?;
    // It loses the CPU each time the probe wakes.
    let lost = burner["waits"]["preemption"]["count"].as_u64();
    assert!(lost > Some(1_500), "{burner}");
    let others = report.whole["conditions"]["others"].as_array();
    let named = others.context("no others")?.iter();
    assert!(
        named.clone().any(|task| task["tid"] == load.pid()),
        "{named:?}"
    );
    Ok(())
}

#[test]
fn a_probe_that_is_asked_to_end_reports_what_it_has() -> Result<()> {
    let running = probe("wake --policy other --cpu 1 --for 60s").spawn()?;
    thread::sleep(Duration::from_secs(2));
    let report: Document<WakeSeries> = Document::of("wake", &running.interrupt()?.success()?)?;
    let taken = report.only()?.samples.taken;
    assert!((500..3_000).contains(&taken), "{taken}");
    assert!(report.warns("ended_early") && report.warns("few_samples"));
    assert_eq!(report.only()?.lateness.p999_ns, None);
    Ok(())
}
