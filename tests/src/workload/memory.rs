//! Workloads that spend long times in the kernel for their own memory: forks of a large process, and
//! the return of what was mapped.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use serde_json::{Value, json};

use super::{Stage, process};
use crate::truth::nanos;

const PAGE_BYTES: usize = 4096;

/// Memory of which each page is in use, unmapped when dropped.
struct Touched {
    start: *mut u8,
    n_bytes: usize,
}

impl Touched {
    fn new(n_mib: usize) -> Result<Self> {
        let n_bytes = n_mib << 20;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                n_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .context("cannot map memory")?;
        let memory = Self {
            start: start.cast(),
            n_bytes,
        };
        // Huge pages would make short work of it.
        // SAFETY: the range is the mapping.
        unsafe { madvise(start, n_bytes, Advice::LinuxNoHugepage) }
            .context("cannot ask for small pages")?;
        for offset in (0..n_bytes).step_by(PAGE_BYTES) {
            // SAFETY: the offset is within the mapping.
            let byte = unsafe { memory.start.add(offset) };
            // SAFETY: as above; the mapping belongs to this value alone.
            unsafe { byte.write_volatile(1) };
        }
        Ok(memory)
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and nothing borrows from it. A failure leaves it mapped.
        unsafe { munmap(self.start.cast(), self.n_bytes) }.unwrap_or_default();
    }
}

/// Forks children that end at once, each with tables for `n_mib` MiB of pages.
pub(super) fn fork_with_memory(
    stage: &mut Stage,
    duration: Duration,
    n_mib: usize,
) -> Result<Value> {
    let _memory = Touched::new(n_mib)?;
    stage.ready(&[])?;
    let began = Instant::now();
    let mut forks = 0_u64;
    while began.elapsed() < duration {
        process::wait_for(process::fork_and_forget()?)?;
        forks += 1;
    }
    Ok(json!({ "forks": forks }))
}

/// Gives `n_mib` MiB back to the kernel, again and again, and says how long that took.
pub(super) fn unmap(stage: &mut Stage, duration: Duration, n_mib: usize) -> Result<Value> {
    stage.ready(&[])?;
    let began = Instant::now();
    let (mut rounds, mut sum, mut longest) = (0_u64, Duration::ZERO, Duration::ZERO);
    while began.elapsed() < duration {
        let memory = Touched::new(n_mib)?;
        let at = Instant::now();
        drop(memory);
        let length = at.elapsed();
        rounds += 1;
        sum += length;
        longest = longest.max(length);
    }
    Ok(json!({ "rounds": rounds, "sum_ns": nanos(sum), "max_ns": nanos(longest) }))
}
