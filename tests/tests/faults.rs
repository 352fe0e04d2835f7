//! What goes wrong around a recording: it is suspended, its disk is full, its clock is set, its targets lie
//! elsewhere or disappear, its memory is short. Figures stay true, or it says what it cannot do.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use latency_tests::{
    cgroup::Cgroup,
    check,
    disk::TinyDisk,
    load::{Load, workload_binary},
    report::{Interval, Report, ns_of_seconds},
    schedlat::{Outcome, Recording, Schedlat, binary},
    truth::monotonic,
};
use rustix::{
    process::Signal,
    time::{ClockId, Timespec, clock_gettime, clock_settime},
};

/// The sums of the intervals are those of the whole.
fn intervals_add_up(documents: &[serde_json::Value], report: &Report) -> Result<()> {
    let intervals = Interval::among(documents)?;
    let sum = |figure: fn(&Interval) -> u64| intervals.iter().map(figure).sum::<u64>();
    let totals = &report.totals;
    assert_eq!(sum(|it| it.totals.waited_ns), totals.waited_ns);
    assert_eq!(sum(|it| it.totals.waits.count()), totals.waits.count());
    let window_ns = sum(|it| ns_of_seconds(it.window.seconds));
    // Each length is rounded to a nanosecond.
    let n_intervals = intervals.len() as u64;
    ensure!(
        window_ns.abs_diff(report.window_ns()) <= n_intervals,
        "{window_ns} ns in intervals, {} ns in all",
        report.window_ns()
    );
    Ok(())
}

#[test]
fn a_recorder_that_is_suspended_loses_nothing_that_the_kernel_keeps() -> Result<()> {
    let loads = ["burn 20 --cpu 1", "burn 20 --cpu 1"].map(Load::workload);
    let [first, second] = loads;
    let (first, second) = (first?, second?);
    let recorder = Schedlat::record().pid(first.pid()).pid(second.pid());
    let recording = recorder.args("--interval 100ms").start()?;
    thread::sleep(Duration::from_millis(300));
    recording.signal(Signal::STOP)?;
    thread::sleep(Duration::from_millis(1500));
    recording.signal(Signal::CONT)?;
    thread::sleep(Duration::from_millis(300));
    let outcome = recording.interrupt()?.success()?;
    let report = outcome.report()?;
    check::sound(&report)?;
    intervals_add_up(&outcome.documents()?, &report)?;
    for load in [&first, &second] {
        check::runs_or_waits_all_the_time(&report, report.task(load.pid())?)?;
    }
    Ok(())
}

