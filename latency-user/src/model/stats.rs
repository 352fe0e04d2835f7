//! What is reported of a task, a group, or all together.

use serde::Serialize;

use super::{BlameStats, InterruptStats, Parts, StolenStats, Tally, WakePathStats, WakerStats};

/// A distribution. Percentiles are absent where there are no samples or their histogram was not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitStats {
    /// Samples.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The shortest, exact.
    pub min_ns: u64,
    /// The longest, exact.
    pub max_ns: u64,
    /// Median, at most 1/64 off, like the others.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
}

/// Waits by kind, from queued to running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// After a wakeup.
    pub wakeup: WaitStats,
    /// After losing the CPU.
    pub preemption: WaitStats,
    /// Before the first run.
    pub new_task: WaitStats,
}

impl Waits {
    /// Waits of all kinds.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.wakeup.count + self.preemption.count + self.new_task.count
    }

    /// The longest of all kinds.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.wakeup
            .max_ns
            .max(self.preemption.max_ns)
            .max(self.new_task.max_ns)
    }
}

/// Waits of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CauseStats {
    /// Waits.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Waits that follow losing the CPU, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Causes {
    /// The tick ended the slice.
    pub tick: CauseStats,
    /// The high-resolution slice timer did.
    pub hrtick: CauseStats,
    /// A wakeup preempted.
    pub wakeup: CauseStats,
    /// A task of a higher class took the CPU.
    pub higher_class: CauseStats,
    /// `sched_yield`.
    pub r#yield: CauseStats,
    /// Out of quota.
    pub throttled: CauseStats,
    /// The stopper thread took the CPU.
    pub stopper: CauseStats,
    /// No evidence.
    pub unknown: CauseStats,
}

/// Who took the CPU, and the waits that began with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreemptorStats {
    /// Name of the cause.
    pub cause: &'static str,
    /// Name of the preemptor, escaped where it is not printable UTF-8; `(others)` for the rest.
    pub comm: String,
    /// Its thread id; 0 for `(others)`.
    pub tid: u32,
    /// Waits.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
}

/// Switches away from a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Switches {
    /// It blocked.
    pub voluntary: u64,
    /// It stayed runnable, yields included, as the kernel counts.
    pub involuntary: u64,
    /// It yielded.
    pub r#yield: u64,
}

/// Waits cut by the window: real, but of unknown full length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Censored {
    /// Going on when the recording began, and ended within it.
    pub open_at_start: u64,
    /// Their time within the window.
    pub open_at_start_ns: u64,
    /// Going on when it ended.
    pub open_at_end: u64,
    /// Their time within the window.
    pub open_at_end_ns: u64,
    /// The longest of those.
    pub open_at_end_max_ns: u64,
}

/// The figures of a task, a group, or all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Waits from queued to running.
    pub waits: Waits,
    /// From waking to running: placement plus the wait.
    pub wakeup_latency: WaitStats,
    /// Why the CPU was lost.
    pub causes: Causes,
    /// Who took it, largest sum first.
    pub preemptors: Vec<PreemptorStats>,
    /// Switches.
    pub switches: Switches,
    /// Moves to another CPU.
    pub migrations: u64,
    /// Time on a CPU.
    pub on_cpu_ns: u64,
    /// All waits that ended, our account.
    pub run_delay_ns: u64,
    /// The kernel's account, which also holds what was not measured.
    pub run_delay_kernel_ns: u64,
    /// Time spent waiting within the window or interval, whether the wait ended in it or not: the
    /// figure that adds up over intervals.
    pub waited_ns: u64,
    /// What the waited time was made of.
    pub parts: Parts,
    /// Who ran meanwhile, largest sum first.
    pub blame: Vec<BlameStats>,
    /// Which interrupts did, largest sum first.
    pub interrupts: Vec<InterruptStats>,
    /// What interrupts took while it had the CPU.
    pub stolen: StolenStats,
    /// Who woke it, most wakeups first.
    pub wakers: Vec<WakerStats>,
    /// The way from waking to running.
    pub wake_path: WakePathStats,
    /// Waits cut by the window.
    pub censored: Censored,
    /// Wakeups that ended no sleep, and started no wait.
    pub wakeups_not_asleep: u64,
    /// What the figures were made from.
    #[serde(skip)]
    pub tally: Tally,
}
