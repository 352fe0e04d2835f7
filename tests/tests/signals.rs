//! Every way a recording can end, and what is left behind.

use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use latency_tests::{
    bpf_object::BpfObject,
    check,
    disk::TinyDisk,
    load::Load,
    schedlat::{Recording, Schedlat, binary},
    truth::monotonic,
};
use rustix::process::Signal;

/// A report must be complete this soon after a signal.
const PROMPT: Duration = Duration::from_secs(2);

/// A number below `limit` that differs from run to run; printed by the caller when it matters.
fn arbitrary(limit: u64) -> u64 {
    u64::from(monotonic().subsec_micros()) % limit
}

#[test]
fn c087_an_interrupt_at_any_time_gives_whole_documents() -> Result<()> {
    let _load = Load::workload("pipe 120 --cpu 1 --peer-cpu 1")?;
    for run in 0..18 {
        let signal = [Signal::INT, Signal::TERM, Signal::HUP][run / 2 % 3];
        let interval = ["--interval 50ms", ""][run % 2];
        let after = Duration::from_millis(50 + arbitrary(500));
        let recording = Schedlat::record().args(interval).spawn()?;
        thread::sleep(after);
        recording.signal(signal)?;
        let asked = Instant::now();
        let outcome = recording.finish()?;
        let context = || format!("run {run}: {signal:?} after {after:?} with '{interval}'");
        ensure!(
            asked.elapsed() < PROMPT,
            "{}: took {:?}",
            context(),
            asked.elapsed()
        );
        ensure!(
            outcome.code() == 0,
            "{}: {} {}",
            context(),
            outcome.code(),
            outcome.messages
        );
        outcome.report().with_context(context)?;
    }
    Ok(())
}

#[test]
fn c072_an_interrupt_during_attach_or_a_storm_is_obeyed() -> Result<()> {
    let _storm = Load::program("hackbench", &["-g", "4", "-l", "1000000"])?;
    for after in [0, 5, 20, 50, 3000] {
        let recording = Schedlat::record().spawn()?;
        thread::sleep(Duration::from_millis(after));
        recording.signal(Signal::INT)?;
        let asked = Instant::now();
        let outcome = recording.finish()?;
        // Before its handlers exist the signal simply ends it.
        let is_expected = outcome.code() == 0 || (after <= 50 && outcome.code() == 130);
        assert!(
            is_expected,
            "code {} after {after} ms: {}",
            outcome.code(),
            outcome.messages
        );
        assert!(
            asked.elapsed() < PROMPT * 2,
            "after {after} ms it took {:?}",
            asked.elapsed()
        );
        if outcome.code() == 0 {
            outcome.report()?;
        }
    }
    Ok(())
}

#[test]
fn an_interrupt_as_the_recording_ends_by_itself_takes_no_report_away() -> Result<()> {
    for run in 0..15 {
        let recording = Schedlat::record().lasting(0.2).start()?;
        // From just before its end, through the writing of the report.
        thread::sleep(Duration::from_millis(195 + run));
        // It may be gone already.
        drop(recording.signal(Signal::INT));
        let outcome = recording.finish()?;
        ensure!(
            outcome.code() == 0,
            "run {run}: {} {}",
            outcome.code(),
            outcome.messages
        );
        outcome.report().with_context(|| format!("run {run}"))?;
    }
    Ok(())
}

#[test]
fn a_closed_pipe_is_a_quiet_end() -> Result<()> {
    let _load = Load::workload("burn 20 --cpu 1")?;
    let script = "record --interval 100ms --for 3s --format json".split(' ');
    let mut child = Command::new(binary()?)
        .args(script)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{messages}");
    assert!(!messages.contains("panic"), "{messages}");
    Ok(())
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() -> Result<()> {
    let disk = TinyDisk::new()?;
    let file = disk.path().join("report.json");
    let outcome = Schedlat::record()
        .lasting(0.5)
        .arg("--output")
        .arg(&file)
        .run()?;
    outcome.fails_with(1, &["report.json", "space"])
}

#[test]
fn an_output_that_takes_nothing_is_an_error_as_well() -> Result<()> {
    let full = fs::File::options().write(true).open("/dev/full")?;
    let output = Command::new(binary()?)
        .args(["record", "--for", "300ms"])
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()?
        .wait_with_output()?;
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.contains("standard output"), "{messages}");
    assert!(messages.contains("space"), "{messages}");
    Ok(())
}

#[test]
fn recording_ends_with_its_target() -> Result<()> {
    let mut load = Load::workload("burn 1 --cpu 1")?;
    let began = Instant::now();
    let outcome = Schedlat::record()
        .pid(load.pid())
        .lasting(20.0)
        .run()?
        .success()?;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "it went on for {:?}",
        began.elapsed()
    );
    load.wait(Duration::from_secs(1))?;
    let report = outcome.report()?;
    check::sound(&report)?;
    assert!(report.task(load.pid())?.exited);
    Ok(())
}

