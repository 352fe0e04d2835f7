//! Workloads that always want a CPU: burners in user space and in system calls, and yielders.

use std::{
    fs::File,
    io::Read as _,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::Stage;
use crate::truth::nanos;

/// Long enough that slices end inside the call.
const READ_BYTES: usize = 16 << 20;

/// Spins until `duration` is over.
pub(super) fn spin(duration: Duration) {
    let began = Instant::now();
    while began.elapsed() < duration {}
}

pub(super) fn burn(stage: &mut Stage, duration: Duration) -> Result<Value> {
    stage.ready(&[])?;
    spin(duration);
    Ok(json!({}))
}

pub(super) fn burn_in_system_calls(stage: &mut Stage, duration: Duration) -> Result<Value> {
    let mut zero = File::open("/dev/zero").context("cannot open /dev/zero")?;
    let mut buffer = vec![0_u8; READ_BYTES];
    stage.ready(&[])?;
    let began = Instant::now();
    let mut calls = 0_u64;
    while began.elapsed() < duration {
        zero.read_exact(&mut buffer)?;
        calls += 1;
    }
    Ok(json!({ "calls": calls }))
}

pub(super) fn log_gaps(
    stage: &mut Stage,
    duration: Duration,
    threshold: Duration,
) -> Result<Value> {
    stage.ready(&[])?;
    Ok(spin_and_log(duration, threshold))
}

/// Spins until `duration` is over, and returns how often and for how long the clock jumped.
pub(super) fn spin_and_log(duration: Duration, threshold: Duration) -> Value {
    let began = Instant::now();
    let (mut count, mut sum, mut longest) = (0_u64, Duration::ZERO, Duration::ZERO);
    let mut last = began;
    while last - began < duration {
        let now = Instant::now();
        let gap = now - last;
        if gap >= threshold {
            count += 1;
            sum += gap;
            longest = longest.max(gap);
        }
        last = now;
    }
    json!({ "gaps": count, "sum_ns": nanos(sum), "max_ns": nanos(longest) })
}

pub(super) fn yield_in_a_loop(stage: &mut Stage, duration: Duration) -> Result<Value> {
    stage.ready(&[])?;
    let began = Instant::now();
    let mut calls = 0_u64;
    while began.elapsed() < duration {
        rustix::thread::sched_yield();
        calls += 1;
    }
    Ok(json!({ "calls": calls }))
}
