//! Idle while runnable, read from what the programs add up.

use aya::{Ebpf, maps::Array};
use latency_common::idle::{IdleCounts, IdleSums, IdleWord};

use super::{mapped::Mapped, object::map_mut};
use crate::{
    Error,
    cpus::{self, Affinity},
    host,
    model::IdleWhileRunnable,
};

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
        let word = IdleWord(self.counts.read(0)?.word);
        let (mut sum, mut n_changes, mut restricted_ns) = (0_u64, 0_u64, 0);
        for cpu in (0..self.sums.n).filter_map(|cpu| self.sums.read(cpu)) {
            sum = sum.wrapping_add(cpu.sum);
            n_changes = n_changes.wrapping_add(cpu.n_changes);
            restricted_ns += cpu.restricted_ns;
        }
        let now_ns = host::monotonic_ns();
        if self.counts.read(0)?.word != word.0 || !word.is_after(n_changes) {
            return None;
        }
        Some(IdleWhileRunnable {
            ns: word.minimum().wrapping_mul(now_ns).wrapping_add(sum),
            restricted_waiting_ns: restricted_ns,
        })
    }
}

/// Runs on each of these CPUs for a moment: from the switch on it is known whether the CPU is idle.
pub(super) fn visit(cpus: &[u32]) -> Result<(), Error> {
    let _home = Affinity::keep().map_err(cpus::unknown)?;
    for &cpu in cpus {
        // One that has just gone offline is not idle either.
        cpus::pin(cpu).unwrap_or_default();
    }
    Ok(())
}
