//! Tasks beside or under the observer: sleepers, ping-pongs, forks.
//!
//! Promises: sleepers are all there when the constructor returns, and others have been started; whether they
//! ran to the end is told by [`Load::stop`]; they are gone when it is dropped.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Longer than any series.
const FOR_EVER_S: u64 = 3_600;

/// Twenty thousand threads take a second to start.
const PATIENCE: Duration = Duration::from_mins(1);

/// Running workloads.
#[derive(Debug)]
pub(super) struct Load {
    workloads: Vec<Child>,
}

impl Load {
    /// `n` threads that sleep.
    pub(super) fn sleepers(workload: &Path, n: usize) -> Result<Self> {
        let ms = FOR_EVER_S * 1_000;
        let load = Self::start(
            workload,
            [format!("threads {n} --sleeps 1 --sleep-ms {ms}")],
        )?;
        let started = Instant::now();
        while load.n_threads()? <= n {
            if started.elapsed() > PATIENCE {
                bail!("{n} threads did not start within {} s", PATIENCE.as_secs());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(load)
    }

    /// A ping-pong on each of `cpus`, as fast as it can.
    pub(super) fn ping_pongs(workload: &Path, cpus: Range<usize>) -> Result<Self> {
        Self::start(
            workload,
            cpus.map(|cpu| format!("--cpu {cpu} pipe {FOR_EVER_S}")),
        )
    }

    /// A ping-pong on `cpu` of so many round trips a second.
    pub(super) fn paced_ping_pong(workload: &Path, cpu: usize, per_second: u64) -> Result<Self> {
        let line = format!("--cpu {cpu} pipe {FOR_EVER_S} --per-second {per_second}");
        Self::start(workload, [line])
    }

    /// Children that end at once, one after the other on each of `cpus`.
    pub(super) fn forks(workload: &Path, cpus: Range<usize>) -> Result<Self> {
        Self::start(
            workload,
            cpus.map(|cpu| format!("--cpu {cpu} forks {}", u32::MAX)),
        )
    }

    fn start(workload: &Path, lines: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut load = Self {
            workloads: Vec::new(),
        };
        for line in lines {
            let child = Command::new(workload)
                .args(line.split_whitespace())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .with_context(|| format!("cannot run {}", workload.display()))?;
            load.workloads.push(child);
        }
        Ok(load)
    }

    /// Ends them; an error where one has ended before.
    pub(super) fn stop(mut self) -> Result<()> {
        for child in &mut self.workloads {
            if let Some(status) = child.try_wait().context("cannot watch a workload")? {
                bail!("a workload ended while it was needed: {status}");
            }
        }
        Ok(())
    }

    fn n_threads(&self) -> Result<usize> {
        let mut n_threads = 0;
        for child in &self.workloads {
            let path = format!("/proc/{}/task", child.id());
            let threads = fs::read_dir(&path)
                .with_context(|| format!("cannot read {path}: the workload has ended"))?;
            n_threads += threads.count();
        }
        Ok(n_threads)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // What has ended by itself needs no end; a workload's own children end with it.
        for child in &mut self.workloads {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
