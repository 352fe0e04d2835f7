//! One snapshot of a recording, before anything is grouped or summed up.

use std::{collections::BTreeMap, sync::Arc};

use super::{InterruptTotal, KernelNames, StackTally, Tally, WaitEvent};

/// Who a task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskIdent {
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Start on the boot clock: with `tid` the identity of a task.
    pub start_time_ns: u64,
    /// Name of the thread: its last one. Any bytes.
    pub comm: [u8; 16],
    /// Name of the process's leader.
    pub leader_comm: [u8; 16],
    /// Path of its cgroup, or `id:N` where no path could be found.
    pub cgroup: Arc<str>,
    /// The task has ended.
    pub has_exited: bool,
    /// It is a thread of the recorder.
    pub is_self: bool,
}

/// One task and its counters.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// Who.
    pub ident: TaskIdent,
    /// What was counted.
    pub tally: Tally,
}

/// Sums over all CPUs, whatever was selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTotals {
    /// Switches seen, those from and to idle included.
    pub switches: u64,
    /// Breaks in the chain of switches.
    pub missed_switches: u64,
    /// Ticks handled.
    pub ticks: u64,
    /// High-resolution slice timers handled.
    pub hrticks: u64,
    /// Growth of the kernel's own count of switches (`ctxt` of `/proc/stat`), read just outside ours.
    pub kernel_switches: u64,
    /// How far `kernel_switches` can be off: switches that happened while both were read.
    pub kernel_switches_slack: u64,
    /// Growth of the local timer interrupts, all causes.
    pub local_timer_interrupts: Option<u64>,
    /// Time a hypervisor kept from the CPUs.
    pub steal_ns: u64,
    /// Time for which the machine was suspended, all CPUs at once; off by what came between the readings
    /// of two clocks.
    pub suspended_ns: u64,
}

/// What was lost, by kind; every figure counts events or tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Losses {
    /// Breaks in the chain of switches: an unseen switch each.
    pub missed_switches: u64,
    /// Waits whose start or end was not seen.
    pub unmeasured_waits: u64,
    /// Tasks without storage.
    pub untracked_tasks: u64,
    /// Switches of such tasks.
    pub untracked_switches: u64,
    /// Ended tasks whose row is missing (ring full); their counts are in the totals.
    pub exit_records: u64,
    /// Ended tasks without a row, since there were too many; their counts are in the totals.
    pub folded_rows: u64,
    /// Histograms that found the pool empty; their samples are in the totals.
    pub task_histograms: u64,
    /// Samples set to 0 since the clock ran backwards between CPUs.
    pub clock_backwards: u64,
    /// Cgroups shown by id since their path was lost.
    pub cgroup_names: u64,
    /// Long waits without their story (ring full); their time is in the sums.
    pub wait_records: u64,
    /// Culprits without a name (ring full); their time is in the parts.
    pub blame_records: u64,
    /// Interrupts whose begin or end was not seen; their time is in the tasks'.
    pub unpaired_interrupts: u64,
    /// Events of traced threads that found their ring full; the figures of the threads have them.
    pub trace_records: u64,
    /// Stacks that could not be taken or kept; their time has no path.
    pub stacks: u64,
    /// Runs of our programs that the kernel skipped since the same program was active.
    pub recursion_misses: u64,
    /// Records of a shape that this version does not know.
    pub malformed_records: u64,
}

/// The kernel's own count of what our programs cost, over the slices in which it was switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostSample {
    /// Length of the slices together.
    pub sampled_ns: u64,
    /// Run time of all our programs in them.
    pub run_ns: u64,
    /// Runs of our programs in them.
    pub runs: u64,
    /// Switches seen in them.
    pub switches: u64,
}

/// CPU time that was idle while measured tasks waited: ∫ min(idle CPUs, waiting tasks) dt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct IdleWhileRunnable {
    /// That time, of tasks that may run on all CPUs that count.
    pub ns: u64,
    /// What other tasks waited, which may run on some of them only and are not in `ns`.
    pub restricted_waiting_ns: u64,
}

/// A snapshot: cumulative since the recording began.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// `CLOCK_MONOTONIC` when everything was attached.
    pub start_at_ns: u64,
    /// How long attaching everything took, before that.
    pub attach_ns: u64,
    /// Wall clock of the same moment, nanoseconds since 1970.
    pub start_wall_ns: u64,
    /// `CLOCK_MONOTONIC` of the snapshot.
    pub end_at_ns: u64,
    /// Selected tasks, those that ended included.
    pub rows: Vec<TaskRow>,
    /// Counts of ended tasks whose record was lost, and samples of tasks without histogram.
    pub unsent: Tally,
    /// All interrupts, whatever was selected.
    pub interrupts: Vec<InterruptTotal>,
    /// Names of device interrupts by number.
    pub irq_names: BTreeMap<u32, String>,
    /// The longest waits that began and ended in the window, the longest first.
    pub longest: Vec<WaitEvent>,
    /// Time that was waited by the stack of who had the CPU; of the whole recording only.
    pub stacks: Vec<StackTally>,
    /// Names for these stacks and those of `longest`, and of what workers of the kernel work on.
    pub names: KernelNames,
    /// Stacks are taken where somebody has waited longer than this.
    pub stacks_over_ns: Option<u64>,
    /// Sums over all CPUs.
    pub cpus: CpuTotals,
    /// What was lost.
    pub losses: Losses,
    /// Idle while runnable, where it was asked for and could be read.
    pub idle_while_runnable: Option<IdleWhileRunnable>,
    /// What the programs cost; none without the right to ask.
    pub cost: Option<CostSample>,
}

impl Observation {
    /// The snapshot at the very start, when nothing had happened.
    #[must_use]
    pub fn at_start((start_at_ns, start_wall_ns): (u64, u64)) -> Self {
        Self {
            start_at_ns,
            start_wall_ns,
            end_at_ns: start_at_ns,
            ..Self::default()
        }
    }
}
