//! Named counters of what was lost: the only place where the BPF programs may drop anything.

/// One kind of loss. The number is the index in the per-CPU array `LOSS`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A task's storage could not be created: the task is not measured.
    UntrackedTasks = 0,
    /// A switch of a task that should have storage and has none.
    UntrackedSwitches = 1,
    /// The record of an ended task found the ring full: its row is missing, its counts are in the totals.
    ExitRecords = 2,
    /// A task found the histogram pool empty: it has no percentiles of its own.
    TaskHistograms = 3,
    /// A clock reading before the one it is compared with: the sample counts as 0.
    ClockBackwards = 4,
    /// The path of a new cgroup found the ring full: it is shown by its id.
    CgroupNames = 5,
    /// The record of a long wait found the ring full: its totals are kept, its story is not.
    WaitRecords = 6,
    /// Interrupts whose begin or end was not seen: their time is in the tasks'.
    UnpairedInterrupts = 7,
    /// A stack could not be taken or kept: the time is in the culprits, without a path.
    Stacks = 8,
    /// An event of a traced thread found the ring full.
    TraceRecords = 9,
}

/// Number of loss kinds.
pub const N_LOSS: usize = 10;

impl Loss {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; N_LOSS] = [
        Self::UntrackedTasks,
        Self::UntrackedSwitches,
        Self::ExitRecords,
        Self::TaskHistograms,
        Self::ClockBackwards,
        Self::CgroupNames,
        Self::WaitRecords,
        Self::UnpairedInterrupts,
        Self::Stacks,
        Self::TraceRecords,
    ];
}
