//! The loads themselves, by the kernel's counters alone: a test of schedlat is worth what its load is.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use latency_tests::{
    cgroup::Cgroup,
    check,
    interrupts::InterruptCounts,
    load::{Load, workload_binary},
    truth::{Counters, nanos, run_times_of},
};

const SECOND: Duration = Duration::from_secs(1);

/// Growth of a load's counters over one second.
fn growth(load: &Load) -> Result<(Counters, u64)> {
    let (before, began) = (load.counters()?, Instant::now());
    thread::sleep(SECOND);
    Ok((load.counters()?.since(&before), nanos(began.elapsed())))
}

#[test]
fn burners_run_or_wait_all_the_time() -> Result<()> {
    for kind in ["burn", "burn-syscall"] {
        let line = format!("{kind} 10 --cpu 1 --nice -15");
        let loads = [Load::workload(&line)?, Load::workload(&line)?];
        let (truth, window) = growth(&loads[0])?;
        // A hypervisor may have kept the rest.
        check::share(kind, truth.exec_ns + truth.run_delay_ns, window, 0.9)?;
        check::share("waiting", truth.run_delay_ns, window, 0.4)?;
    }
    Ok(())
}

#[test]
fn yielders_switch_in_company_only() -> Result<()> {
    let line = "yield 10 --cpu 1 --nice -15";
    let first = Load::workload(line)?;
    let (alone, window) = growth(&first)?;
    let in_a_second = alone.involuntary * nanos(SECOND) / window;
    assert!(in_a_second < 10_000, "{alone:?} in {window} ns");
    let _second = Load::workload(line)?;
    let (together, window) = growth(&first)?;
    let in_a_second = together.involuntary * nanos(SECOND) / window;
    assert!(in_a_second > 50_000, "{together:?} in {window} ns");
    Ok(())
}

#[test]
fn a_pipe_across_cpus_sleeps_for_each_round_trip() -> Result<()> {
    let truth = Load::workload("pipe 1 --cpu 1 --peer-cpu 0 --nice -15")?.truth()?;
    let round_trips = truth.number("round_trips")?;
    check::near("sleeps", truth.counters.voluntary, round_trips, 0.05, 10)?;
    let peer = truth.counters_of("peer_counters")?;
    check::near("sleeps of the peer", peer.voluntary, round_trips, 0.05, 10)
}

#[test]
fn a_limited_group_is_throttled_by_the_kernel() -> Result<()> {
    let group = Cgroup::with_cpu_controller("quota")?;
    group.limit(Duration::from_millis(20), Duration::from_millis(100))?;
    group.prefer()?;
    let line = format!("burn 10 --cpu 1 --cgroup {}", group.directory().display());
    let load = Load::workload(&line)?;
    let before = group.throttling()?;
    let (truth, window) = growth(&load)?;
    let after = group.throttling()?;
    let periods = window / 100_000_000;
    let count = after.count - before.count;
    assert!(
        (periods - 2..=periods + 2).contains(&count),
        "throttled {count} times in {periods} periods"
    );
    check::share("waiting", truth.run_delay_ns, window, 0.65)
}

#[test]
fn dropping_a_load_ends_its_children_and_a_group_its_directory() -> Result<()> {
    let binary = workload_binary()?.display().to_string();
    let script = format!("{binary} burn 30 & echo $!; wait");
    let load = Load::program("sh", &["-c", &script])?;
    thread::sleep(Duration::from_millis(300));
    let children = format!("/proc/{0}/task/{0}/children", load.pid());
    let child = fs::read_to_string(children)?.trim().to_owned();
    assert!(
        Path::new("/proc").join(&child).exists(),
        "no child '{child}'"
    );
    let group = Cgroup::v2("short")?;
    let directory = group.directory().to_owned();
    let member = Load::workload(&format!("burn 30 --cgroup {}", directory.display()))?;
    drop((group, load));
    thread::sleep(Duration::from_millis(300));
    assert!(!directory.exists(), "{} is left", directory.display());
    drop(member);
    let status = fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
    assert!(
        status.is_empty() || status.contains("State:\tZ"),
        "{child} lives on: {status}"
    );
    Ok(())
}

#[test]
fn process_ids_wrap_where_they_are_few() -> Result<()> {
    let most: u64 = fs::read_to_string("/proc/sys/kernel/pid_max")?
        .trim()
        .parse()?;
    let truth = Load::workload("pid-wraps 1 --most 40000")?.truth()?;
    let wraps = truth.number("wraps")?;
    assert!(wraps == 1 || most > 40_000, "{wraps} wraps of {most} ids");
    truth.number("forks").map(|_| ()).context("no forks")
}

#[test]
fn datagrams_are_a_softirq_each() -> Result<()> {
    let before = InterruptCounts::now()?;
    let sent = Load::workload("datagrams 1")?.truth()?.number("sent")?;
    let received = InterruptCounts::now()?.since(&before).soft["NET_RX"];
    check::near("softirqs", received, sent, 0.01, 1_000)?;
    assert!(sent > 10_000, "only {sent} datagrams");
    Ok(())
}

#[test]
fn an_interrupted_spinner_misses_time_for_each_interrupt() -> Result<()> {
    let before = InterruptCounts::of_cpu(1)?;
    let truth = Load::workload("interrupted 1 --cpu 1 --peer-cpu 0 --nice -15")?.truth()?;
    let taken = InterruptCounts::of_cpu(1)?.since(&before).hard["CAL"];
    let calls = truth.number("interrupts")?;
    // While somebody else has its CPU no call comes through; those of others come on top.
    let present = check::ratio(truth.counters.exec_ns, 1_000_000_000);
    let reached = check::ratio(taken, calls);
    assert!(
        reached >= 0.9 * present && taken <= calls + calls / 20 + 1_000,
        "{taken} interrupts of {calls} calls, {present:.3} of the time on the CPU"
    );
    let gaps = truth.number("gaps")?;
    check::share("gaps", gaps, taken.min(calls), 0.9)?;
    Ok(())
}

#[test]
fn dirty_pages_are_written_by_the_kernels_workers() -> Result<()> {
    let binary = workload_binary()?;
    let directory = binary.parent().context("a binary in no directory")?;
    let before = run_times_of("kworker/")?;
    Load::workload(&format!("dirty-pages 2 {}", directory.display()))?.truth()?;
    let of = |tid: &u32| before.get(tid).copied().unwrap_or_default();
    let after = run_times_of("kworker/")?;
    let ran: u64 = after.iter().map(|(tid, ran)| ran - of(tid)).sum();
    assert!(ran > 20_000_000, "workers ran for {ran} ns");
    Ok(())
}
