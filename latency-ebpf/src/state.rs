//! The state of one task, in its storage, and the two functions that reach it.

use aya_ebpf::{
    bindings::BPF_LOCAL_STORAGE_GET_F_CREATE, helpers::generated::bpf_task_storage_get,
};
use latency_common::{class::WaitClass, counters::TaskCounters, record::TaskPhase};

use crate::{maps::TASKS, task::Task};

/// The task is measured now.
pub(crate) const SELECTED: u32 = 1;
/// What it forks is measured as well.
pub(crate) const FOLLOWED: u32 = 2;
/// `base_nvcsw` and `base_nivcsw` are set: a switch-out was seen.
pub(crate) const HAS_SWITCH_BASE: u32 = 4;
/// Nothing was seen since selection: the stint or wait that goes on began before it.
pub(crate) const FRESH: u32 = 8;

/// The task was measured before it ceased to fit the targets: its row is still owed.
pub(crate) const WAS_SELECTED: u32 = 16;

/// Everything kept for a task.
#[repr(C)]
pub(crate) struct TaskState {
    /// When `phase` began.
    pub(crate) since_ns: u64,
    /// Last `sched_waking`; while queued after a wakeup, when the latency began.
    pub(crate) waking_at_ns: u64,
    /// The kernel's figures at the last switch-out.
    pub(crate) last_run_delay: u64,
    /// See `last_run_delay`.
    pub(crate) last_nvcsw: u64,
    /// See `last_run_delay`.
    pub(crate) last_nivcsw: u64,
    /// See `last_run_delay`.
    pub(crate) last_sum_exec: u64,
    /// The kernel's counts of switches from which ours go on.
    pub(crate) base_nvcsw: u64,
    /// See `base_nvcsw`.
    pub(crate) base_nivcsw: u64,
    /// `TaskPhase`.
    pub(crate) phase: u32,
    /// `WaitClass` of the open wait while queued, of the wait before this stint while running.
    pub(crate) class: u32,
    /// Row of the preemptor that began the open wait, plus one; 0 without.
    pub(crate) preemptor_row: u32,
    /// The bits above.
    pub(crate) flags: u32,
    /// What is reported.
    pub(crate) counters: TaskCounters,
}

impl TaskState {
    #[inline(always)]
    pub(crate) fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    #[inline(always)]
    pub(crate) fn set_phase(&mut self, phase: TaskPhase, now: u64) {
        self.phase = phase as u32;
        self.since_ns = now;
    }

    #[inline(always)]
    pub(crate) fn is_in(&self, phase: TaskPhase) -> bool {
        self.phase == phase as u32
    }

    /// Begins to measure a task that already exists: what goes on now began before.
    #[inline(always)]
    pub(crate) fn begin(&mut self, task: Task, flags: u32, now: u64) {
        self.flags = flags | SELECTED | FRESH;
        self.last_run_delay = task.run_delay();
        self.last_sum_exec = task.sum_exec();
        self.preemptor_row = 0;
        if task.is_on_cpu() {
            self.set_phase(TaskPhase::Running, now);
            self.class = WaitClass::Unmeasured as u32;
        } else if task.last_queued() != 0 {
            self.set_phase(TaskPhase::Queued, now);
            self.class = WaitClass::OpenAtStart as u32;
        } else {
            self.set_phase(TaskPhase::Sleeping, now);
            self.class = WaitClass::Wakeup as u32;
        }
    }

    /// Growth of the kernel's `nvcsw` and `nivcsw` that is not in the counters yet.
    #[inline(always)]
    pub(crate) fn pending_switches(&self) -> (u64, u64) {
        if !self.is(HAS_SWITCH_BASE) {
            return (0, 0);
        }
        (
            self.last_nvcsw.wrapping_sub(self.base_nvcsw),
            self.last_nivcsw.wrapping_sub(self.base_nivcsw),
        )
    }

    /// Ceases to measure a task that no longer fits the targets; what was counted stays.
    #[inline(always)]
    pub(crate) fn end(&mut self, now: u64) {
        if self.is_in(TaskPhase::Running) {
            let stint = now.saturating_sub(self.since_ns);
            self.counters.on_cpu_ns += stint;
            self.counters.on_cpu_unaudited_ns += stint;
        }
        let (voluntary, involuntary) = self.pending_switches();
        self.counters.kernel_voluntary += voluntary;
        self.counters.kernel_involuntary += involuntary;
        self.phase = TaskPhase::Unknown as u32;
        self.flags = WAS_SELECTED;
    }
}

/// The state of a task, if it has one.
#[inline(always)]
pub(crate) fn lookup(task: Task) -> Option<&'static mut TaskState> {
    storage(task, 0)
}

/// The state of a task, zeroed and unselected when it is new.
///
/// Not for the scheduler's own paths, unless `SEED_AT_SWITCH` says that this kernel can.
#[inline(always)]
pub(crate) fn create(task: Task) -> Option<&'static mut TaskState> {
    storage(task, u64::from(BPF_LOCAL_STORAGE_GET_F_CREATE))
}

#[inline(always)]
fn storage(task: Task, flags: u64) -> Option<&'static mut TaskState> {
    // SAFETY: the map and the typed task pointer are what the helper asks for.
    let state = unsafe {
        bpf_task_storage_get(TASKS.as_ptr(), task.as_ptr(), core::ptr::null_mut(), flags)
    };
    // SAFETY: the helper returns null or storage of this type that lives as long as the task.
    unsafe { state.cast::<TaskState>().as_mut() }
}