#[test]
fn c075_the_childs_exit_status_is_passed_on() -> Result<()> {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -9 $$", 137),
        ("kill -15 $$", 143),
    ] {
        let outcome = Schedlat::record()
            .running_words(&["sh", "-c", script])
            .run()?;
        assert_eq!(outcome.code(), code, "of '{script}': {}", outcome.messages);
        outcome.report()?;
    }
    Schedlat::record()
        .running("/nonexistent/program")
        .run()?
        .fails_with(127, &["nonexistent"])?;
    Schedlat::record()
        .running("/etc/passwd")
        .run()?
        .fails_with(126, &["/etc/passwd"])
}

#[test]
fn an_interrupt_while_a_child_runs_still_reports() -> Result<()> {
    // Ctrl-C reaches the command as well, whose status is passed on. Asked to terminate, the recorder
    // ends the command itself.
    type Send = fn(&Recording) -> Result<()>;
    const WAYS: [(Send, i32); 2] = [
        (|recording| recording.signal_group(Signal::INT), 130),
        (|recording| recording.signal(Signal::TERM), 143),
    ];
    for (send, code) in WAYS {
        let recording = Schedlat::record()
            .args("--interval 1h")
            .running("sleep 20")
            .start()?;
        thread::sleep(Duration::from_millis(500));
        send(&recording)?;
        let outcome = recording.finish()?;
        assert_eq!(outcome.code(), code, "{}", outcome.messages);
        assert!(
            outcome.took < Duration::from_secs(8),
            "it took {:?}",
            outcome.took
        );
        let report = outcome.report()?;
        check::sound(&report)?;
        assert_eq!(report.named("sleep").len(), 1);
    }
    Ok(())
}

#[test]
fn a_command_that_outlives_its_recording_can_still_be_ended() -> Result<()> {
    let recording = Schedlat::record()
        .lasting(0.3)
        .running("sleep 20")
        .spawn()?;
    // Whole before the signal: the report does not wait for the command.
    thread::sleep(Duration::from_secs(3));
    recording.signal(Signal::TERM)?;
    let asked = Instant::now();
    let outcome = recording.finish()?;
    assert!(asked.elapsed() < PROMPT, "{:?}", asked.elapsed());
    assert_eq!(outcome.code(), 143, "{}", outcome.messages);
    outcome.report()?;
    Ok(())
}

#[test]
fn nohup_keeps_a_recording_alive() -> Result<()> {
    let recording = Schedlat::record().under("nohup").lasting(3.0).spawn()?;
    thread::sleep(Duration::from_millis(1500));
    recording.signal(Signal::HUP)?;
    let report = recording.finish()?.report()?;
    assert!(report.window_ns() > 2_900_000_000, "{report:?}");
    Ok(())
}

#[test]
fn kill_9_leaves_nothing_in_the_kernel() -> Result<()> {
    let _load = Load::workload("pipe 20 --cpu 1 --peer-cpu 1")?;
    let recording = Schedlat::record().start()?;
    let objects = BpfObject::held_by(recording.pid())?;
    let programs = objects
        .iter()
        .filter(|object| matches!(object, BpfObject::Program(_)));
    let maps = objects
        .iter()
        .filter(|object| matches!(object, BpfObject::Map(_)));
    assert!(programs.count() >= 5, "{objects:?}");
    assert!(maps.count() >= 3, "{objects:?}");
    assert!(objects.iter().all(|object| object.exists()));
    recording.signal(Signal::KILL)?;
    assert_eq!(recording.finish()?.code(), 137);
    wait_until_gone(&objects)
}

#[test]
fn a_normal_end_leaves_nothing_in_the_kernel() -> Result<()> {
    let recording = Schedlat::record().start()?;
    let objects = BpfObject::held_by(recording.pid())?;
    recording.stop()?;
    wait_until_gone(&objects)
}

/// The kernel frees maps after a grace period or two.
fn wait_until_gone(objects: &[BpfObject]) -> Result<()> {
    let began = Instant::now();
    loop {
        let left: Vec<_> = objects.iter().filter(|object| object.exists()).collect();
        if left.is_empty() {
            return Ok(());
        }
        ensure!(
            began.elapsed() < Duration::from_secs(5),
            "left in the kernel: {left:?}"
        );
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn two_recorders_at_once_agree() -> Result<()> {
    let rival = Load::workload("burn 20 --cpu 1 --nice -15")?;
    let load = Load::workload("burn 20 --cpu 1 --nice -15")?;
    let start = || -> Result<Recording> { Schedlat::record().pid(load.pid()).start() };
    let (first, second) = (start()?, start()?);
    thread::sleep(Duration::from_secs(3));
    let reports = [first.stop()?, second.stop()?];
    drop(rival);
    let mut shares = Vec::new();
    for report in &reports {
        check::sound(report)?;
        let stats = &report.task(load.pid())?.stats;
        shares.push(check::ratio(stats.waited_ns, report.window_ns()));
    }
    // The first began a little earlier.
    assert!((shares[0] - shares[1]).abs() < 0.05, "{shares:?}");
    Ok(())
}

#[test]
fn an_output_file_holds_what_stdout_would() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("report.json");
    let outcome = Schedlat::record()
        .lasting(0.5)
        .arg("--output")
        .arg(&file)
        .run()?
        .success()?;
    assert!(outcome.lines.is_empty(), "it printed {}", outcome.output());
    latency_tests::report::Report::parse(&fs::read_to_string(&file)?)?;
    Ok(())
}
