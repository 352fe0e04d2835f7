//! The counters of one task, exact and without capacity, kept in the task's own storage.

use crate::{class::N_CLASSES, hist::N_TASK_HISTS};

/// Rows for preemptors; the last one, with tid 0, takes all that found no row of their own.
pub const N_PREEMPTORS: usize = 8;

/// `Preemptor::class` of the last row, which mixes causes.
pub const CLASS_SEVERAL: u32 = u32::MAX;

/// `TaskCounters::hist` of a kind without a slot yet.
pub const HIST_NONE: u32 = 0;

/// `TaskCounters::hist` of a kind that found the pool empty.
pub const HIST_EXHAUSTED: u32 = u32::MAX;

/// Both accounts of the waits of one class.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounters {
    /// Waits that ended.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The shortest; 0 without waits.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The same waits in the kernel's own account (`sched_info.run_delay`).
    pub kernel_ns: u64,
}

/// Samples of one quantity without a second account.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyCounters {
    /// Samples.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The shortest; 0 without samples.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Who took the CPU, and what that cost the task.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preemptor {
    /// Waits that began with this preemptor and ended.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The preemptor's thread id; 0 with `count` > 0 is the last row.
    pub tid: u32,
    /// [`crate::class::WaitClass`] of these waits, or [`CLASS_SEVERAL`].
    pub class: u32,
    /// The preemptor's name when it was first seen.
    pub comm: [u8; 16],
}

/// Everything counted for one task; what every switch touches comes first, on neighbouring cache lines.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TaskCounters {
    /// Slot + 1 in the histogram pool by `HistKind`, or one of the `HIST_` values.
    pub hist: [u32; N_TASK_HISTS],
    /// Fills up to eight bytes.
    pub reserved: u32,
    /// Switches that left the task blocked, and sleeps that a signal cancelled: as the kernel counts.
    pub voluntary: u64,
    /// All other switches, yields included: as the kernel counts.
    pub involuntary: u64,
    /// Of those, by `sched_yield`.
    pub yields: u64,
    /// Sleeps that a pending signal cancelled: `voluntary`, though the task stayed runnable.
    pub cancelled_sleeps: u64,
    /// Growth of the kernel's `nvcsw`.
    pub kernel_voluntary: u64,
    /// Growth of the kernel's `nivcsw`.
    pub kernel_involuntary: u64,
    /// Time on a CPU, our account.
    pub on_cpu_ns: u64,
    /// The part of `on_cpu_ns` with no counterpart in the kernel's account (a stint cut by the window).
    pub on_cpu_unaudited_ns: u64,
    /// Growth of the kernel's `se.sum_exec_runtime` over the audited stints.
    pub kernel_on_cpu_ns: u64,
    /// `sched_migrate_task` events.
    pub migrations: u64,
    /// Wakeups of a task that was running or queued: no wait begins.
    pub wakeups_not_asleep: u64,
    /// Stints whose switch-in was not seen.
    pub unseen_switch_ins: u64,
    /// From waking to running.
    pub latency: LatencyCounters,
    /// Waits by [`crate::class::WaitClass`].
    pub classes: [ClassCounters; N_CLASSES],
    /// Who took the CPU.
    pub preemptors: [Preemptor; N_PREEMPTORS],
}