#[test]
fn a_disk_that_fills_up_midway_ends_the_command_as_well() -> Result<()> {
    let (disk, folder) = (TinyDisk::new()?, tempfile::tempdir()?);
    let script = format!("echo $$ > {}/pid; exec sleep 60", folder.path().display());
    let outcome = Schedlat::record()
        .args("--interval 500ms --output")
        .arg(disk.path().join("report.json"))
        .running_words(&["sh", "-c", &script])
        .run()?;
    outcome.fails_with(1, &["report.json", "space"])?;
    assert!(outcome.took < Duration::from_secs(20), "{:?}", outcome.took);
    let pid = fs::read_to_string(folder.path().join("pid"))?;
    let began = Instant::now();
    while is_asleep(pid.trim()) {
        let waited = began.elapsed();
        ensure!(waited < Duration::from_secs(5), "{pid} is left running");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Whether a process of this id is that command, and not another that has the id by now.
fn is_asleep(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == "sleep\x0060\0")
}

/// The wall clock, set forward as long as this value.
struct SetForward {
    /// From the monotonic clock to the right time.
    offset: Duration,
}

impl SetForward {
    fn by(step: Duration) -> Result<Self> {
        let right = Duration::try_from(clock_gettime(ClockId::Realtime))?;
        let this = Self {
            offset: right.saturating_sub(monotonic()),
        };
        this.set(step)?;
        Ok(this)
    }

    fn set(&self, step: Duration) -> Result<()> {
        let time = Timespec::try_from(monotonic() + self.offset + step)?;
        clock_settime(ClockId::Realtime, time).context("cannot set the clock")
    }
}

impl Drop for SetForward {
    fn drop(&mut self) {
        self.set(Duration::ZERO).expect("put the clock back");
    }
}

#[test]
fn c066_a_step_of_the_wall_clock_changes_no_duration() -> Result<()> {
    const STEP: Duration = Duration::from_secs(30);
    let recorder = Schedlat::record().args("--for 1s --interval 100ms");
    let recording = recorder.start()?;
    thread::sleep(Duration::from_millis(300));
    let stepped = SetForward::by(STEP)?;
    thread::sleep(Duration::from_millis(300));
    // And back again.
    drop(stepped);
    let outcome = recording.finish()?.success()?;
    let report = outcome.report()?;
    // An end by the wall clock would come at once, and one after its step back by half a minute late.
    let window = Duration::from_nanos(report.window_ns());
    ensure!(
        (Duration::from_secs(1)..STEP).contains(&window),
        "{window:?}"
    );
    ensure!(outcome.took < STEP, "{:?}", outcome.took);
    intervals_add_up(&outcome.documents()?, &report)?;
    check::sums_are_conserved(&report).map(drop)
}

#[test]
fn c067_times_begin_with_the_recording_and_end_with_it() -> Result<()> {
    let began = Duration::try_from(clock_gettime(ClockId::Realtime))?;
    let outcome = Schedlat::record().args("--for 1s --over 1us").run()?;
    let ended = Duration::try_from(clock_gettime(ClockId::Realtime))?;
    let documents = outcome.success()?.documents()?;
    let last = documents.last().context("no report")?;
    let number = |value: &serde_json::Value| value.as_u64().context("no number");
    let start = number(&last["window"]["start_at_ns"])?;
    let end = number(&last["window"]["end_at_ns"])?;
    let wall = number(&last["window"]["start_wall_ns"])?;
    let (began, ended) = (began.as_nanos(), ended.as_nanos());
    assert!((began..ended).contains(&u128::from(wall)), "{wall}");
    let mut n_waits = 0;
    for wait in &documents {
        if wait["schema"] != "schedlat.record.wait" {
            continue;
        }
        n_waits += 1;
        let at = number(&wait["at_ns"])?;
        ensure!((start..=end).contains(&at), "{at} in {start} to {end}");
    }
    ensure!(n_waits > 0, "nobody waited a microsecond");
    Ok(())
}

#[test]
fn a_monotonic_clock_that_is_not_the_kernels_is_refused() -> Result<()> {
    let line = "unshare --time --monotonic 1000 --fork";
    let elsewhere = |command: &str| Schedlat::command(command).under(line);
    let recorder = elsewhere("record").args("--for 1s");
    recorder
        .run()?
        .fails_with(1, &["time namespace", "nsenter --time"])?;
    let doctor = elsewhere("doctor").run()?;
    assert_eq!(doctor.code(), 1, "{}", doctor.output());
    assert!(doctor.output().contains("time namespace"));
    // One that shifts nothing is no trouble.
    let same = Schedlat::record().under("unshare --time --fork");
    check::sums_are_conserved(&same.args("--for 300ms").report()?).map(drop)
}

#[test]
fn a_target_in_another_pid_namespace_is_followed_from_outside() -> Result<()> {
    let workload = workload_binary()?.display().to_string();
    let line = format!("--pid --fork {workload} burn 20 --cpu 1 --name elsewhere");
    let words: Vec<&str> = line.split(' ').collect();
    let _load = Load::program("unshare", &words)?;
    let pid = eventually(|| pid_of("elsewhere"))?;
    for recorder in [
        Schedlat::record().pid(pid),
        Schedlat::record().comm("elsewhere"),
    ] {
        let report = recorder.args("--for 500ms").report()?;
        check::sound(&report)?;
        assert_eq!(report.tasks.len(), 1);
        // By the id that it has here, not by that which it has there.
        let row = report.task(pid)?;
        check::runs_or_waits_all_the_time(&report, row)?;
    }
    Ok(())
}

fn pid_of(name: &str) -> Option<u32> {
    let stats = procfs::process::all_processes()
        .ok()?
        .filter_map(|process| process.ok()?.stat().ok());
    let mut found = stats.filter(|stat| stat.comm == name);
    u32::try_from(found.next()?.pid).ok()
}

/// What appears within a few seconds.
fn eventually<T>(look: impl Fn() -> Option<T>) -> Result<T> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        if let Some(found) = look() {
            return Ok(found);
        }
        thread::sleep(Duration::from_millis(10));
    }
    bail!("it did not appear")
}

