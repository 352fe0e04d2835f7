//! Other people's probes under `schedlat verify`: honest ones, stopped ones, and liars.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use latency_tests::{
    check,
    report::Verification,
    schedlat::{Recording, Schedlat},
};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

/// A millisecond.
const MS: u64 = 1_000_000;

/// `schedlat verify --format json -- LINE`.
fn verify(line: &str) -> Schedlat {
    Schedlat::command("verify")
        .args("--format json")
        .running(line)
}

fn verified(line: &str) -> Result<Verification> {
    Verification::of(&verify(line).run()?.success()?)
}

#[test]
fn honest_cyclictest_agrees() -> Result<()> {
    let found = verified("cyclictest -q -D 3 -i 1000 -t 1 -a 1 -m -p 80")?;
    found.is("agrees")?;
    assert_eq!(found.tool, "cyclictest");
    assert!(found.audit.ok, "{:?}", found.audit.findings);
    let thread = found.thread()?;
    assert_ne!(thread.tid, thread.tgid, "its main thread measures nothing");
    assert_eq!(thread.comm, "cyclictest");
    let conditions = thread.conditions.as_ref().context("it was not looked at")?;
    assert_eq!(
        (conditions.policy.as_str(), conditions.priority),
        ("fifo", 80)
    );
    assert_eq!(
        (conditions.cpus_allowed.as_str(), conditions.stops),
        ("1", 0)
    );
    let series = &found.claims.series[0];
    let taken = series.taken.context("no samples")?;
    assert!((2_900..=3_001).contains(&taken), "{taken} samples in 3 s");
    // What is measured here is a part of what it measures.
    let mean_ns = series.latency.mean_ns.context("no mean")?;
    assert!(thread.wakeup_latency.mean_ns < mean_ns);
    assert_eq!(found.reason("samples")?.claimed, Some(taken));
    found.reason("cpu_latency_held").map(|_| ())
}

#[test]
fn threads_of_several_cpus_are_told_apart() -> Result<()> {
    let found =
        verified("cyclictest -q -D 2 -i 1000 -d 0 -t 2 -a 0,1 -p 80 --default-system -h 400")?;
    found.is("agrees")?;
    let cpus: Vec<_> = found
        .kernel
        .threads
        .iter()
        .map(|thread| {
            thread
                .conditions
                .as_ref()
                .map(|it| it.cpus_allowed.as_str())
        })
        .collect();
    assert_eq!(cpus, [Some("0"), Some("1")]);
    assert!(
        found.reason("cpu_latency_held").is_err(),
        "it was asked not to"
    );
    Ok(())
}

#[test]
fn c097_cyclictest_that_was_stopped_midway_omits() -> Result<()> {
    let line = "cyclictest -q -D 6 -i 1000 -t 1 -a 1 -m -p 80";
    let recording = verify(line).args("--strict").spawn()?;
    let tool = tool_of(&recording, "cyclictest")?;
    thread::sleep(Duration::from_secs(1));
    signal(tool, Signal::STOP)?;
    let stopped = Instant::now();
    thread::sleep(Duration::from_millis(1500));
    signal(tool, Signal::CONT)?;
    let stopped_ms = u64::try_from(stopped.elapsed().as_millis())?;
    let outcome = recording.finish()?;
    assert_eq!(outcome.code(), 3, "{}", outcome.messages);
    let found = Verification::of(&outcome)?;
    found.is("omits")?;
    let thread = found.thread()?;
    let missed = thread.missed_periods.context("periods are not known")?;
    let periods = thread.periods.context("periods are not known")?;
    // 1.5 s, and what lies before the first period and after the last look.
    let expected = stopped_ms - 50..=stopped_ms + 100;
    assert!(
        expected.contains(&missed),
        "{missed} missed, not {expected:?}"
    );
    assert!((5_900..=6_100).contains(&periods), "{periods} periods");
    let conditions = thread.conditions.as_ref().context("it was not looked at")?;
    assert_eq!(conditions.stops, 1);
    // It is looked at every 20 ms.
    let expected = (stopped_ms - 100) * MS..(stopped_ms + 100) * MS;
    assert!(expected.contains(&conditions.stopped_ns), "{conditions:?}");
    let reason = found.reason("missed_periods")?;
    assert_eq!(reason.kind, "omission");
    assert_eq!(reason.kernel, Some(periods));
    assert_eq!(reason.claimed, found.claims.series[0].taken);
    assert!(reason.text.contains("stopped for 1."), "{}", reason.text);
    // Of all periods a quarter was late; of its samples one in thousands was.
    let (late, stopped) = (
        check::ratio(missed, periods),
        check::ratio(stopped_ms, 6_000),
    );
    assert!((late - stopped).abs() < 0.02, "{late}, not {stopped}");
    Ok(())
}

#[test]
fn c094_slack_of_a_fair_cyclictest_is_named() -> Result<()> {
    let found = verified("cyclictest -q -D 1 -i 1000 -t 1 -a 1 --policy=other")?;
    found.is("agrees")?;
    let slack = found.reason("timer_slack")?;
    assert_eq!(slack.kernel, Some(50_000));
    let conditions = found.thread()?.conditions.as_ref();
    assert_eq!(conditions.and_then(|it| it.timer_slack_ns), Some(50_000));
    Ok(())
}

