//! Loads that have broken kernels under BPF, membarrier loops and readers of `/proc`, and a spinner
//! that is interrupted by the former.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use rustix::thread::{MembarrierCommand, membarrier};
use serde_json::{Value, json};

use super::{
    Stage,
    burn::{spin, spin_and_log},
    process,
};

pub(super) fn membarrier_loop(stage: &mut Stage, duration: Duration) -> Result<Value> {
    membarrier(MembarrierCommand::RegisterPrivateExpedited)
        .context("cannot register for membarrier")?;
    stage.ready(&[])?;
    let began = Instant::now();
    let mut calls = 0_u64;
    while began.elapsed() < duration {
        // Mostly the expedited form, which interrupts; now and then a whole grace period.
        let command = if calls.is_multiple_of(64) {
            MembarrierCommand::Global
        } else {
            MembarrierCommand::PrivateExpedited
        };
        membarrier(command).context("cannot call membarrier")?;
        calls += 1;
    }
    Ok(json!({ "calls": calls }))
}

pub(super) fn read_proc(stage: &mut Stage, duration: Duration) -> Result<Value> {
    stage.ready(&[])?;
    let began = Instant::now();
    let mut bytes = 0_usize;
    while began.elapsed() < duration {
        for entry in fs::read_dir("/proc").context("cannot list /proc")? {
            let directory = entry?.path();
            for file in ["stat", "status", "schedstat", "maps"] {
                // A process may be gone meanwhile, and most entries are no process.
                bytes += fs::read(directory.join(file)).map_or(0, |content| content.len());
            }
        }
    }
    Ok(json!({ "bytes": bytes }))
}

/// A gap of a loop that reads the clock: some other code ran.
const GAP: Duration = Duration::from_micros(1);

/// Between two interrupts: the spinner has most of its CPU.
const PAUSE: Duration = Duration::from_micros(20);

/// Spins and logs its gaps while another thread, on `peer_cpu`, interrupts its CPU.
pub(super) fn interrupt_a_spinner(
    stage: &mut Stage,
    duration: Duration,
    peer_cpu: usize,
) -> Result<Value> {
    membarrier(MembarrierCommand::RegisterPrivateExpedited)
        .context("cannot register for membarrier")?;
    stage.ready(&[])?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let interrupter = scope.spawn(|| interrupt_until(&is_over, peer_cpu));
        let mut own = spin_and_log(duration, GAP);
        is_over.store(true, Ordering::Release);
        let calls = interrupter.join().ok().context("a thread panicked")??;
        own["interrupts"] = json!(calls);
        Ok(own)
    })
}

/// Has every CPU that runs a thread of this process interrupted, and returns how often.
fn interrupt_until(is_over: &AtomicBool, cpu: usize) -> Result<u64> {
    process::pin(cpu)?;
    process::rename(b"interrupter")?;
    let mut calls = 0;
    while !is_over.load(Ordering::Acquire) {
        membarrier(MembarrierCommand::PrivateExpedited).context("cannot call membarrier")?;
        calls += 1;
        spin(PAUSE);
    }
    Ok(calls)
}
