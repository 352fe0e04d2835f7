//! The read-only globals that user space sets before load.
//!
//! They lie in a frozen map, so the verifier knows their values: a branch on one is removed, and an
//! offset added to a typed pointer stays a constant. VERIFIER: each is read at its exact width.

use core::ptr;

use latency_common::config::{ABSENT, CGROUP_DEFAULT_HIERARCHY};

macro_rules! globals {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr;)+) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub(crate) static $name: Global<$type> = Global($default);
        )+
    };
}

/// A value that user space may have replaced before load.
#[repr(transparent)]
pub(crate) struct Global<T>(T);

impl<T: Copy> Global<T> {
    #[inline(always)]
    pub(crate) fn read(&self) -> T {
        // SAFETY: the reference is valid; volatile keeps the compiler from using the initial value.
        unsafe { ptr::read_volatile(&raw const self.0) }
    }
}

globals! {
    /// 1 when every task is selected.
    SELECT_ALL: u32 = 1;
    /// 1 when waits are taken apart (`--detail full`).
    ATTRIBUTE: u32 = 0;
    /// Waits from this length on are recorded one by one.
    OVER_NS: u64 = u64::MAX;
    /// 1 when some tasks are traced, event by event.
    TRACE: u32 = 0;
    /// CPUs that count for `idle while runnable`; 0 where that was not asked for.
    IDLE_CPUS: u32 = 0;
    /// 1 where task storage may be created under scheduler locks.
    SEED_AT_SWITCH: u32 = 0;
    /// 1 where `bpf_probe_read_kernel` is allowed.
    CAN_PROBE_READ: u32 = 1;
    /// Globs in the map `GLOBS`.
    GLOB_COUNT: u32 = 0;
    /// 1 when the map of that name holds targets.
    HAS_TGIDS: u32 = 0;
    /// See `HAS_TGIDS`.
    HAS_TIDS: u32 = 0;
    /// See `HAS_TGIDS`.
    HAS_UIDS: u32 = 0;
    /// See `HAS_TGIDS`.
    HAS_CGROUPS: u32 = 0;
    /// The hierarchy in which cgroups are read.
    CGROUP_SUBSYS: u32 = CGROUP_DEFAULT_HIERARCHY;
    /// Id of that hierarchy, to recognise its events.
    CGROUP_HIERARCHY: u32 = 0;
    /// Bits of `thread_info.flags` that ask for a reschedule, lazy ones included.
    NEED_RESCHED_MASK: u64 = 0;
    /// Address of the tick's timer callback; 0 when unknown.
    TICK_CALLBACK: u64 = 0;
    /// Address of the slice timer's callback; 0 when unknown.
    HRTICK_CALLBACK: u64 = 0;
    /// Records in the flight recorder's ring of each CPU, less one: a mask, since it is a power of two.
    FLIGHT_MASK: u32 = 0;
    /// Where the functions that wake with the hint of a sleep begin and end; 0 when unknown.
    SYNC_FUNCTION_0: u64 = 0;
    /// See `SYNC_FUNCTION_0`.
    SYNC_FUNCTION_0_END: u64 = 0;
    /// See `SYNC_FUNCTION_0`.
    SYNC_FUNCTION_1: u64 = 0;
    /// See `SYNC_FUNCTION_0`.
    SYNC_FUNCTION_1_END: u64 = 0;
    /// See `SYNC_FUNCTION_0`.
    SYNC_FUNCTION_2: u64 = 0;
    /// See `SYNC_FUNCTION_0`.
    SYNC_FUNCTION_2_END: u64 = 0;
    /// Number of the system call `sched_yield`.
    SCHED_YIELD_NR: u32 = 24;

    /// Offsets in `task_struct`.
    TASK_STATE: u32 = 0;
    /// See `TASK_STATE`.
    TASK_PID: u32 = 0;
    /// See `TASK_STATE`.
    TASK_TGID: u32 = 0;
    /// See `TASK_STATE`.
    TASK_COMM: u32 = 0;
    /// See `TASK_STATE`.
    TASK_FLAGS: u32 = 0;
    /// See `TASK_STATE`.
    TASK_PRIO: u32 = 0;
    /// See `TASK_STATE`.
    TASK_ON_CPU: u32 = 0;
    /// Bytes of `on_cpu`: 1 or 4.
    TASK_ON_CPU_BYTES: u32 = 4;
    /// See `TASK_STATE`.
    TASK_THREAD_FLAGS: u32 = 0;
    /// `thread_info.cpu`, or `cpu` where that is absent.
    TASK_CPU: u32 = 0;
    /// See `TASK_STATE`.
    TASK_NVCSW: u32 = 0;
    /// See `TASK_STATE`.
    TASK_NIVCSW: u32 = 0;
    /// See `TASK_STATE`.
    TASK_RUN_DELAY: u32 = 0;
    /// See `TASK_STATE`.
    TASK_LAST_QUEUED: u32 = 0;
    /// See `TASK_STATE`.
    TASK_SUM_EXEC: u32 = 0;
    /// See `TASK_STATE`.
    TASK_START_BOOTTIME: u32 = 0;
    /// See `TASK_STATE`.
    TASK_GROUP_LEADER: u32 = 0;
    /// See `TASK_STATE`.
    TASK_CRED: u32 = 0;
    /// See `TASK_STATE`.
    TASK_CGROUPS: u32 = 0;
    /// `se.prev_sum_exec_runtime`.
    TASK_PREV_SUM_EXEC: u32 = ABSENT;
    /// `nr_cpus_allowed`.
    TASK_CPUS_ALLOWED: u32 = ABSENT;
    /// `throttled`, where tasks are throttled one by one (6.18).
    TASK_THROTTLED: u32 = ABSENT;
    /// `se.cfs_rq`, where whole queues are.
    TASK_CFS_RQ: u32 = ABSENT;
    /// `cfs_rq.throttle_count`.
    CFS_RQ_THROTTLE_COUNT: u32 = ABSENT;
    /// The time that tasks of a `cfs_rq` were out of quota, by that queue's clock.
    CFS_RQ_THROTTLED_NS: u32 = ABSENT;
    /// Since when they are; 0 while they are not.
    CFS_RQ_THROTTLED_SINCE: u32 = ABSENT;
    /// `rq.clock`.
    RQ_CLOCK: u32 = ABSENT;
    /// `cfs_rq.rq`.
    CFS_RQ_RQ: u32 = ABSENT;
    /// `rq.nr_switches`.
    RQ_NR_SWITCHES: u32 = ABSENT;
    /// `cred.uid`.
    CRED_UID: u32 = 0;
    /// `css_set.dfl_cgrp`, or the slot of a v1 controller in `css_set.subsys`.
    CSS_SET_MEMBER: u32 = 0;
    /// `cgroup_subsys_state.cgroup`.
    CSS_CGROUP: u32 = 0;
    /// `cgroup.self.parent`.
    CGROUP_PARENT_CSS: u32 = 0;
    /// `cgroup.kn`.
    CGROUP_KN: u32 = 0;
    /// `kernfs_node.id`.
    KERNFS_ID: u32 = 0;
    /// `cgroup.root`.
    CGROUP_ROOT: u32 = 0;
    /// `cgroup_root.hierarchy_id`.
    CGROUP_ROOT_ID: u32 = 0;
    /// `hrtimer.function`.
    HRTIMER_FUNCTION: u32 = 0;
    /// `hrtimer._softexpires`: when it was asked to fire.
    HRTIMER_SOFT_EXPIRES: u32 = ABSENT;
    /// `hrtimer.node.expires`: that and the slack.
    HRTIMER_EXPIRES: u32 = ABSENT;
    /// `work_struct.func`.
    WORK_FUNCTION: u32 = ABSENT;
    /// The system call's number in `pt_regs`.
    REGS_SYSCALL_NR: u32 = ABSENT;
    /// The system call's first argument in `pt_regs`.
    REGS_FIRST_ARGUMENT: u32 = ABSENT;
}
