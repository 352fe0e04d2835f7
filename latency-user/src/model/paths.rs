//! Kernel paths: what tasks did in the kernel while others waited for their CPU.

use std::{collections::BTreeMap, sync::Arc};

use latency_common::timeline::StackHandle;
use serde::Serialize;

/// Functions by the number of a stack, leaf first; none for a task that was in user space. What is
/// not here has no names.
pub type KernelPaths = BTreeMap<u32, Vec<Arc<str>>>;

/// Functions that workers of the kernel run, by the number of `timeline::Runner`.
pub type WorkNames = BTreeMap<u32, Arc<str>>;

/// Names of functions of the kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelNames {
    /// Of stacks.
    pub paths: KernelPaths,
    /// Of what workers work on.
    pub works: WorkNames,
}

/// What stands for the functions of a task that was not in the kernel.
pub const USER_SPACE: &str = "[user]";

/// What stands before the functions of a task that went to sleep there: what it did before is not known.
pub const ASLEEP: &str = "[sleep]";

/// The innermost function of a task that had done its work in the kernel.
pub const LEAVING_KERNEL: &str = "exit_to_user_mode_loop";

/// Time that tasks waited, by the stack of who had the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackTally {
    /// Name of who had the CPU.
    pub comm: [u8; 16],
    /// It is a thread of the kernel.
    pub is_kernel_thread: bool,
    /// Its stack and system call.
    pub stack: StackHandle,
    /// The time.
    pub sum_ns: u64,
    /// Stretches of its running.
    pub count: u64,
}

/// One kernel path, and what tasks waited for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StackStats {
    /// Name of who had the CPU.
    pub comm: String,
    /// It is a thread of the kernel.
    pub kernel_thread: bool,
    /// The system call it was in.
    pub syscall: Option<String>,
    /// Its functions, leaf first; `[user]` alone for user space, `[sleep]` before where it went to sleep.
    pub frames: Vec<String>,
    /// The time that tasks waited.
    pub sum_ns: u64,
    /// Stretches of its running.
    pub count: u64,
}

/// The innermost function in which most of a culprit's time in the kernel was spent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MainPath {
    /// Name of the culprit.
    pub comm: String,
    /// It is a thread of the kernel.
    pub kernel_thread: bool,
    /// The function.
    pub function: String,
    /// Time that tasks waited while the culprit was in it.
    pub sum_ns: u64,
}

/// All kernel paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathStats {
    /// The paths, largest sum first.
    pub stacks: Vec<StackStats>,
    /// Share of the time that other tasks took of which the path is known, in percent; absent where
    /// they took none.
    pub stacks_coverage_pct: Option<f64>,
    /// Stacks were taken where somebody had waited longer than this; where it moved, its last value.
    pub stacks_over_ns: Option<u64>,
    /// For each culprit with a time in the kernel.
    #[serde(skip)]
    pub main: Vec<MainPath>,
}
