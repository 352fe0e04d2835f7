//! Counters and histograms as the kernel side keeps them, in a form that can be added up.

use latency_common::class::{N_CLASSES, WaitClass};
use latency_common::hist::N_HISTS;

use super::AttributionTally;

/// Both accounts of the waits of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTally {
    /// Waits that ended.
    pub count: u64,
    /// Their sum, our account.
    pub sum_ns: u64,
    /// The shortest; 0 without waits.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The same waits, the kernel's account.
    pub kernel_ns: u64,
}

/// A sparse histogram: samples by bucket of `latency_common::hist`, in the order of the buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    /// Bucket index and samples; indexes ascend, no count is 0.
    pub counts: Vec<(u16, u64)>,
    /// Samples beyond the last bucket.
    pub overflow: u64,
}

/// Who took the CPU from a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptorTally {
    /// Why the waits began; none for the row that mixes causes.
    pub class: Option<WaitClass>,
    /// Name of the preemptor, as the kernel gave it.
    pub comm: [u8; 16],
    /// Its thread id; 0 for those that found no row of their own.
    pub tid: u32,
    /// Waits.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
}

/// A wait that was going on when the snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenWait {
    /// Why it began.
    pub class: WaitClass,
    /// How long it had lasted within the window.
    pub ns: u64,
}

/// Everything counted for a task, or for several together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Waits by `WaitClass`.
    pub classes: [ClassTally; N_CLASSES],
    /// From waking to running; `kernel_ns` is unused.
    pub latency: ClassTally,
    /// Histograms by `HistKind`.
    pub hists: [Buckets; N_HISTS],
    /// Tasks, by `HistKind`, whose samples are missing from `hists` (the pool was empty).
    pub without_hist: [u64; N_HISTS],
    /// Switches that left a task blocked, and sleeps that a signal cancelled: as the kernel counts.
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
    /// Time on a CPU, the stint that goes on included.
    pub on_cpu_ns: u64,
    /// The part of `on_cpu_ns` that has no counterpart in `kernel_on_cpu_ns`.
    pub on_cpu_unaudited_ns: u64,
    /// Growth of the kernel's `sum_exec_runtime` over the audited stints.
    pub kernel_on_cpu_ns: u64,
    /// `sched_migrate_task` events.
    pub migrations: u64,
    /// Wakeups that ended no sleep.
    pub wakeups_not_asleep: u64,
    /// Time on a CPU of stints whose begin or end was not seen, in the kernel's account alone.
    pub unseen_on_cpu_ns: u64,
    /// Who took the CPU.
    pub preemptors: Vec<PreemptorTally>,
    /// What the waits were made of.
    pub attribution: AttributionTally,
    /// Waits that were going on.
    pub open: Vec<OpenWait>,
    /// The part of the waits in `classes` and `open` that was waited before the interval began.
    /// 0 in a cumulative tally; `analysis::difference` sets it.
    pub waited_earlier_ns: u64,
}

impl Tally {
    /// Both accounts of the waits of `class`.
    #[must_use]
    pub const fn class(&self, class: WaitClass) -> &ClassTally {
        &self.classes[class as usize]
    }

    /// Time spent waiting within the window or interval, whether the wait ended or not.
    ///
    /// Of a wait that lasts through several intervals each gets its own part, so that intervals
    /// sum to the whole and none holds more than its length times its runnable tasks.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        let ended: u64 = self.classes.iter().map(|class| class.sum_ns).sum();
        let open: u64 = self.open.iter().map(|wait| wait.ns).sum();
        (ended + open).saturating_sub(self.waited_earlier_ns)
    }
}
