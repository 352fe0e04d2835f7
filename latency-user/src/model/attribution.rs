//! What waits were made of: as counters that can be added up, and as figures of a report.

use std::sync::Arc;

use latency_common::{
    attribution::{CulpritKind, N_PARTS, Stolen, WakePath},
    interrupt::Source,
};
use serde::Serialize;

use super::SchedClass;

/// Who ran while a task waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CulpritTally {
    /// Thread id; 0 for several tasks of one name.
    pub tid: u32,
    /// The number of the function that it worked on, as `timeline::Runner` has it; 0 for none.
    pub work: u32,
    /// Process id; 0 for several.
    pub tgid: u32,
    /// Its priority as the kernel counts; of several tasks, of one that cost most.
    pub prio: i16,
    /// Name, as the kernel gave it.
    pub comm: [u8; 16],
    /// What it is to the task that waited.
    pub kind: CulpritKind,
    /// Path of its cgroup; of several tasks, of one that cost most.
    pub cgroup: Arc<str>,
    /// Stretches of its running that were waited through.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// An interrupt that ran while a task waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptTally {
    /// Which; [`Source::SEVERAL`] for those without a row of their own.
    pub source: Source,
    /// Runs.
    pub count: u64,
    /// Their time.
    pub sum_ns: u64,
}

/// Who woke a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakerTally {
    /// The interrupt; 0 for a task, [`Source::SEVERAL`] for those without a row of their own.
    pub source: Source,
    /// Thread id; 0 for an interrupt.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Name of the task, as the kernel gave it.
    pub comm: [u8; 16],
    /// Wakeups that ended in running.
    pub count: u64,
    /// From waking to running, of all of them.
    pub latency_sum_ns: u64,
}

/// What the waits of a task, or of several, were made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttributionTally {
    /// Time of waits, ended or going on, by `attribution::Part`.
    pub parts: [u64; N_PARTS],
    /// Of the other tasks' part, what has no culprit.
    pub dropped_culprits_ns: u64,
    /// What interrupts took while the task ran.
    pub stolen: Stolen,
    /// Who was in the way, in waits that ended.
    pub culprits: Vec<CulpritTally>,
    /// Interrupts within waits that ended.
    pub interrupts: Vec<InterruptTally>,
    /// The way from waking to running.
    pub wake_path: WakePath,
    /// Who woke it.
    pub wakers: Vec<WakerTally>,
}

/// All runs of one interrupt on all CPUs. Time is exclusive: what interrupted it counts elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptTotal {
    /// Which.
    pub source: Source,
    /// Runs.
    pub count: u64,
    /// Their time.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// One part of the waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartStats {
    /// Its time.
    pub sum_ns: u64,
}

/// What the waits were made of. The parts cover the waited time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// Other tasks ran, and are named.
    pub other_tasks: PartStats,
    /// Interrupts of devices and of the processor ran.
    pub hard_irq: PartStats,
    /// Softirqs ran.
    pub softirq: PartStats,
    /// The scheduler's timers ran.
    pub tick: PartStats,
    /// Out of quota.
    pub throttled: PartStats,
    /// The CPU was idle, or leaving it.
    pub idle_exit: PartStats,
    /// On the way from one CPU's queue to another's.
    pub moved: PartStats,
    /// Other tasks ran whose names were not kept.
    pub unattributed: PartStats,
    /// What ran was not seen.
    pub unexplained: PartStats,
}

impl Parts {
    /// Every part with its key.
    #[must_use]
    pub const fn list(&self) -> [(&'static str, u64); N_PARTS] {
        [
            ("other_tasks", self.other_tasks.sum_ns),
            ("hard_irq", self.hard_irq.sum_ns),
            ("softirq", self.softirq.sum_ns),
            ("tick", self.tick.sum_ns),
            ("throttled", self.throttled.sum_ns),
            ("idle_exit", self.idle_exit.sum_ns),
            ("moved", self.moved.sum_ns),
            ("unattributed", self.unattributed.sum_ns),
            ("unexplained", self.unexplained.sum_ns),
        ]
    }

    /// All of them.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.list().into_iter().map(|(_, ns)| ns).sum()
    }
}