#[test]
fn oslat_beside_a_burner_sees_what_the_kernel_sees() -> Result<()> {
    let _burner = latency_tests::load::Load::workload("burn 20 --cpu 1")?;
    let found = verified("oslat -D 1 -c 1")?;
    found.is("agrees")?;
    let thread = found.thread()?;
    assert!(thread.interruptions.lost_cpu > 20, "{thread:?}");
    let max_ns = found.claims.series[0]
        .latency
        .max_ns
        .context("no maximum")?;
    assert!(max_ns + 1_000 + max_ns / 50 > thread.interruptions.lost_cpu_max_ns);
    Ok(())
}

#[test]
fn stress_ng_rests_on_its_first_samples() -> Result<()> {
    let found = verified("stress-ng --cyclic 1 --cyclic-sleep 100000 -t 3")?;
    found.is("omits")?;
    let reason = found.reason("first_samples_only")?;
    assert_eq!(reason.claimed, Some(10_000));
    let taken = found.claims.series[0].taken.context("no samples")?;
    assert!(taken > 12_000 && reason.kernel == Some(taken), "{reason:?}");
    let all = verified("stress-ng --cyclic 1 --cyclic-samples 50000 -t 2")?;
    all.is("agrees")
}

#[test]
fn totals_of_hackbench_and_perf_bench_agree() -> Result<()> {
    let found = verified("hackbench -g 1 -l 200")?;
    found.is("agrees")?;
    assert_eq!(found.claims.tasks, Some(40));
    assert!(found.kernel.n_tasks >= 41);
    let found = verified("perf bench sched pipe -l 20000")?;
    found.is("agrees")?;
    assert_eq!(found.claims.operations, Some(20_000));
    assert!(found.kernel.elapsed_ns > found.claims.duration_ns.context("no total")?);
    let found = verified("perf bench --format=simple sched messaging -g 1")?;
    found.is("agrees")?;
    found.reason("total_only").map(|_| ())
}

#[test]
fn liar_disagrees() -> Result<()> {
    let directory = TempDir::new()?;
    // The real one, whose figures are touched up afterwards.
    let liar = script(
        &directory,
        "cyclictest",
        "/usr/bin/env PATH=/usr/bin:/bin cyclictest \"$@\"\n\
         for word; do case $word in --json=*) file=${word#--json=};; esac; done\n\
         sed -i 's/\"max\": .*/\"max\": 2,/; s/\"min\": .*/\"min\": 1,/; s/\"avg\": .*/\"avg\": 1.50,/' \"$file\"",
    )?;
    let line = format!("{} -q -D 1 -i 1000 -t 1 -a 1 -p 80", liar.display());
    let outcome = verify(&line).args("--strict").run()?;
    assert_eq!(outcome.code(), 3, "{}", outcome.messages);
    let found = Verification::of(&outcome)?;
    found.is("disagrees")?;
    for code in ["max_below_kernel", "mean_below_kernel"] {
        let reason = found.reason(code)?;
        assert_eq!(reason.kind, "contradiction");
        assert!(reason.claimed < reason.kernel, "{reason:?}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_read_or_known_is_an_error_with_help() -> Result<()> {
    let directory = TempDir::new()?;
    let rubbish = script(
        &directory,
        "oslat",
        "for word; do echo \"[[[\" >${word#--json=}; done",
    )?;
    let line = format!("{}", rubbish.display());
    verify(&line)
        .run()?
        .fails_with(1, &["cannot read what oslat says", "not JSON"])?;
    let silent = script(&directory, "hackbench", "true")?;
    let line = format!("{}", silent.display());
    verify(&line)
        .run()?
        .fails_with(1, &["'Time:' is missing"])?;
    verify("true")
        .run()?
        .fails_with(2, &["cannot tell which tool 'true' is", "--tool"])?;
    let failing = script(&directory, "schbench", "exit 7")?;
    let outcome = verify(&format!("{}", failing.display())).run()?;
    ensure!(
        outcome.code() == 7,
        "{}: {}",
        outcome.code(),
        outcome.messages
    );
    ensure!(outcome.lines.is_empty(), "{}", outcome.output());
    Ok(())
}

/// An executable script of this name.
fn script(directory: &TempDir, name: &str, body: &str) -> Result<PathBuf> {
    let path = directory.path().join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n"))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// The process of this name that schedlat has started, once it is there.
fn tool_of(recording: &Recording, name: &str) -> Result<u32> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        for pid in children_of(recording.pid()) {
            let comm = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("comm"));
            if comm.is_ok_and(|comm| comm.trim_end() == name) {
                return Ok(pid);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
    anyhow::bail!("schedlat did not start {name}")
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let pids = text.unwrap_or_default();
    pids.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.context("no process id")?;
    rustix::process::kill_process(pid, signal).context("cannot signal the tool")
}
