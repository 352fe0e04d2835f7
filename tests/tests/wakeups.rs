//! Waits that follow a wakeup, and wakeups that no wait follows.

use std::{
    cell::Cell,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use latency_tests::{
    cgroup::Cgroup,
    check,
    load::Load,
    observe::Observed,
    report::{Report, Row},
    schedlat::Schedlat,
    truth::{Counters, nanos},
};
use rustix::process::Signal;

const SECONDS: Duration = Duration::from_secs(3);

#[test]
fn pipe_on_one_cpu_switches_by_blocking_and_adds_up() -> Result<()> {
    let load = Load::workload("pipe 20 --cpu 1 --peer-cpu 1 --nice -15")?;
    let observed = Observed::of(&[&load], SECONDS)?;
    check::sound(&observed.report)?;
    check::on_cpu_agrees(&observed.report, &observed.report.audit)?;
    check::on_cpu_agrees_with_proc(&observed)?;
    check::switches_agree_with_proc(&observed)?;
    for (row, truth) in observed.pairs()? {
        check_partner(row, truth)?;
        // Both want the CPU all the time, so each runs or waits or sleeps while the other runs.
        assert!(
            row.stats.waits.wakeup.count > 10_000,
            "{:?}",
            row.stats.waits
        );
    }
    Ok(())
}

#[test]
fn pipe_across_two_cpus_waits_for_wakeups_and_adds_up() -> Result<()> {
    let load = Load::workload("pipe 20 --cpu 1 --peer-cpu 0 --nice -15")?;
    let observed = Observed::of(&[&load], SECONDS)?;
    check::sound(&observed.report)?;
    check::switches_agree_with_proc(&observed)?;
    let gap = check::on_cpu_is_not_more(&observed.report)?;
    for (row, truth) in observed.pairs()? {
        check_partner(row, truth)?;
        let switches = row.stats.switches;
        let all = switches.voluntary + switches.involuntary;
        check::share("voluntary switches", switches.voluntary, all, 0.95)?;
        assert_eq!(row.stats.migrations, 0);
    }
    let finding = observed
        .report
        .audit
        .findings
        .iter()
        .any(|finding| finding.code == "kernel_charges_switch_to_wakee");
    assert!(
        gap <= 0.5 || finding,
        "a gap of {gap:.2} % on the CPU goes unnamed"
    );
    Ok(())
}

/// What holds for either side of a ping-pong.
fn check_partner(row: &Row, truth: &Counters) -> Result<()> {
    let stats = &row.stats;
    check_wakeups_end_sleeps(row);
    check::kernel_waits_agree(row, truth)?;
    // The kernel's account misses the waits of wakeups that preempt at once.
    let after_wakeup = row.audit.class("after_wakeup");
    check::share(
        "waits after wakeups",
        after_wakeup.ours_ns,
        after_wakeup.kernel_ns,
        0.995,
    )?;
    assert_eq!(stats.wakeup_latency.count, stats.waits.wakeup.count);
    assert!(stats.wakeup_latency.sum_ns >= stats.waits.wakeup.sum_ns);
    check::preemptors_are_named(stats)
}

/// Each wait after a wakeup ends a sleep, and there is a switch-out for each sleep.
fn check_wakeups_end_sleeps(row: &Row) {
    let (waits, sleeps) = (row.stats.waits.wakeup.count, row.stats.switches.voluntary);
    // The sleep that was going on at the start, a wait that is open at the end, and those that the
    // blind spot of this kind of host has hidden.
    let unseen = row.audit.class("unmeasured").count;
    assert!(
        waits <= sleeps + 1 && waits + unseen + 2 >= sleeps,
        "{waits} waits after wakeups, {unseen} unseen, {sleeps} sleeps"
    );
}

#[test]
fn c016_stopped_time_is_no_wait() -> Result<()> {
    const STOPPED: Duration = Duration::from_secs(1);
    let load = Load::workload("burn 20 --cpu 1 --nice -15")?;
    let stopped_ns = Cell::new(0);
    let observed = Observed::during(&[&load], || {
        thread::sleep(STOPPED);
        load.signal(Signal::STOP)?;
        let began = Instant::now();
        thread::sleep(STOPPED);
        load.signal(Signal::CONT)?;
        stopped_ns.set(nanos(began.elapsed()));
        thread::sleep(STOPPED);
        Ok(())
    })?;
    check::sound(&observed.report)?;
    let (row, truth) = observed.main_of(&load)?;
    check::waits_agree(row, truth)?;
    // Two of the three seconds it ran or waited; nothing else is accounted for, but for what the
    // blind spot of this kind of host hides.
    let spent = row.stats.on_cpu_ns + row.stats.waited_ns;
    let neither = observed.report.window_ns() - spent;
    assert!(
        neither + 10_000_000 >= stopped_ns.get(),
        "{neither} ns neither running nor waiting, stopped for {stopped_ns:?}"
    );
    if row.audit.class("unmeasured").count == 0 {
        check::near("stopped", neither, stopped_ns.get(), 0.02, 0)?;
    }
    assert!(
        row.stats.waits.max_ns() < 500_000_000,
        "{:?}",
        row.stats.waits
    );
    Ok(())
}

#[test]
fn c004_waking_a_running_task_starts_no_wait() -> Result<()> {
    let load = Load::workload("futex-running 20 --nice -15")?;
    let observed = Observed::of(&[&load], SECONDS)?;
    check::sound(&observed.report)?;
    check::switches_agree_with_proc(&observed)?;
    for (row, truth) in observed.pairs()? {
        // The waking thread never sleeps: it has no wakeup waits, whatever it is sent.
        check_wakeups_end_sleeps(row);
        check::kernel_waits_agree(row, truth)?;
        assert!(row.stats.waited_ns <= observed.report.window_ns());
    }
    Ok(())
}

/// Writer and reader of one pipe, in cgroups of their own.
struct Hand {
    writer_group: Cgroup,
    reader_group: Cgroup,
}

const WAKES: u64 = 5_000;

/// A recording of it, and who took part.
struct Handed {
    report: Report,
    writer: u32,
    reader: u32,
    reader_counters: Counters,
}

impl Handed {
    fn tids(&self) -> Vec<u32> {
        self.report.tasks.iter().filter_map(|row| row.tid).collect()
    }
}

impl Hand {
    fn new() -> Result<Self> {
        Ok(Self {
            writer_group: Cgroup::v2("writer")?,
            reader_group: Cgroup::v2("reader")?,
        })
    }

    /// Records what `choose` selects, given the ids of writer and reader.
    fn record(&self, choose: impl Fn(&Self, u32, u32) -> Schedlat) -> Result<Handed> {
        let line = format!(
            "wake {WAKES} --interval-us 100 --name waker --nice -15 --cgroup {} --peer-cgroup {}",
            self.writer_group.directory().display(),
            self.reader_group.directory().display()
        );
        let load = Load::workload(&line)?;
        let (writer, reader) = (load.pid(), *load.tids.first().context("no reader")?);
        let recording = choose(self, writer, reader).start()?;
        let truth = load.truth()?;
        Ok(Handed {
            report: recording.stop()?,
            writer,
            reader,
            reader_counters: truth.counters_of("peer_counters")?,
        })
    }
}

#[test]
fn c027_a_filter_selects_the_woken_task_and_not_its_waker() -> Result<()> {
    type Choose = fn(&Hand, u32, u32) -> Schedlat;
    const READER: [Choose; 2] = [
        |_, _, reader| Schedlat::record().pid(reader),
        |hand, _, _| Schedlat::record().cgroup(hand.reader_group.directory()),
    ];
    const WRITER: [Choose; 2] = [
        |_, writer, _| Schedlat::record().pid(writer),
        |hand, _, _| Schedlat::record().cgroup(hand.writer_group.directory()),
    ];
    let hand = Hand::new()?;
    for choose in READER {
        let handed = hand.record(choose)?;
        check::sound(&handed.report)?;
        assert_eq!(
            handed.tids(),
            [handed.reader],
            "only the reader was selected"
        );
        let row = handed.report.task(handed.reader)?;
        check_wakeups_end_sleeps(row);
        // It sleeps before each byte that it does not find there already, and a few times before it
        // is recorded.
        let (waits, sleeps) = (
            row.stats.waits.wakeup.count,
            handed.reader_counters.voluntary,
        );
        assert!(sleeps >= WAKES / 2, "only {sleeps} sleeps");
        assert!(
            (sleeps - 10..=sleeps + 2).contains(&waits),
            "{waits} waits after {sleeps} sleeps"
        );
    }
    for choose in WRITER {
        let handed = hand.record(choose)?;
        check::sound(&handed.report)?;
        assert_eq!(
            handed.tids(),
            [handed.writer],
            "only the writer was selected"
        );
    }
    Ok(())
}
