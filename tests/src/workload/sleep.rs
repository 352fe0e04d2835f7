//! Workloads that sleep until a programmed time.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use serde_json::{Value, json};

use super::{Stage, burn::spin};
use crate::truth::monotonic;

/// Wakes up every `interval`, at absolute times, and works for `work` each time.
pub(super) fn wake_periodically(
    stage: &mut Stage,
    duration: Duration,
    interval: Duration,
    work: Duration,
) -> Result<Value> {
    stage.ready(&[])?;
    let began = Instant::now();
    let mut next = monotonic();
    let (mut activations, mut overruns) = (0_u64, 0_u64);
    while began.elapsed() < duration {
        next += interval;
        let now = monotonic();
        if next <= now {
            // A period that has already passed is skipped and counted, as cyclictest does.
            overruns += 1;
            next = now;
            continue;
        }
        clock_nanosleep_absolute(ClockId::Monotonic, &timespec(next)?)?;
        activations += 1;
        spin(work);
    }
    Ok(json!({ "activations": activations, "overruns": overruns }))
}

fn timespec(at: Duration) -> Result<Timespec> {
    Ok(Timespec {
        tv_sec: i64::try_from(at.as_secs())?,
        tv_nsec: i64::from(at.subsec_nanos()),
    })
}
