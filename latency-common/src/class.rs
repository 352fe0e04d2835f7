//! Why a task waits for a CPU: the class of each wait, decided when the wait begins.

/// Length of a table indexed by [`WaitClass`].
pub const N_CLASSES: usize = 12;

/// The class of one wait.
///
/// The first two begin with a wakeup, the next eight with the loss of the CPU.
/// The last two keep the kernel's account conserved: they hold what was not measured from start to end.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitClass {
    /// Woken from a sleep (`sched_wakeup`).
    Wakeup = 0,
    /// First wait of a new task (`sched_wakeup_new`).
    NewTask = 1,
    /// Lost the CPU to the tick: the slice was over.
    Tick = 2,
    /// Lost the CPU to the high-resolution slice timer.
    Hrtick = 3,
    /// Lost the CPU to a task that was just woken, of the same scheduling class.
    WakeupPreemption = 4,
    /// Lost the CPU to a task of a higher scheduling class.
    HigherClass = 5,
    /// Gave the CPU up by `sched_yield`.
    Yield = 6,
    /// Out of quota: CFS bandwidth, the real-time limit, or the deadline server.
    Throttled = 7,
    /// Lost the CPU to the stopper thread (`migration/N`).
    Stopper = 8,
    /// Lost the CPU and no evidence says why.
    Unknown = 9,
    /// Was already going on when recording began; its length counts from there.
    OpenAtStart = 10,
    /// Its start or its end was not seen; only the kernel's account of it exists.
    Unmeasured = 11,
}

/// The three kinds of waits a report sums up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// After a wakeup.
    Wakeup,
    /// After losing the CPU.
    Preemption,
    /// Before the first run.
    NewTask,
}

impl WaitClass {
    /// Every class, in the order of its number.
    pub const ALL: [Self; N_CLASSES] = [
        Self::Wakeup,
        Self::NewTask,
        Self::Tick,
        Self::Hrtick,
        Self::WakeupPreemption,
        Self::HigherClass,
        Self::Yield,
        Self::Throttled,
        Self::Stopper,
        Self::Unknown,
        Self::OpenAtStart,
        Self::Unmeasured,
    ];

    /// The classes that follow losing the CPU.
    pub const CAUSES: [Self; 8] = [
        Self::Tick,
        Self::Hrtick,
        Self::WakeupPreemption,
        Self::HigherClass,
        Self::Yield,
        Self::Throttled,
        Self::Stopper,
        Self::Unknown,
    ];

    /// The kind of this class; none for the two that were not measured whole.
    #[must_use]
    pub const fn kind(self) -> Option<WaitKind> {
        match self {
            Self::Wakeup => Some(WaitKind::Wakeup),
            Self::NewTask => Some(WaitKind::NewTask),
            Self::OpenAtStart | Self::Unmeasured => None,
            _ => Some(WaitKind::Preemption),
        }
    }

    /// The class with this number.
    #[must_use]
    pub fn from_index(index: usize) -> Option<Self> {
        Self::ALL.get(index).copied()
    }

    /// The name used in machine formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wakeup => "after_wakeup",
            Self::NewTask => "new_task",
            Self::Tick => "tick",
            Self::Hrtick => "hrtick",
            Self::WakeupPreemption => "wakeup",
            Self::HigherClass => "higher_class",
            Self::Yield => "yield",
            Self::Throttled => "throttled",
            Self::Stopper => "stopper",
            Self::Unknown => "unknown",
            Self::OpenAtStart => "open_at_start",
            Self::Unmeasured => "unmeasured",
        }
    }
}

/// Whether a task that leaves the CPU still wants it.
///
/// A preempted task stays queued whatever its state says; any other is queued only in state 0.
#[inline]
#[must_use]
pub const fn still_runnable(is_preempt: bool, state: u64) -> bool {
    is_preempt || state == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preempted_task_with_sleep_state_is_still_waiting() {
        assert!(still_runnable(true, 1));
    }

    #[test]
    fn task_preempted_on_return_to_user_space_is_still_waiting() {
        assert!(still_runnable(false, 0));
    }

    #[test]
    fn blocked_task_is_not_waiting() {
        assert!(!still_runnable(false, 1));
        assert!(!still_runnable(false, 0x200));
    }

    #[test]
    fn classes_are_numbered_in_order() {
        for (index, class) in WaitClass::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, index);
            assert_eq!(WaitClass::from_index(index), Some(class));
        }
        assert_eq!(WaitClass::from_index(N_CLASSES), None);
    }
}
