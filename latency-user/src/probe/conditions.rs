//! What a probe ran under, read back from the kernel rather than assumed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    num::NonZeroU64,
};

use rustix::{
    mm::{MlockAllFlags, mlockall},
    thread::{current_timer_slack, set_current_timer_slack},
};

use super::{policy::Effective, thread::Place};
use crate::{
    Error,
    analysis::escape,
    cpus::CpuList,
    model::probe::{RtLimit, ThreadConditions},
    tasks,
    units::Nanos,
};

/// Where the longest tolerable latency of idle states is asked for.
const LATENCY_LIMIT: &str = "/dev/cpu_dma_latency";
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// What the calling thread runs under, and what was asked for.
pub(super) fn of_thread(tid: u32, place: &Place) -> io::Result<ThreadConditions> {
    let effective = Effective::read()?;
    Ok(ThreadConditions {
        tid,
        name: place.name.clone(),
        asked_policy: place.policy.to_string(),
        asked_cpu: place.cpu,
        policy: effective.name(),
        priority: effective.priority,
        nice: effective.nice,
        is_as_asked: effective.is(place.policy),
        affinity: CpuList::allowed()?.to_string(),
        timer_slack_ns: current_timer_slack()?,
    })
}

/// Sets the timer slack of the calling thread.
pub(super) fn set_slack(slack: Nanos) -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(slack.as_ns()))?)
}

/// Keeps all memory of the process, present and future, from being paged out.
pub fn lock_memory() -> Result<(), Error> {
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE;
    mlockall(flags).map_err(|error| Error::LockMemory {
        source: error.into(),
    })
}

/// Keeps CPUs from all idle states that take time to leave, as long as the file is open.
pub fn hold_idle_states() -> Result<File, Error> {
    let hold = || {
        let mut file = OpenOptions::new().write(true).open(LATENCY_LIMIT)?;
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(file)
    };
    hold().map_err(|source| Error::IdleStates {
        path: LATENCY_LIMIT,
        source,
    })
}

/// The name of a thread; none where it has ended.
#[must_use]
pub fn name_of(tid: u32) -> Option<String> {
    tasks::comm(tid).map(|name| escape::bytes(&name))
}

/// The kernel's clock source at this moment.
#[must_use]
pub fn clocksource() -> String {
    let name = fs::read_to_string(CLOCKSOURCE);
    name.map_or_else(|_| "unknown".to_owned(), |name| name.trim_end().to_owned())
}

/// How much of the time real-time tasks may have together; none where that cannot be read.
#[must_use]
pub fn rt_limit() -> Option<RtLimit> {
    let number = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        text.trim_end().parse::<i64>().ok()
    };
    let us = number("sched_rt_runtime_us")?;
    let period_us = number("sched_rt_period_us")?;
    Some(RtLimit {
        // -1 is no limit.
        runtime_ns: u64::try_from(us).ok().map(|us| us * 1_000),
        period_ns: u64::try_from(period_us).ok()? * 1_000,
    })
}
