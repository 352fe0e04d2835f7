//! What waits were made of: their parts, who was in the way, who woke the task, and what interrupts took.

use crate::{
    counters::WaitCounters,
    interrupt::{N_CATEGORIES, Source},
};

/// What a piece of a wait was.
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Other tasks ran on the CPU, and are named.
    OtherTasks = 0,
    /// Hard interrupts did.
    HardIrq = 1,
    /// Softirqs did.
    Softirq = 2,
    /// The scheduler's timers did.
    Tick = 3,
    /// The task was out of quota.
    Throttled = 4,
    /// The CPU was idle: the interrupt that wakes it, leaving the idle state, picking the task.
    IdleExit = 5,
    /// The task was on its way from one CPU's queue to another's.
    Moved = 6,
    /// Other tasks ran; their names were not kept.
    Unattributed = 7,
    /// What ran was not seen.
    Unexplained = 8,
}

/// Number of parts.
pub const N_PARTS: usize = 9;

impl Part {
    /// Every part, in the order of its number.
    pub const ALL: [Self; N_PARTS] = [
        Self::OtherTasks,
        Self::HardIrq,
        Self::Softirq,
        Self::Tick,
        Self::Throttled,
        Self::IdleExit,
        Self::Moved,
        Self::Unattributed,
        Self::Unexplained,
    ];

    /// The part that interrupts of a category make.
    #[must_use]
    pub const fn of_category(category: usize) -> Self {
        match category {
            0 => Self::HardIrq,
            1 => Self::Softirq,
            _ => Self::Tick,
        }
    }
}

/// What a culprit is to its victim.
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CulpritKind {
    /// A thread of the same process.
    SameProcess = 0,
    /// A process of the same cgroup.
    SameCgroup = 1,
    /// A process of another cgroup.
    Foreign = 2,
    /// A thread of the kernel.
    KernelThread = 3,
}

impl CulpritKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 4] = [
        Self::SameProcess,
        Self::SameCgroup,
        Self::Foreign,
        Self::KernelThread,
    ];
}

/// Rows for culprits by thread id.
pub const N_CULPRIT_TASKS: usize = 8;

/// Rows for culprits by name, with tid 0: of tasks that lost their own row.
pub const N_CULPRIT_NAMES: usize = 8;

/// Rows for culprits.
pub const N_CULPRITS: usize = N_CULPRIT_TASKS + N_CULPRIT_NAMES;

/// Who ran while the task waited, and for how long.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Culprit {
    /// Time that the task waited for it.
    pub sum_ns: u64,
    /// The longest stretch.
    pub max_ns: u64,
    /// Its cgroup.
    pub cgroup_id: u64,
    /// Stretches; 0 is a free row.
    pub count: u32,
    /// A [`crate::timeline::Runner`]; 0 for several tasks of this name.
    pub tid: u32,
    /// Process id; 0 for several.
    pub tgid: u32,
    /// [`CulpritKind`].
    pub kind: u16,
    /// Its priority as the kernel counts; that of one of several.
    pub prio: i16,
    /// Name.
    pub comm: [u8; 16],
}

/// Rows for interrupts within waits; the last one takes all others.
pub const N_INTERRUPTS: usize = 8;

/// An interrupt that ran while the task waited.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptShare {
    /// Time that the task waited for it.
    pub sum_ns: u64,
    /// Runs; 0 is a free row.
    pub count: u32,
    /// Which; [`Source::SEVERAL`] in the last row.
    pub source: Source,
}

/// What interrupts took from the task while it ran, by `interrupt::Category`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stolen {
    /// Their time.
    pub ns: [u64; N_CATEGORIES],
    /// Their runs.
    pub counts: [u64; N_CATEGORIES],
}

/// Rows for wakers; the last one takes all others.
pub const N_WAKERS: usize = 6;

/// Who woke the task.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waker {
    /// Wakeups; 0 is a free row.
    pub count: u64,
    /// From waking to running, of all of them.
    pub latency_sum_ns: u64,
    /// Thread id; 0 for an interrupt and for several.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// The interrupt it came from; 0 for a task, [`Source::SEVERAL`] in the last row.
    pub source: Source,
    /// Fills up to eight bytes.
    pub reserved: u32,
    /// Name of the task.
    pub comm: [u8; 16],
}

/// Where a wakeup queued the task, seen from the waker's CPU.
#[repr(usize)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On the waker's CPU.
    SameCpu = 0,
    /// On a CPU that shares its last-level cache.
    SameCache = 1,
    /// On any other.
    OtherCache = 2,
}

/// Number of placements.
pub const N_PLACEMENTS: usize = 3;

/// Whether a waker hinted that it is about to sleep, by its stack.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Not in the sample.
    NotSampled = 0,
    /// It did not.
    No = 1,
    /// It did.
    Yes = 2,
}

/// Of that many wakings on a CPU one is in the sample: a prime, so that no pattern keeps step with it.
pub const SAMPLE_EVERY: u32 = 257;

/// Functions that wake with that hint.
pub const N_SYNC_FUNCTIONS: usize = 3;

/// Wakeups of one kind and the latency that followed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeupCounters {
    /// Wakeups that ended in running.
    pub count: u64,
    /// Of those, the ones that queued on the waker's CPU.
    pub same_cpu: u64,
    /// From waking to running.
    pub latency_sum_ns: u64,
    /// The longest.
    pub latency_max_ns: u64,
}

/// The way from waking to running.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakePath {
    /// From waking to queued.
    pub to_queued: WaitCounters,
    /// By [`Placement`].
    pub placements: [WakeupCounters; N_PLACEMENTS],
    /// Of a sample, whose wakers' stacks were read: not `sync`, and `sync`.
    pub sampled: [WakeupCounters; 2],
    /// Wakeups that queued the task on another CPU than it last ran on.
    pub moved: u64,
}

/// All of it, for one task.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Time of waits that ended, by [`Part`].
    pub parts: [u64; N_PARTS],
    /// Of the other tasks' part, what has no culprit: the rows were too few.
    pub dropped_culprits_ns: u64,
    /// While it ran.
    pub stolen: Stolen,
    /// Who was in the way.
    pub culprits: [Culprit; N_CULPRITS],
    /// Interrupts within waits.
    pub interrupts: [InterruptShare; N_INTERRUPTS],
    /// How it was woken.
    pub wake_path: WakePath,
    /// By whom.
    pub wakers: [Waker; N_WAKERS],
}
