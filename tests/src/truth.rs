//! Ground truth: what the kernel itself says of a thread and of the host, read from `/proc`.
//!
//! Owns the reading and the subtraction of those counters. Both the workloads (of themselves) and the
//! tests (of the workloads) use it. Judging the figures is left to `check`.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::{Context as _, Result};
use procfs::{CurrentSI as _, KernelStats, process::Process};
use serde::{Deserialize, Serialize};

/// A thread's scheduling counters, or their growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Time on a CPU; up to a tick behind for a running thread.
    pub exec_ns: u64,
    /// Time queued, the kernel's run delay.
    pub run_delay_ns: u64,
    /// Times it was put on a CPU.
    pub timeslices: u64,
    /// Switches by which it blocked.
    pub voluntary: u64,
    /// Switches by which it stayed runnable.
    pub involuntary: u64,
}

impl Counters {
    /// The counters of a thread.
    pub fn of(tid: u32) -> Result<Self> {
        let thread = Process::new(i32::try_from(tid)?)
            .with_context(|| format!("cannot open /proc/{tid}"))?;
        let schedstat = thread
            .schedstat()
            .with_context(|| format!("cannot read /proc/{tid}/schedstat"))?;
        let status = fs::read(format!("/proc/{tid}/status"))
            .with_context(|| format!("cannot read /proc/{tid}/status"))?;
        Ok(Self {
            exec_ns: schedstat.sum_exec_runtime,
            run_delay_ns: schedstat.run_delay,
            timeslices: schedstat.pcount,
            voluntary: status_number(&status, "voluntary_ctxt_switches:")?,
            involuntary: status_number(&status, "nonvoluntary_ctxt_switches:")?,
        })
    }

    /// The counters of the calling thread.
    pub fn of_self() -> Result<Self> {
        Self::of(current_tid())
    }

    /// Growth since an earlier reading of the same thread.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            exec_ns: self.exec_ns - earlier.exec_ns,
            run_delay_ns: self.run_delay_ns - earlier.run_delay_ns,
            timeslices: self.timeslices - earlier.timeslices,
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
        }
    }

    /// The sum of two threads' counters.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            exec_ns: self.exec_ns + other.exec_ns,
            run_delay_ns: self.run_delay_ns + other.run_delay_ns,
            timeslices: self.timeslices + other.timeslices,
            voluntary: self.voluntary + other.voluntary,
            involuntary: self.involuntary + other.involuntary,
        }
    }
}

/// A number of `/proc/TID/status`. Read as bytes, since the name in it need not be UTF-8.
fn status_number(status: &[u8], key: &str) -> Result<u64> {
    let line = status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(key.as_bytes()))
        .with_context(|| format!("no '{key}' in the status of a thread"))?;
    let number = str::from_utf8(line)?.trim();
    number
        .parse()
        .with_context(|| format!("'{number}' of '{key}' is no number"))
}

/// Thread id of the caller.
#[must_use]
pub fn current_tid() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

/// Time on a CPU so far of each process whose name begins so.
pub fn run_times_of(prefix: &str) -> Result<BTreeMap<u32, u64>> {
    let mut run_times = BTreeMap::new();
    for process in procfs::process::all_processes()? {
        let Ok(process) = process else { continue };
        // It may end while it is read.
        if let (Ok(stat), Ok(schedstat)) = (process.stat(), process.schedstat())
            && stat.comm.starts_with(prefix)
        {
            run_times.insert(stat.pid.unsigned_abs(), schedstat.sum_exec_runtime);
        }
    }
    Ok(run_times)
}

/// Time on a CPU so far of the threads of pid 1, whose switches fire no event on some hosts.
pub fn hidden_run_time() -> Result<u64> {
    let mut sum = 0;
    for thread in Process::new(1)?.tasks()? {
        // It may end while it is read.
        sum += thread?
            .schedstat()
            .map_or(0, |schedstat| schedstat.sum_exec_runtime);
    }
    Ok(sum)
}

/// Context switches of all CPUs since boot.
pub fn all_switches() -> Result<u64> {
    Ok(KernelStats::current()
        .context("cannot read /proc/stat")?
        .ctxt)
}

/// Time that a CPU was idle since boot, in steps of 10 ms.
pub fn idle_time(cpu: usize) -> Result<Duration> {
    let stats = KernelStats::current().context("cannot read /proc/stat")?;
    let times = stats.cpu_time.get(cpu);
    Ok(times
        .with_context(|| format!("no CPU {cpu}"))?
        .idle_duration())
}

/// CPUs online.
pub fn n_cpus() -> Result<u64> {
    let stats = KernelStats::current().context("cannot read /proc/stat")?;
    Ok(u64::try_from(stats.cpu_time.len())?)
}

/// `CLOCK_MONOTONIC`, the clock of every figure in a report.
#[must_use]
pub fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(
        now.tv_sec.unsigned_abs(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

/// Nanoseconds of a duration.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