/// Who was in the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CulpritIdent {
    /// Name, escaped where it is not printable UTF-8.
    pub comm: String,
    /// Thread id; 0 for several tasks of that name.
    pub tid: u32,
    /// The function that it worked on, of a worker of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// Process id; 0 for several.
    pub tgid: u32,
    /// Its priority as the kernel counts; of several, that of one of them.
    pub prio: i16,
    /// The class of that priority.
    pub sched_class: SchedClass,
    /// `same_process`, `same_cgroup`, `foreign` or `kernel_thread`.
    pub kind: &'static str,
    /// Path of its cgroup.
    pub cgroup: String,
}

/// What a culprit cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlameStats {
    /// Who.
    pub culprit: CulpritIdent,
    /// Stretches of its running that were waited through.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Which interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterruptIdent {
    /// `hard_irq`, `vector`, `softirq`, `tick`, or `others` for those without a row of their own.
    pub kind: &'static str,
    /// Its number within the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Its name.
    pub name: String,
}

/// What an interrupt cost waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterruptStats {
    /// Which.
    #[serde(flatten)]
    pub ident: InterruptIdent,
    /// Runs.
    pub count: u64,
    /// Their time.
    pub sum_ns: u64,
}

/// All runs of one interrupt in the window, whatever was waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterruptTotalStats {
    /// Which.
    #[serde(flatten)]
    pub ident: InterruptIdent,
    /// Runs.
    pub count: u64,
    /// Their time, without what interrupted them.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// What interrupts took from tasks that had the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StolenStats {
    /// Time of devices' and the processor's interrupts.
    pub irq_ns: u64,
    /// Of softirqs.
    pub softirq_ns: u64,
    /// Of the scheduler's timers.
    pub tick_ns: u64,
    /// Runs of devices' and the processor's interrupts.
    pub irqs: u64,
    /// Of softirqs.
    pub softirqs: u64,
    /// Of the scheduler's timers.
    pub ticks: u64,
}

/// Who woke a task. Keys that do not fit the kind are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WakerIdent {
    /// `task`, or the kind of an interrupt.
    pub kind: &'static str,
    /// Name of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// Its thread id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Its process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tgid: Option<u32>,
    /// Name of the interrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Wakeups by one waker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WakerStats {
    /// Who.
    #[serde(flatten)]
    pub ident: WakerIdent,
    /// Wakeups that ended in running.
    pub count: u64,
    /// From waking to running, of all of them.
    pub latency_sum_ns: u64,
}

/// One stage of the way from waking to running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageStats {
    /// Wakeups.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Wakeups by where they queued the task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PlacementStats {
    /// Wakeups that ended in running.
    pub count: u64,
    /// From waking to running.
    pub latency_sum_ns: u64,
    /// The longest.
    pub latency_max_ns: u64,
}

/// Where wakeups queued the task, seen from the waker's CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Placements {
    /// On the waker's CPU.
    pub same_cpu: PlacementStats,
    /// On another one that shares its last-level cache.
    pub same_cache: PlacementStats,
    /// On any other.
    pub other_cache: PlacementStats,
}

/// Sampled wakeups, `sync` or not. Shares of nothing are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SyncStats {
    /// Wakeups in the sample.
    pub count: u64,
    /// Those that queued on the waker's CPU.
    pub same_cpu_pct: Option<f64>,
    /// From waking to running.
    pub latency_mean_ns: Option<u64>,
}

/// The way from waking to running. Shares of nothing are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WakePathStats {
    /// Choosing a CPU and getting to its queue.
    pub waking_to_queued: StageStats,
    /// The wait.
    pub queued_to_running: StageStats,
    /// Wakeups that queued on the waker's CPU.
    pub same_cpu_pct: Option<f64>,
    /// On another one that shares its last-level cache.
    pub same_cache_pct: Option<f64>,
    /// On another CPU than the task last ran on.
    pub moved_pct: Option<f64>,
    /// By place.
    pub placements: Placements,
    /// Wakeups whose waker's stack was looked at.
    pub sampled: u64,
    /// Of those, `sync` ones.
    pub sync_pct: Option<f64>,
    /// The `sync` ones.
    pub sync: SyncStats,
    /// The others.
    pub not_sync: SyncStats,
}
