//! The recent past of each CPU: which tasks ran, which interrupts, and totals of the latter.

use crate::{
    interrupt::{N_CATEGORIES, Source},
    trace::Firing,
};

/// Stints kept: a power of two. A task that waits for one tick behind two that hand the CPU to each other
/// as fast as they can waits through about as many.
pub const N_STINTS: usize = 1024;

/// Interrupts kept: a power of two.
pub const N_RECENT_INTERRUPTS: usize = 64;

/// Interrupts that can be active at once on a CPU: softirq, irq, vector, timer callback, and as many again.
pub const MAX_DEPTH: usize = 8;

/// `Stint::tid` where what ran was not seen.
pub const TID_UNSEEN: u32 = u32::MAX;

/// A task on the CPU. It ends where the next one begins.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stint {
    /// When it was switched in.
    pub since_ns: u64,
    /// The CPU's time in interrupts before that.
    pub interrupted_before_ns: u64,
    /// Who: a [`Runner`]; 0 for idle, [`TID_UNSEEN`] where it was not seen.
    pub tid: u32,
    /// Its [`StackHandle`] where it was switched out, or where a tick found somebody overdue.
    pub stack: StackHandle,
}

/// Who has a CPU: a thread, and what it works on where it is one of the kernel's workers.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Runner(pub u32);

/// Thread ids are less: `PID_MAX_LIMIT` of the kernel.
const MAX_TID: u32 = 1 << 22;

/// Rows for functions that workers run; 0 is none.
pub const N_WORKS: u32 = u32::MAX / MAX_TID;

impl Runner {
    /// A thread that works on the function with this number, 0 for none.
    #[must_use]
    pub const fn new(tid: u32, work: u32) -> Self {
        Self(tid | (work * MAX_TID))
    }

    /// The thread.
    #[must_use]
    pub const fn tid(self) -> u32 {
        self.0 & (MAX_TID - 1)
    }

    /// Whatever thread works on the same function.
    #[must_use]
    pub const fn any_thread(self) -> Self {
        Self::new(0, self.work())
    }

    /// The number of the function that it works on, 0 for none.
    #[must_use]
    pub const fn work(self) -> u32 {
        self.0 / MAX_TID
    }
}

/// Tasks that a CPU knows by name: a power of two.
pub const N_FACES: usize = 256;

/// Who a task is, in the row of its thread id modulo their number. The last one to have the CPU has it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Face {
    /// Thread id; 0 for a free row.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// When it was looked at: a name may change.
    pub at_ns: u64,
    /// Its cgroup.
    pub cgroup_id: u64,
    /// 1 for a thread of the kernel.
    pub is_kernel_thread: u16,
    /// Its priority as the kernel counts: below 100 real-time, below 0 deadline.
    pub prio: i16,
    /// The number of the function that it works on, as a [`Runner`] without a thread.
    pub work: u32,
    /// Name.
    pub comm: [u8; 16],
}

/// A kernel stack in the map of stacks, and the system call it is in; 0 is none.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackHandle(pub u32);

impl StackHandle {
    /// `id` in the map, and the system call's number, negative outside.
    #[must_use]
    #[expect(clippy::cast_sign_loss, reason = "not negative where it counts")]
    pub const fn new(id: u32, syscall: i32) -> Self {
        let syscall = if syscall < 0 || syscall > 0x7ffe {
            0
        } else {
            syscall as u32 + 1
        };
        Self((syscall << 16) | ((id & 0x7fff) + 1))
    }

    /// The number in the map of stacks.
    #[must_use]
    pub const fn id(self) -> Option<u32> {
        (self.0 & 0xffff).checked_sub(1)
    }

    /// The system call's number.
    #[must_use]
    pub const fn syscall(self) -> Option<u32> {
        (self.0 >> 16).checked_sub(1)
    }
}

/// Stacks kept; fewer than a handle can name.
pub const N_STACKS: u32 = 4096;

