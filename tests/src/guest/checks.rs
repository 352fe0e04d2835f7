//! Checks that hold on any kernel and any machine, and what the others are made of.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{boot, pauses};
use crate::{
    cgroup::Cgroup,
    check,
    load::Load,
    observe::Observed,
    probe,
    report::{Report, Row},
    schedlat::{Outcome, Schedlat},
    truth::n_cpus,
};

/// How long a recording lasts, by the guest's clock. Loads last for an hour: they are ended when their
/// value is dropped, and must not end before, however slow the machine.
const SECONDS: Duration = Duration::from_secs(3);

/// The flight recorder's programs are apart from the others.
const FLIGHT: &str = "--flight 1s --flight-output /tmp/schedlat.pftrace";

/// So many events are enough to see what they are; how many there are depends on the host.
pub(super) const FEW: u64 = 10;

/// Below this a single wait that began with a wakeup, too early in the kernel's account, decides.
const MIN_SLICES: u64 = 20;

/// What an emulated machine may add to one wait between our clock read and the kernel's.
const PER_WAIT_NS: u64 = 300_000;

pub(super) fn doctor() -> Result<String> {
    let outcome = Schedlat::command("doctor").run()?;
    super::say(&outcome.output());
    outcome.success()?;
    Ok(String::new())
}

/// What holds on any machine: counts, and the two accounts of the same waits.
pub(super) fn check_counts(report: &Report) -> Result<()> {
    check::rows_add_up(report)?;
    check::nothing_lost_but(report, &known_losses(report)?)?;
    check::switches_agree(&report.audit, n_cpus()?)?;
    check::chain_adds_up(&report.audit)?;
    let slices = report.audit.class("tick").count + report.audit.class("hrtick").count;
    if slices < MIN_SLICES {
        return Ok(());
    }
    // Where the machine stood still between two readings, one account of a wait has it, and one not.
    let paused_ns = pauses::total_ns();
    for class in ["tick", "hrtick"] {
        let n_waits = report.audit.class(class).count;
        let or_ns = PER_WAIT_NS * n_waits + paused_ns;
        check::class_agrees(&report.audit, class, 0.01, or_ns)?;
    }
    Ok(())
}

/// Real-time kernels, and from 7.0 on others, let programs at tracepoints be preempted, and whatever
/// meets one of them meanwhile is skipped and counted: a few in ten thousand, and more on a starved
/// emulator, where one is preempted for long. None is of a switch, or their chain would break.
fn known_losses(report: &Report) -> Result<Vec<(&'static str, u64)>> {
    let n_events = report.audit.switches.all_ours + report.audit.ticks;
    Ok(if boot::is_real_time()? || boot::kernel_major()? >= 7 {
        vec![("recursion_misses", FEW + n_events / 100)]
    } else {
        Vec::new()
    })
}

pub(super) fn last_cpu() -> Result<u64> {
    Ok(n_cpus()?.saturating_sub(1))
}

fn observe(kinds: &[&str]) -> Result<(Observed, Vec<Load>)> {
    let cpu = last_cpu()?;
    let start = |kind: &&str| Load::workload(&format!("{kind} --cpu {cpu}"));
    let loads = kinds.iter().map(start).collect::<Result<Vec<_>>>()?;
    let observed = Observed::roughly(&loads.iter().collect::<Vec<_>>(), SECONDS)?;
    check_counts(&observed.report)?;
    Ok((observed, loads))
}

/// The rows of two loads, each with the thread id of the other.
fn fellows(observed: &Observed) -> Result<[(&Row, u32); 2]> {
    let [(first, _), (second, _)] = observed.truth[..] else {
        bail!("two loads were to be observed");
    };
    let report = &observed.report;
    Ok([(report.task(first)?, second), (report.task(second)?, first)])
}

pub(super) fn yielders() -> Result<String> {
    let (observed, _loads) = observe(&["yield 3600", "yield 3600"])?;
    for (row, other) in fellows(&observed)? {
        check::loses_to_fellow(&row.stats, other, &["yield"], 0.95)?;
    }
    Ok(format!(
        "{} yields",
        observed.report.totals.switches.r#yield
    ))
}

pub(super) fn is_named(row: &Row, cause: &str, comm: &str) -> u64 {
    let preemptors = row.stats.preemptors.iter();
    preemptors
        .filter(|by| by.cause == cause && by.comm == comm)
        .map(|by| by.count)
        .sum()
}

pub(super) fn pipe() -> Result<String> {
    let cpu = last_cpu()?;
    let load = Load::workload(&format!("pipe 3600 --cpu {cpu} --peer-cpu {cpu}"))?;
    let observed = Observed::roughly(&[&load], SECONDS)?;
    check_counts(&observed.report)?;
    // Read at the same instants, unlike the counters around the recording.
    for (row, _) in observed.pairs()? {
        ensure!(
            row.stats.switches.voluntary > 10,
            "{:?}",
            row.stats.switches
        );
        check::switches_agree(&row.audit, n_cpus()?)?;
    }
    Ok(format!(
        "{} voluntary",
        observed.report.totals.switches.voluntary
    ))
}

