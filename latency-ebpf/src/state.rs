//! The state of one task, in its storage, and the two functions that reach it.

use aya_ebpf::{
    bindings::BPF_LOCAL_STORAGE_GET_F_CREATE, helpers::generated::bpf_task_storage_get,
};
use latency_common::{
    attribution::N_PARTS,
    class::WaitClass,
    counters::TaskCounters,
    hist::N_TASK_HISTS,
    record::TaskPhase,
    trace::{Firing, TraceWait},
};

use crate::{
    globals as g, idle,
    maps::{TASKS, timeline},
    segment,
    task::Task,
    timeline::Reading,
    trace,
};

/// The task is measured now.
pub(crate) const SELECTED: u8 = 1;
/// What it forks is measured as well.
pub(crate) const FOLLOWED: u8 = 2;
/// `last_nvcsw` and `last_nivcsw` hold values of an earlier switch-out.
pub(crate) const HAS_SWITCH_BASE: u8 = 4;
/// Nothing was seen since selection: the stint or wait that goes on began before it.
pub(crate) const FRESH: u8 = 8;

/// The task was measured before it ceased to fit the targets: its row is still owed.
pub(crate) const WAS_SELECTED: u8 = 16;

/// The open wait goes on on another CPU than it began on.
pub(crate) const MOVED: u8 = 32;

/// The open wait is counted among those of its CPU.
pub(crate) const COUNTED: u8 = 64;

/// What happens to the task is told event by event.
pub(crate) const TRACED: u8 = 128;

/// Everything kept for a task.
///
/// The kernel puts it eight bytes behind the beginning of a cache line.
#[repr(C)]
pub(crate) struct TaskState {
    /// When `phase` began.
    pub(crate) since_ns: u64,
    /// Last `sched_waking`; while queued after a wakeup, when the latency began.
    pub(crate) waking_at_ns: u64,
    /// The kernel's figures at the last switch-out.
    pub(crate) last_run_delay: u64,
    /// See `last_run_delay`.
    pub(crate) last_sum_exec: u64,
    /// The low half of the kernel's counter: it grows by one at a time.
    pub(crate) last_nvcsw: u32,
    /// See `last_nvcsw`.
    pub(crate) last_nivcsw: u32,
    /// Slot + 1 in the histogram pool by `HistKind`, or one of the `HIST_` values.
    pub(crate) hist: [u32; N_TASK_HISTS],
    /// `TaskPhase`.
    pub(crate) phase: u8,
    /// `WaitClass` of the open wait while queued, of the wait before this stint while running.
    pub(crate) class: u8,
    /// Row of the preemptor that began the open wait, plus one; 0 without.
    pub(crate) preemptor_row: u8,
    /// The bits above.
    pub(crate) flags: u8,
    /// The totals of the CPU when the present stint, or segment of the wait, began.
    pub(crate) base: Reading,
    /// When the present segment of the wait began.
    pub(crate) segment_since_ns: u64,
    /// How long the task's queue had been out of quota when the wait began.
    pub(crate) throttled_before_ns: u64,
    /// The CPU of the last waking.
    pub(crate) waker_cpu: u32,
    /// Row of the waker, plus one; 0 without.
    pub(crate) waker_row: u8,
    /// `Placement` of the open wait, after a wakeup.
    pub(crate) placement: u8,
    /// The `Part`, plus one, of the last wait that was made of one only; 0 where `parts` holds it.
    pub(crate) only_part: u8,
    /// `Sync` of the last waking.
    pub(crate) sync: u8,
    /// What is reported.
    pub(crate) counters: TaskCounters,
    /// What is known of the open, or the last, wait by `Part`: what moves have ended of it, and at its
    /// end all. Not written for a wait of one part.
    pub(crate) parts: [u64; N_PARTS],
    /// The timer that woke it; only of a traced task.
    pub(crate) firing: Firing,
    /// Its last wait, until it is sent; likewise.
    pub(crate) traced_wait: TraceWait,
    /// How the open wait counts for `idle while runnable`.
    pub(crate) waits_for_idle: u64,
    /// 1 once it began to end.
    pub(crate) is_ending: u64,
}

const _: () = assert!(core::mem::offset_of!(TaskState, base) + 8 == 64);
const _: () = assert!(core::mem::offset_of!(TaskState, counters) + 8 == 128);

impl TaskState {
    #[inline(always)]
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline(always)]
    pub(crate) fn set_phase(&mut self, phase: TaskPhase, now: u64) {
        self.phase = phase as u8;
        self.since_ns = now;
    }

    #[inline(always)]
    pub(crate) fn is_in(&self, phase: TaskPhase) -> bool {
        self.phase == phase as u8
    }

    /// Changes with each wakeup and switch, before they are over: whether a reader saw one moment.
    #[inline(always)]
    pub(crate) fn version(&self) -> (u64, u64, u64) {
        let counters = &self.counters;
        // SAFETY: the field is valid; volatile, as another CPU writes it.
        let since_ns = unsafe { (&raw const self.since_ns).read_volatile() };
        // SAFETY: as above.
        let voluntary = unsafe { (&raw const counters.voluntary).read_volatile() };
        // SAFETY: as above.
        let involuntary = unsafe { (&raw const counters.involuntary).read_volatile() };
        (since_ns, voluntary, involuntary)
    }

    /// Begins to measure a task that already exists: what goes on now began before.
    #[inline(always)]
    pub(crate) fn begin(&mut self, task: Task, flags: u8, now: u64) {
        self.flags = flags | SELECTED | FRESH;
        if trace::is_wanted(task) {
            self.flags |= TRACED;
        }
        self.last_run_delay = task.run_delay();
        self.last_sum_exec = task.sum_exec();
        self.preemptor_row = 0;
        if g::ATTRIBUTE.read() != 0
            && let Some(timeline) = timeline(task.cpu())
        {
            segment::restart(self, timeline, now);
        }
        if task.is_on_cpu() {
            self.set_phase(TaskPhase::Running, now);
            self.class = WaitClass::Unmeasured as u8;
        } else if task.last_queued() != 0 {
            self.set_phase(TaskPhase::Queued, now);
            self.class = WaitClass::OpenAtStart as u8;
        } else {
            self.set_phase(TaskPhase::Sleeping, now);
            self.class = WaitClass::Wakeup as u8;
        }
    }

    /// Ceases to measure a task that no longer fits the targets; what was counted stays.
    #[inline(always)]
    pub(crate) fn end(&mut self, now: u64) {
        if self.is_in(TaskPhase::Running) {
            let stint = now.saturating_sub(self.since_ns);
            self.counters.on_cpu_ns += stint;
            self.counters.on_cpu_unaudited_ns += stint;
        }
        idle::wait_ends(self, now);
        self.phase = TaskPhase::Unknown as u8;
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
