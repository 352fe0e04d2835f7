//! What each CPU remembers between events.

/// One CPU's state: a cache line for the switch and the wakeup, one for the rest; another CPU writes it only for a remote wakeup.
#[repr(C, align(128))]
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuState {
    /// Address of the task last switched in; 0 before the first switch.
    pub current: u64,
    /// Switches seen.
    pub switches: u64,
    /// Evidence why the current task will lose the CPU: a `WaitClass`, 0 without.
    pub evidence: u32,
    /// Thread id of the wakee for evidence `WakeupPreemption`.
    pub evidence_tid: u32,
    /// 1 where nothing was asked of the current task at the last `sched_waking` here.
    pub was_clear_at_waking: u32,
    /// Wakings seen: one of each so many is looked at closely.
    pub n_wakings: u32,
    /// When it was; for a task that last ran here this is handed to its `sched_wakeup`.
    pub waking_at_ns: u64,
    /// Thread id of the task that waking was for.
    pub waking_tid: u32,
    /// Thread id of the task last made runnable here by a fork; 0 after a switch.
    pub fork_tid: u32,
    /// Waits that end here are recorded when they are longer: the shortest of the longest so far.
    pub longest_floor_ns: u64,
    /// Who woke last here, for a task that last ran here: the interrupt, 0 for the current task.
    pub waking_source: u32,
    /// Whether that waking was a `Sync` of the sample.
    pub waking_sync: u32,
    /// Address of the tick or hrtick timer that is being handled; 0 outside.
    pub timer: u64,
    /// Need-resched bits when the handling began.
    pub flags_at_timer: u64,
    /// `WaitClass::Tick` or `WaitClass::Hrtick` while `timer` is set.
    pub timer_class: u32,
    /// Moves of whole processes to another cgroup: user space then looks at all tasks again.
    pub reselect_requests: u32,
    /// Ticks handled.
    pub ticks: u64,
    /// Slice timers handled.
    pub hrticks: u64,
    /// Switches that fired no event, found at a break in the chain: `prev` was not the task last
    /// switched in.
    pub missed_switches: u64,
    /// The kernel's count of this CPU's switches before the first one seen.
    pub base_nr_switches: u64,
    /// Number of the last-level cache; user space sets it before anything is attached.
    pub cache: u32,
    /// Fills two cache lines.
    pub reserved: u32,
}

const _: () = assert!(size_of::<CpuState>() == 15 * 8 + 8);