#[test]
fn a_group_that_is_removed_while_it_is_recorded_keeps_its_rows() -> Result<()> {
    let group = Cgroup::with_cpu_controller("removed")?;
    let load = group.workload("burn 20 --cpu 1")?;
    let pid = load.pid();
    let recording = Schedlat::record()
        .cgroup(group.directory())
        .args("--for 2s --interval 200ms")
        .start()?;
    thread::sleep(Duration::from_millis(500));
    drop(load);
    let directory = group.directory().to_owned();
    drop(group);
    ensure!(!directory.exists(), "the group is still there");
    let outcome = recording.finish()?.success()?;
    let report = outcome.report()?;
    check::sound(&report)?;
    intervals_add_up(&outcome.documents()?, &report)?;
    let row = report.task(pid)?;
    assert!(row.exited, "it has not ended");
    let name = directory.file_name().context("no name")?.to_string_lossy();
    let path = row.cgroup.as_deref().context("no cgroup")?;
    assert!(path.ends_with(&*name), "{path}");
    Ok(())
}

/// The file that says which process id was given last, and by which the next can be chosen.
const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

#[test]
fn c006_a_thread_id_that_is_used_again_is_a_row_of_its_own() -> Result<()> {
    let recording = Schedlat::record().comm("reused").start()?;
    let first = life()?;
    let mut n_lives = 1;
    for attempt in 0.. {
        ensure!(attempt < 50, "others always took process id {first}");
        fs::write(LAST_PID, (first - 1).to_string())?;
        n_lives += 1;
        if life()? == first {
            break;
        }
    }
    // Their last records are read.
    thread::sleep(Duration::from_millis(300));
    let report = recording.stop()?;
    check::sound(&report)?;
    assert_eq!(report.tasks.len(), n_lives, "a row for each");
    let tasks = report.tasks.iter();
    let rows: Vec<_> = tasks.filter(|row| row.tid == Some(first)).collect();
    assert_eq!(rows.len(), 2, "rows of {first}");
    assert_ne!(rows[0].start_time_ns, rows[1].start_time_ns);
    assert!(rows.iter().all(|row| row.exited));
    Ok(())
}

/// A process that spins for a moment under the name that is recorded; its id.
fn life() -> Result<u32> {
    let load = Load::workload("burn 0.02 --name reused")?;
    let pid = load.pid();
    load.truth()?;
    Ok(pid)
}

/// Runs it as a member of a group that may use so much memory.
fn recorded_within(mib: u64) -> Result<Outcome> {
    let group = Cgroup::with_memory_limit(&format!("{mib}-mib"), mib << 20)?;
    let mut command: Command = group.command(binary()?);
    command.args(["record", "--for", "500ms", "--format", "json"]);
    Recording::of(command)?.finish()
}

#[test]
fn a_memory_limit_is_no_trouble_or_a_clear_end() -> Result<()> {
    let report = recorded_within(256)?.success()?.report()?;
    check::sums_are_conserved(&report)?;
    // Where it is too little the kernel refuses memory for maps, or kills.
    for mib in [24, 4] {
        let outcome = recorded_within(mib)?;
        match outcome.code() {
            0 => drop(check::sums_are_conserved(&outcome.report()?)?),
            1 => outcome.fails_with(1, &[])?,
            code => assert_eq!(code, 137, "{mib} MiB: {}", outcome.messages),
        }
        ensure!(outcome.took < Duration::from_secs(20), "{mib} MiB");
    }
    Ok(())
}
