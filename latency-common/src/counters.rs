//! The counters of one task, exact and without capacity, kept in the task's own storage.

use crate::{attribution::Attribution, class::N_CLASSES};

/// Rows for preemptors; the last one, with tid 0, takes all that found no row of their own.
pub const N_PREEMPTORS: usize = 8;

/// `Preemptor::class` of the last row, which mixes causes.
pub const CLASS_SEVERAL: u32 = u32::MAX;

/// Handle of a histogram of a kind without a slot yet.
pub const HIST_NONE: u32 = 0;

/// Handle of a histogram of a kind that found the pool empty.
pub const HIST_EXHAUSTED: u32 = u32::MAX;

/// Samples of one quantity.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounters {
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

/// Everything counted for one task.
///
/// In the task's storage this begins at a cache line. What every switch touches is in the first, the
/// two quantities of a wakeup in the second, and no class straddles two: under the runqueue lock each
/// line more is measurable.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TaskCounters {
    /// Switches that left the task blocked, and sleeps that a signal cancelled: as the kernel counts.
    pub voluntary: u64,
    /// All other switches, yields included: as the kernel counts.
    pub involuntary: u64,
    /// Growth of the kernel's `nvcsw`.
    pub kernel_voluntary: u64,
    /// Growth of the kernel's `nivcsw`.
    pub kernel_involuntary: u64,
    /// Time on a CPU, our account.
    pub on_cpu_ns: u64,
    /// Growth of the kernel's `se.sum_exec_runtime` over the audited stints.
    pub kernel_on_cpu_ns: u64,
    /// Involuntary switches by `sched_yield`.
    pub yields: u64,
    /// `sched_migrate_task` events.
    pub migrations: u64,
    /// From waking to running.
    pub latency: WaitCounters,
    /// Waits by [`crate::class::WaitClass`].
    pub classes: [WaitCounters; N_CLASSES],
    /// Sleeps that a pending signal cancelled: `voluntary`, though the task stayed runnable.
    pub cancelled_sleeps: u64,
    /// The part of `on_cpu_ns` with no counterpart in the kernel's account (a stint cut by the window).
    pub on_cpu_unaudited_ns: u64,
    /// Wakeups of a task that was running or queued: no wait begins.
    pub wakeups_not_asleep: u64,
    /// Time on a CPU of stints whose begin or end was not seen, in the kernel's account alone.
    pub unseen_on_cpu_ns: u64,
    /// The waits of `classes` in the kernel's own account (`sched_info.run_delay`).
    pub kernel_ns: [u64; N_CLASSES],
    /// Who took the CPU.
    pub preemptors: [Preemptor; N_PREEMPTORS],
    /// What the waits were made of.
    pub attribution: Attribution,
}

const _: () = assert!(core::mem::offset_of!(TaskCounters, latency) == 64);
const _: () = assert!(core::mem::offset_of!(TaskCounters, kernel_ns).is_multiple_of(64));
