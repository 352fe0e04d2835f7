//! The flight recorder: dumps decode with Perfetto's own definitions and hold what the report counts.

mod marks;
mod trace;

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use latency_tests::{
    bpf_object::BpfObject,
    check,
    load::Load,
    report::{Report, Row},
    schedlat::{Outcome, Schedlat},
};
use perfetto_protos::{builtin_clock::BuiltinClock, ftrace_event::ftrace_event::Event as Kind};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use trace::Dump;

/// States of a task that leaves the CPU as the tracepoint tells them: running, and preempted.
const STILL_RUNNABLE: [i64; 2] = [0, 0x100];

/// A folder for dumps.
struct Dumps {
    folder: TempDir,
}

impl Dumps {
    fn new() -> Result<Self> {
        Ok(Self {
            folder: TempDir::new()?,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A recording of all tasks whose dumps are `a.pftrace`, `a-2.pftrace` and so on.
    fn record(&self, window: &str) -> Schedlat {
        Schedlat::record()
            .args(&format!("--flight {window} --flight-output"))
            .arg(self.path("a.pftrace"))
    }
}

/// What the report says of its dumps.
fn dumps_of(outcome: &Outcome) -> Result<Vec<Value>> {
    let last = outcome.documents()?.pop().context("no report")?;
    let dumps = last["flight"].as_array();
    Ok(dumps.context("the report lists no dumps")?.clone())
}

/// Records while loads run, which end before the recording does.
fn record_whole(lines: &[&str], dumps: &Dumps) -> Result<(Report, Dump, Vec<u32>)> {
    let recording = dumps.record("30s").start()?;
    let loads = lines.iter().map(|line| Load::workload(line));
    let loads: Vec<_> = loads.collect::<Result<_>>()?;
    let mut tids = Vec::new();
    for load in loads {
        tids.push(load.pid());
        tids.extend(&load.tids);
        load.truth()?;
    }
    let report = recording.stop()?;
    let dump = Dump::read(&dumps.path("a.pftrace"))?;
    Ok((report, dump, tids))
}

#[test]
fn dump_decodes_field_by_field_with_the_official_definitions() -> Result<()> {
    let dumps = Dumps::new()?;
    // The third calls itself by bytes that are no text, an escape sequence and a line's end among them.
    let odd = "odd-comm fffe223b7c0a1b5b33316d41 0.5";
    let loads = ["burn 0.5 --cpu 1", "wake 20 --cpu 0", odd];
    let (report, dump, tids) = record_whole(&loads, &dumps)?;
    ensure!(
        dump.clocks.primary_trace_clock() == BuiltinClock::BUILTIN_CLOCK_MONOTONIC,
        "the trace is on {:?}",
        dump.clocks.primary_trace_clock()
    );
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    assert_eq!(dump.system.utsname.sysname(), "Linux");
    assert_eq!(dump.system.utsname.release(), release);
    let (from_ns, until_ns) = (report.window.start_at_ns, dump.taken_at_ns()?);
    for event in &dump.events {
        ensure!(
            (from_ns..=until_ns).contains(&event.at_ns),
            "{event:?} is outside {from_ns} to {until_ns}"
        );
        check_fields(&event.kind).with_context(|| format!("{event:?}"))?;
    }
    for tid in tids {
        let threads = dump.tree.threads.iter();
        let thread = threads.clone().find(|it| it.tid() == tid.cast_signed());
        let thread = thread.with_context(|| format!("no thread {tid}"))?;
        assert_eq!(thread.tgid(), tid.cast_signed(), "{thread:?}");
        let row = report.task(tid)?;
        assert_eq!(Some(thread.name()), row.comm.as_deref());
        let processes = dump.tree.processes.iter();
        let process = processes.clone().find(|it| it.pid() == tid.cast_signed());
        let process = process.with_context(|| format!("no process {tid}"))?;
        assert_eq!(process.cmdline.first(), row.process_comm.as_ref());
        assert!(process.cmdline_is_comm(), "{process:?}");
    }
    Ok(())
}

/// Every field that an event of ftrace has must be there and make sense.
fn check_fields(event: &Kind) -> Result<()> {
    let is_whole = match event {
        Kind::SchedSwitch(it) => {
            let is_task = |comm: &Option<String>, pid: Option<i32>, prio: Option<i32>| {
                comm.as_ref().is_some_and(|comm| !comm.is_empty())
                    && pid.is_some_and(|pid| pid >= 0)
                    && prio.is_some_and(|prio| (-1..140).contains(&prio))
            };
            is_task(&it.prev_comm, it.prev_pid, it.prev_prio)
                && is_task(&it.next_comm, it.next_pid, it.next_prio)
                && it
                    .prev_state
                    .is_some_and(|state| state == 0 || state.count_ones() == 1)
        }
        Kind::SchedWaking(it) => {
            it.has_comm() && it.pid() > 0 && it.success() == 1 && it.has_target_cpu()
        }
        Kind::SchedWakeup(it) => {
            it.has_comm() && it.pid() > 0 && it.success() == 1 && it.has_target_cpu()
        }
        Kind::SchedWakeupNew(it) => {
            it.has_comm() && it.pid() > 0 && it.success() == 1 && it.has_target_cpu()
        }
        Kind::SchedMigrateTask(it) => it.pid() > 0 && it.orig_cpu() != it.dest_cpu(),
        Kind::IrqHandlerEntry(it) => it.has_irq() && !it.name().is_empty(),
        Kind::IrqHandlerExit(it) => it.has_irq() && it.has_ret(),
        Kind::SoftirqEntry(it) => it.vec.is_some_and(|vec| vec < 10),
        Kind::SoftirqExit(it) => it.vec.is_some_and(|vec| vec < 10),
        Kind::LocalTimerEntry(it) => it.has_vector(),
        Kind::LocalTimerExit(it) => it.has_vector(),
        _ => bail!("no dump has such an event"),
    };
    ensure!(is_whole, "a field is missing or absurd");
    Ok(())
}

#[test]
fn c083_switches_and_waits_of_burners_equal_the_reports() -> Result<()> {
    let dumps = Dumps::new()?;
    let (report, dump, tids) = record_whole(&["burn 1 --cpu 1", "burn 1 --cpu 1"], &dumps)?;
    check_chain(&report, &dump)?;
    // What such a switch cuts is measured by neither.
    let n_missed = report.audit.switches.missed;
    for tid in tids {
        let row = report.task(tid)?;
        let left = dump
            .switches()
            .filter(|(_, it)| it.prev_pid() == tid.cast_signed());
        let switches = row.stats.switches;
        assert_eq!(
            left.count() as u64,
            switches.voluntary + switches.involuntary,
            "{tid}"
        );
        let waits = waits_after_losing_the_cpu(&dump, tid);
        let ours = row.stats.waits.preemption;
        ensure!(
            (waits.len() as u64).abs_diff(ours.count) <= n_missed,
            "{} waits in the dump, {} in the report, {n_missed} missed switches",
            waits.len(),
            ours.count
        );
        // The two programs read the clock some hundred nanoseconds apart.
        check::near(
            "preemption waits",
            waits.iter().sum(),
            ours.sum_ns,
            0.005,
            0,
        )?;
        let longest = waits.iter().max().copied().unwrap_or_default();
        check::near("the longest", longest, ours.max_ns, 0.005, 10_000)?;
    }
    Ok(())
}

/// Who is switched in is who is switched out next. A host may hide switches from every program alike.
fn check_chain(report: &Report, dump: &Dump) -> Result<()> {
    let (n_breaks, n_missed) = (dump.n_breaks(), report.audit.switches.missed);
    ensure!(
        n_breaks <= n_missed,
        "{n_breaks} breaks of the chain, {n_missed} missed switches"
    );
    Ok(())
}

/// From each switch-out that left a thread runnable to its next switch-in.
fn waits_after_losing_the_cpu(dump: &Dump, tid: u32) -> Vec<u64> {
    let mut since_ns = None;
    let mut waits = Vec::new();
    for (event, switch) in dump.switches() {
        if switch.next_pid() == tid.cast_signed() {
            waits.extend(since_ns.take().map(|since_ns| event.at_ns - since_ns));
        } else if switch.prev_pid() == tid.cast_signed() {
            let is_runnable = STILL_RUNNABLE.contains(&switch.prev_state());
            since_ns = is_runnable.then_some(event.at_ns);
        }
    }
    waits
}

#[test]
fn wakeups_name_waker_and_target_and_are_as_many_as_the_reports() -> Result<()> {
    const N_WAKES: u64 = 500;
    let dumps = Dumps::new()?;
    let line = format!("wake {N_WAKES} --interval-us 200 --cpu 0 --peer-cpu 1");
    let (report, dump, tids) = record_whole(&[&line], &dumps)?;
    let [waker, reader] = tids[..] else {
        bail!("the workload has not two tasks: {tids:?}");
    };
    let row: &Row = report.task(reader)?;
    let woken = dump.events.iter().filter(
        |event| matches!(&event.kind, Kind::SchedWakeup(it) if it.pid() == reader.cast_signed()),
    );
    let expected = row.stats.waits.wakeup.count + row.stats.wakeups_not_asleep;
    let n_woken = woken.count() as u64;
    // Of a wait that a switch without an event cut, only the wakeup is there.
    ensure!(
        (expected..=expected + report.lost("unmeasured_waits")?).contains(&n_woken),
        "{n_woken} wakeups in the dump, {expected} in the report"
    );
    let wakings = dump.events.iter().filter(|event| match &event.kind {
        Kind::SchedWaking(it) => {
            it.pid() == reader.cast_signed() && it.target_cpu() == 1 && event.pid == waker
        }
        _ => false,
    });
    let n_wakings = wakings.clone().count() as u64;
    // A byte that comes before the reader is back asleep wakes nobody, on a busy host most do. Of its
    // few sleeps while it is set up some end otherwise.
    ensure!(
        n_woken > 20 && (n_woken - 5..=n_woken).contains(&n_wakings),
        "{n_wakings} wakings by the waker, {n_woken} wakeups"
    );
    ensure!(
        wakings.clone().all(|event| event.cpu == 0),
        "the waker is pinned to CPU 0"
    );
    Ok(())
}

#[test]
fn signal_saves_a_dump_while_the_recording_goes_on() -> Result<()> {
    let dumps = Dumps::new()?;
    let _load = Load::workload("burn 60 --cpu 1")?;
    let recording = dumps.record("500ms").start()?;
    thread::sleep(Duration::from_secs(1));
    recording.signal(Signal::USR1)?;
    let first = wait_for_dump(&dumps.path("a.pftrace"))?;
    thread::sleep(Duration::from_secs(1));
    let outcome = recording.interrupt()?.success()?;
    let second = Dump::read(&dumps.path("a-2.pftrace"))?;
    let said = dumps_of(&outcome)?;
    assert_eq!(said.len(), 2, "{said:?}");
    for (said, dump, reason) in [(&said[0], &first, "signal"), (&said[1], &second, "end")] {
        assert_eq!(said["reason"], reason);
        assert_eq!(said["at_ns"].as_u64(), Some(dump.taken_at_ns()?));
        let from_ns = said["from_ns"].as_u64().context("no from_ns")?;
        let window_ns = dump.taken_at_ns()? - from_ns;
        assert_eq!(window_ns, 500_000_000);
        let earliest_ns = dump.events.first().context("no events")?.at_ns;
        assert!(earliest_ns >= from_ns, "{earliest_ns} is before {from_ns}");
        let cpus = said["cpus"].as_array().context("no CPUs")?;
        let n_events: u64 = cpus.iter().filter_map(|cpu| cpu["n_events"].as_u64()).sum();
        assert_eq!(n_events, dump.events.len() as u64);
    }
    let gap_ns = second.taken_at_ns()? - first.taken_at_ns()?;
    assert!(gap_ns > 900_000_000, "the dumps are {gap_ns} ns apart");
    Ok(())
}

/// The file is written at one go, but not in an instant.
fn wait_for_dump(path: &std::path::Path) -> Result<Dump> {
    let began = Instant::now();
    loop {
        let is_begun = fs::metadata(path).is_ok_and(|file| file.len() > 0);
        match Dump::read(path) {
            Ok(dump) if is_begun => return Ok(dump),
            _ if began.elapsed() < Duration::from_secs(5) => {
                thread::sleep(Duration::from_millis(50));
            }
            other => return other,
        }
    }
}

#[test]
fn ring_that_was_too_small_says_how_far_it_reaches() -> Result<()> {
    let dumps = Dumps::new()?;
    let _load = Load::workload("pipe 60 --cpu 1 --peer-cpu 1")?;
    let recording = dumps.record("10s").args("--flight-bytes 65536").start()?;
    thread::sleep(Duration::from_secs(1));
    let outcome = recording.interrupt()?.success()?;
    let dump = Dump::read(&dumps.path("a.pftrace"))?;
    let said = dumps_of(&outcome)?;
    let cpus = said[0]["cpus"].as_array().context("no CPUs")?;
    let cpu = cpus
        .iter()
        .find(|cpu| cpu["cpu"] == 1)
        .context("no CPU 1")?;
    assert_eq!(cpu["is_cut"], true, "{cpu}");
    assert!(dump.cut_cpus.contains(&1), "{:?}", dump.cut_cpus);
    let reaches_back_ns = cpu["reaches_back_ns"].as_u64().context("no reach")?;
    let earliest_ns = dump.events_of(1).next().context("no events")?.at_ns;
    assert_eq!(reaches_back_ns, dump.taken_at_ns()? - earliest_ns);
    // 64 KiB are 1,024 records, for two CPUs or more, and a round trip takes six.
    let n_events = dump.events_of(1).count();
    assert!((100..=512).contains(&n_events), "{n_events} events");
    assert!(reaches_back_ns < 100_000_000, "{reaches_back_ns}");
    // What was overwritten while it was copied must not show.
    check_chain(&outcome.report()?, &dump)?;
    for event in dump.events_of(1) {
        check_fields(&event.kind).with_context(|| format!("{event:?}"))?;
    }
    Ok(())
}

#[test]
fn file_that_cannot_be_written_is_found_before_measuring() -> Result<()> {
    let began = Instant::now();
    let outcome = Schedlat::record()
        .args("--flight 1s --flight-output /nonexistent/a.pftrace --for 20s")
        .run()?;
    outcome.fails_with(1, &["/nonexistent/a.pftrace", "--flight-output"])?;
    assert!(began.elapsed() < Duration::from_secs(10));
    let alone = Schedlat::record()
        .args("--flight-output a --for 20s")
        .run()?;
    assert_eq!(alone.code(), 2, "{}", alone.messages);
    Ok(())
}

#[test]
fn disk_that_is_full_costs_the_dump_and_not_the_report() -> Result<()> {
    let outcome = Schedlat::record()
        .args("--flight 1s --flight-output /dev/full --for 500ms")
        .run()?;
    assert_eq!(outcome.code(), 1, "{}", outcome.messages);
    assert!(
        outcome.messages.contains("/dev/full"),
        "{}",
        outcome.messages
    );
    assert!(outcome.report()?.audit.switches.all_ours > 0);
    Ok(())
}

#[test]
fn recorder_that_is_off_attaches_nothing() -> Result<()> {
    let n_programs = |recording: Schedlat| -> Result<usize> {
        let recording = recording.start()?;
        let objects = BpfObject::held_by(recording.pid())?;
        let programs = objects.iter();
        let links = programs.filter(|object| matches!(object, BpfObject::Link(_)));
        Ok(links.count())
    };
    let off = n_programs(Schedlat::record())?;
    let on = n_programs(Dumps::new()?.record("1s"))?;
    // Nine events, and two of the local timer where it has its own.
    assert!(
        on == off + 9 || on == off + 11,
        "{off} links without, {on} with"
    );
    Ok(())
}