pub(super) fn cgroup_selects() -> Result<String> {
    let group = Cgroup::v2("outer")?;
    let inner = group.child("inner")?;
    let line = format!("burn 3600 --cgroup {}", inner.directory().display());
    let (inside, _outside) = (Load::workload(&line)?, Load::workload("burn 3600")?);
    let report = Schedlat::record()
        .cgroup(group.directory())
        .lasting(2.0)
        .report()?;
    check_counts(&report)?;
    let tids: Vec<_> = report.tasks.iter().filter_map(|row| row.tid).collect();
    ensure!(
        tids == [inside.pid()],
        "{tids:?} were selected, not {}",
        inside.pid()
    );
    let path = report
        .task(inside.pid())?
        .cgroup
        .clone()
        .unwrap_or_default();
    ensure!(
        path.ends_with("/inner"),
        "its cgroup is said to be '{path}'"
    );
    // The inner group has to go first.
    drop((inside, inner));
    Ok(path)
}

pub(super) fn cgroup_throttles() -> Result<String> {
    let group = Cgroup::with_cpu_controller("quota")?;
    group.limit(Duration::from_millis(20), Duration::from_millis(100))?;
    let cpu = last_cpu()?;
    let line = format!(
        "burn 3600 --cpu {cpu} --cgroup {}",
        group.directory().display()
    );
    let load = Load::workload(&line)?;
    let before = group.throttling()?.count;
    let recording = Schedlat::record().cgroup(group.directory()).start()?;
    let inner = group.throttling()?.count;
    thread::sleep(SECONDS);
    let fewest = group.throttling()?.count - inner;
    let report = recording.stop()?;
    let most = group.throttling()?.count - before;
    check_counts(&report)?;
    let stats = &report.task(load.pid())?.stats;
    let throttled = stats.cause("throttled");
    check::share(
        "throttled time",
        throttled.sum_ns,
        stats.waits.sum_ns(),
        0.9,
    )?;
    // A burner that overran its quota by more than it gets, as a slow emulation lets it, stays
    // throttled through several periods in one wait; never are there more waits than periods.
    ensure!(
        throttled.count <= most + 1 && throttled.count * 4 >= fewest && fewest > 0,
        "{throttled:?}, the kernel says {fewest} to {most}"
    );
    Ok(format!("{} waits", throttled.count))
}

/// The phases are differences of clock readings, so that they add up however slow the machine is.
pub(super) fn probe_wake() -> Result<String> {
    let document = probe::wake("--cpu 0 --policy fifo:80 --interval 20ms --count 100")?;
    let series = document.only()?;
    ensure!(series.samples.matched > FEW, "{:?}", series.samples);
    ensure!(series.disagreement.max_ns <= 100, "{series:?}");
    Ok(format!(
        "{} of {} matched",
        series.samples.matched, series.samples.taken
    ))
}

/// Kernel-facts of 7.x: this load has brought kernels down under careless attach points. The yield probe
/// has one more of them than a recording.
pub(super) fn stress() -> Result<String> {
    let lines = [
        "membarrier 3600",
        "membarrier 3600",
        "membarrier 3600",
        "proc-readers 3600",
        "proc-readers 3600",
        "proc-readers 3600",
    ];
    let n_logged = boot::kernel_log()?.len();
    let loads = lines
        .map(Load::workload)
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let recording = Schedlat::record().args(FLIGHT).start()?;
    let start = Instant::now();
    let probed = probe::probe("yield --cpu 0 --count 100000").run()?;
    probed.success()?;
    thread::sleep(Duration::from_secs(20).saturating_sub(start.elapsed()));
    let outcome = recording.interrupt()?.success()?;
    drop(loads);
    let report = outcome.report()?;
    check::switches_agree(&report.audit, n_cpus()?)?;
    check::chain_adds_up(&report.audit)?;
    let n_events = n_flight_events(&outcome)?;
    ensure!(
        n_events > FEW,
        "only {n_events} events in the flight recorder"
    );
    let bad = boot::complaints(n_logged)?;
    ensure!(bad.is_empty(), "the kernel complains: {bad:?}");
    Ok(format!(
        "recursion misses {}, {n_events} events",
        report.lost("recursion_misses")?
    ))
}

/// Events in the dump that the end of a recording makes.
fn n_flight_events(outcome: &Outcome) -> Result<u64> {
    let document = outcome.documents()?.pop().context("no document")?;
    let cpus = document["flight"][0]["cpus"].as_array();
    let cpus = cpus.context("no dump")?.iter();
    Ok(cpus.filter_map(|cpu| cpu["n_events"].as_u64()).sum())
}

pub(super) fn lockdown() -> Result<String> {
    let file = "/sys/kernel/security/lockdown";
    if !fs::exists(file)? {
        return Ok("this kernel has no lockdown".to_owned());
    }
    fs::write(file, "confidentiality").context("cannot lock the kernel down")?;
    let load = Load::workload("burn 3600")?;
    let outcome = Schedlat::record().lasting(2.0).run()?.success()?;
    let report = outcome.report()?;
    check::switches_agree(&report.audit, n_cpus()?)?;
    ensure!(
        report.task(load.pid())?.stats.on_cpu_ns > 0,
        "the burner did not run"
    );
    let document = outcome.documents()?.pop().context("no document")?;
    Ok(format!("degraded: {}", document["degraded"]))
}
