//! Loads that have broken kernels under BPF: membarrier loops and readers of `/proc`.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use rustix::thread::{MembarrierCommand, membarrier};
use serde_json::{Value, json};

use super::Stage;

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
