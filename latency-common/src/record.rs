//! What crosses from the kernel to user space: a task's row, the end of a task, the name of a cgroup.

use crate::{
    attribution::{N_PARTS, Stolen},
    counters::TaskCounters,
    hist::N_TASK_HISTS,
    interrupt::Source,
    timeline::{RecentInterrupt, StackHandle},
};

/// Longest cgroup path that is carried; a longer one is cut and marked.
pub const CGROUP_PATH_BYTES: usize = 256;

/// First word of a ring record.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordTag {
    /// A [`TaskRecord`] of a task that has ended.
    Exit = 1,
    /// A [`CgroupRecord`].
    Cgroup = 2,
    /// A [`WaitRecord`].
    Wait = 3,
}

/// State of a task at the time of a snapshot, as `TaskRecord::state`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPhase {
    /// Nothing seen since the task was selected.
    Unknown = 0,
    /// Blocked.
    Sleeping = 1,
    /// Waiting for a CPU.
    Queued = 2,
    /// On a CPU.
    Running = 3,
    /// Ended.
    Dead = 4,
}

/// One task but for its counters: who it is and what it is doing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskHeader {
    /// [`RecordTag::Exit`] in the ring; 0 from the iterator.
    pub tag: u64,
    /// `CLOCK_MONOTONIC` when the record was made.
    pub at_ns: u64,
    /// Start of the task on the boot clock: with `tid` its identity.
    pub start_time_ns: u64,
    /// Id of its cgroup in the hierarchy that is looked at.
    pub cgroup_id: u64,
    /// When the present phase began: the open wait or stint.
    pub since_ns: u64,
    /// The kernel's account of the wait before the present stint, which it books at the next switch-out.
    pub pending_kernel_ns: u64,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// [`TaskPhase`].
    pub phase: u32,
    /// Class of the open wait while queued, of the wait before the present stint while running.
    pub class: u32,
    /// Slot + 1 in the histogram pool by `HistKind`, or one of the `HIST_` values.
    pub hist: [u32; N_TASK_HISTS],
    /// Fills up to eight bytes.
    pub reserved: u32,
    /// Name of the thread.
    pub comm: [u8; 16],
    /// Name of the process's leader.
    pub leader_comm: [u8; 16],
    /// The open wait since its last move, by [`crate::attribution::Part`]; 0 without.
    pub open_parts: [u64; N_PARTS],
    /// What interrupts took of the stint that goes on.
    pub open_stolen: Stolen,
}

/// One task: the header and the counters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TaskRecord {
    /// Who and what.
    pub header: TaskHeader,
    /// The counters.
    pub counters: TaskCounters,
}

/// Measured tasks that end, on one CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Exits {
    /// Began to end here.
    pub begun: u64,
    /// Of those that began to end anywhere: had their last switch-out here, where their row is sent.
    pub ended: u64,
}

/// A cgroup that was made while recording.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CgroupRecord {
    /// [`RecordTag::Cgroup`].
    pub tag: u64,
    /// Its id.
    pub id: u64,
    /// Its path below the root of the hierarchy, NUL-terminated.
    pub path: [u8; CGROUP_PATH_BYTES],
}

/// Waits that are kept as the longest, of each CPU and in the report.
pub const N_LONGEST: usize = 16;

/// Stints, and interrupts, of which a [`WaitRecord`] has room for the last.
pub const N_WAIT_STINTS: usize = 16;

/// [`WaitStint::flags`]: a thread of the kernel.
pub const IS_KERNEL_THREAD: u16 = 1;

/// A stint within a wait, and whose it was. It ends where the next one begins.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitStint {
    /// When it began.
    pub since_ns: u64,
    /// The CPU's time in interrupts before that.
    pub interrupted_before_ns: u64,
    /// Its cgroup; 0 where the task has gone since.
    pub cgroup_id: u64,
    /// A `timeline::Runner`; 0 for idle, `timeline::TID_UNSEEN` where it was not seen.
    pub tid: u32,
    /// Process id; 0 where the task has gone since.
    pub tgid: u32,
    /// The bit above.
    pub flags: u16,
    /// Its priority as the kernel counts: below 100 real-time, below 0 deadline.
    pub prio: i16,
    /// Its kernel stack.
    pub stack: StackHandle,
    /// Name; empty where the task has gone since.
    pub comm: [u8; 16],
}

/// One wait that was among the longest, or over the threshold: what happened in it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WaitRecord {
    /// [`RecordTag::Wait`].
    pub tag: u64,
    /// When the task was queued.
    pub since_ns: u64,
    /// When it was switched in.
    pub until_ns: u64,
    /// When the waking began that queued it; 0 without.
    pub waking_at_ns: u64,
    /// When it came to this CPU's queue: later than `since_ns` after a move.
    pub here_since_ns: u64,
    /// Start of the task on the boot clock.
    pub start_time_ns: u64,
    /// Its cgroup.
    pub cgroup_id: u64,
    /// The wait by [`crate::attribution::Part`].
    pub parts: [u64; N_PARTS],
    /// The CPU's time in interrupts when the wait ended.
    pub interrupted_ns: u64,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// [`crate::class::WaitClass`].
    pub class: u32,
    /// Where it was switched in.
    pub cpu: u32,
    /// The kernel's priority: below 100 real-time, below 0 deadline.
    pub prio: i32,
    /// CPUs that it may run on.
    pub n_cpus_allowed: u32,
    /// Thread id of the waker; 0 without, or where an interrupt woke it.
    pub waker_tid: u32,
    /// The interrupt that woke it; 0 without.
    pub waker_source: Source,
    /// Used rows of `stints`.
    pub n_stints: u32,
    /// Used rows of `interrupts`.
    pub n_interrupts: u32,
    /// Name of the thread.
    pub comm: [u8; 16],
    /// Name of the process's leader.
    pub leader_comm: [u8; 16],
    /// Name of the waker.
    pub waker_comm: [u8; 16],
    /// Who ran on `cpu` during the wait, the newest first; the oldest may have begun before.
    pub stints: [WaitStint; N_WAIT_STINTS],
    /// Interrupts there, likewise.
    pub interrupts: [RecentInterrupt; N_WAIT_STINTS],
}