/// Whose stack it was: what time is added up by.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackKey {
    /// Name of the task.
    pub comm: [u8; 16],
    /// Its `StackHandle`.
    pub stack: u32,
    /// 1 for a thread of the kernel.
    pub is_kernel_thread: u32,
}

/// Time that other tasks waited while a task was where its stack says.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackWeight {
    /// The time.
    pub sum_ns: u64,
    /// Stretches.
    pub count: u64,
}

/// An interrupt that ended, or several runs of it with nothing else in between: a flood does not push
/// everything else out of the past.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentInterrupt {
    /// When the first began.
    pub since_ns: u64,
    /// When the last ended.
    pub until_ns: u64,
    /// Their time, without what interrupted them and what lies between them.
    pub own_ns: u64,
    /// Which.
    pub source: Source,
    /// Runs.
    pub count: u32,
}

impl RecentInterrupt {
    /// What of it lies at `from` or later; of several runs the share that this is of their time, which
    /// is nearly all: only the first can lie before the begin of a wait.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a share of the count, which is of that type"
    )]
    pub const fn since(&self, from: u64) -> Self {
        let length_ns = self.until_ns.saturating_sub(self.since_ns);
        let within_ns = self.until_ns.saturating_sub(from);
        if within_ns >= length_ns {
            return *self;
        }
        if self.count == 1 {
            let own_ns = if self.own_ns < within_ns {
                self.own_ns
            } else {
                within_ns
            };
            return Self { own_ns, ..*self };
        }
        Self {
            own_ns: self.own_ns * within_ns / length_ns,
            count: 1 + ((self.count - 1) as u64 * within_ns / length_ns) as u32,
            ..*self
        }
    }
}

/// An interrupt that is active.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveInterrupt {
    /// When it began.
    pub since_ns: u64,
    /// Its own time up to the last change of context.
    pub own_ns: u64,
    /// Which.
    pub source: Source,
    /// 1 where the CPU was asked to switch before it began; only where a traced task has the CPU.
    pub was_asked: u32,
}

/// One CPU's past. What every switch and wakeup touches is in its first line. Only that CPU writes it; others read it for remote wakeups, moves and snapshots.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    /// Changes with each change of context, before and after: odd while one is being written.
    pub version: u32,
    /// Active interrupts.
    pub depth: u8,
    /// 1 after a wakeup or a move to here: the next interrupt to end is an entry of its own, so that
    /// none reaches over the begin of a wait but the one that was active then.
    pub is_cut: u8,
    /// Measured tasks that wait here, but for those that were moved here.
    pub n_waiting: u16,
    /// Since when at least one of them does; 0 while none does.
    pub waiting_since_ns: u64,
    /// Time of interrupts so far, all categories.
    pub interrupted_ns: u64,
    /// By category.
    pub totals_ns: [u64; N_CATEGORIES],
    /// Runs by category.
    pub counts: [u32; N_CATEGORIES],
    /// Stints begun: the newest is at this number minus one.
    pub n_stints: u32,
    /// Active interrupts, the outermost first.
    pub active: [ActiveInterrupt; MAX_DEPTH],
    /// Interrupts ended.
    pub n_interrupts: u32,
    /// Thread id of the traced task that has the CPU; 0 where none has.
    pub traced_tid: u32,
    /// When the context last changed: where the innermost active interrupt's time is counted from.
    pub context_since_ns: u64,
    /// When a stack was last taken here.
    pub stack_at_ns: u64,
    /// The timer whose callback runs; only where tasks are traced.
    pub firing: Firing,
    /// Fills up to a cache line.
    pub reserved_line: [u64; 2],
    /// The last interrupts, by number modulo their count.
    pub interrupts: [RecentInterrupt; N_RECENT_INTERRUPTS],
    /// The last stints, by number modulo their count.
    pub stints: [Stint; N_STINTS],
    /// Who those tasks are.
    pub faces: [Face; N_FACES],
}

const _: () = assert!(core::mem::offset_of!(Timeline, active) == 64);
const _: () = assert!(size_of::<Stint>() == 24);
const _: () = assert!(core::mem::offset_of!(Timeline, stints).is_multiple_of(64));
