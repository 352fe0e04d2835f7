//! Idle while runnable, read from what the programs add up.

use aya::{Ebpf, maps::Array};
use latency_common::idle::{IdleCounts, IdleSums, IdleWord};
use rustix::{
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
    time::{ClockId, clock_gettime},
};

use super::{mapped::Mapped, object::map_mut};
use crate::{Error, model::IdleWhileRunnable};

/// Times the sums are read again because something changed meanwhile.
const MAX_READS: u32 = 100_000;

/// The sums of all CPUs.
#[expect(missing_debug_implementations, reason = "maps have none")]
pub struct IdleMeter {
    counts: Mapped<IdleCounts>,
    sums: Mapped<IdleSums>,
}

impl IdleMeter {
    /// Lets `cpus` count, and maps the sums. To be called before anything is attached.
    pub(super) fn new(ebpf: &mut Ebpf, cpus: &[u32], n_possible: usize) -> Result<Self, Error> {
        let failed = |error: &dyn std::error::Error| {
            Error::Setup(format!("cannot write map IDLE_SUMS: {error}"))
        };
        let mut sums = Array::<_, IdleSums>::try_from(map_mut(ebpf, "IDLE_SUMS")?)
            .map_err(|error| failed(&error))?;
        for &cpu in cpus {
            let counted = IdleSums {
                counts: 1,
                ..IdleSums::default()
            };
            sums.set(cpu, counted, 0).map_err(|error| failed(&error))?;
        }
        Ok(Self {
            counts: Mapped::new(ebpf, "IDLE_COUNTS", 1)?,
            sums: Mapped::new(ebpf, "IDLE_SUMS", n_possible)?,
        })
    }

    /// The time until now; none where so much changes all the time that no moment can be caught.
    #[must_use]
    pub fn read(&self) -> Option<IdleWhileRunnable> {
        (0..MAX_READS).find_map(|_| self.read_once())
    }

    fn read_once(&self) -> Option<IdleWhileRunnable> {
        let word = self.counts.read(0)?.word;
        let sums: Vec<_> = (0..self.sums.n)
            .filter_map(|cpu| self.sums.read(cpu))
            .collect();
        let now = clock_gettime(ClockId::Monotonic);
        let n_changes = sums
            .iter()
            .fold(0_u64, |sum, cpu| sum.wrapping_add(cpu.n_changes));
        let before = IdleWord(word);
        if self.counts.read(0)?.word != word || !before.is_after(n_changes) {
            return None;
        }
        let now_ns = std::time::Duration::try_from(now).ok()?.as_nanos();
        let last = before.minimum().wrapping_mul(u64::try_from(now_ns).ok()?);
        Some(IdleWhileRunnable {
            ns: sums.iter().fold(last, |sum, cpu| sum.wrapping_add(cpu.sum)),
            restricted_waiting_ns: sums.iter().map(|cpu| cpu.restricted_ns).sum(),
        })
    }
}

/// The CPUs that this thread, and what it spawns, may run on.
pub fn allowed_cpus() -> Result<Vec<u32>, Error> {
    let set = affinity()?;
    let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Ok(cpus.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}

/// Runs on each of these CPUs for a moment: from the switch on it is known whether the CPU is idle.
pub(super) fn visit(cpus: &[u32]) -> Result<(), Error> {
    let home = affinity()?;
    for &cpu in cpus {
        let mut only = CpuSet::new();
        only.set(usize::try_from(cpu).unwrap_or(usize::MAX));
        // One that has just gone offline is not idle either.
        sched_setaffinity(None, &only).unwrap_or_default();
    }
    sched_setaffinity(None, &home).map_err(|error| failed(error.into()))
}

fn affinity() -> Result<CpuSet, Error> {
    sched_getaffinity(None).map_err(|error| failed(error.into()))
}

fn failed(source: std::io::Error) -> Error {
    Error::Read {
        what: "the CPUs that this process may run on".into(),
        source,
    }
}
