//! The read-only globals that user space sets before load, by name.
//!
//! Offsets are 0 where the field does not exist and [`ABSENT`] marks features that need one.

/// Value of an offset whose field this kernel does not have.
pub const ABSENT: u32 = u32::MAX;

/// How much is measured: which programs are attached. Each includes the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Programs return at once: what attaching alone costs.
    Empty,
    /// Waits by kind, without wakeup latency and causes.
    Basic,
    /// Waits, wakeup latency and causes.
    Causes,
    /// Everything: what each wait was made of as well.
    Full,
}

/// Where a task's cgroup is read (`CGROUP_SUBSYS`): this value is the default (v2) hierarchy,
/// any other the index of a v1 controller.
pub const CGROUP_DEFAULT_HIERARCHY: u32 = u32::MAX;

/// Value of a thread id in the map of targets: the thread is traced as well.
pub const TRACED_TARGET: u8 = 2;

/// Stacks are not taken for less: a look at the clock spares one at the threshold.
pub const LEAST_STACKS_OVER_NS: u64 = 100_000;
