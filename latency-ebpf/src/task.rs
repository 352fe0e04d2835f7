//! Reads of kernel structures: the only place where kernel pointers are followed.
//!
//! Loads through typed pointers need no helper, work under lockdown, and read 0 from a bad address.

use aya_ebpf::{
    bindings::task_struct,
    helpers::{
        bpf_probe_read_kernel, generated::bpf_get_current_task_btf, generated::bpf_task_pt_regs,
    },
};
use latency_common::config::ABSENT;

use crate::globals::{self as g, Global};

/// The task runs kernel code only.
const PF_KTHREAD: u32 = 0x0020_0000;
const PF_WQ_WORKER: u32 = 0x0000_0020;
/// State bit of the last switch-out.
const TASK_DEAD: u64 = 0x80;
/// Priorities below this belong to the real-time classes.
const MAX_RT_PRIO: i32 = 100;
/// First eight bytes of the stopper threads' names, `migration/N`.
const STOPPER_NAME: u64 = u64::from_ne_bytes(*b"migratio");

/// Loads a field of a kernel structure through a typed pointer.
#[inline(always)]
pub(crate) fn load<T: Copy>(base: *const u8, offset: &Global<u32>) -> T {
    // SAFETY: VERIFIER: `base` is typed and the offset a known constant, so the kernel checks the access.
    unsafe { *base.wrapping_add(offset.read() as usize).cast::<T>() }
}

/// Whether a task in this state has switched out for the last time.
#[inline(always)]
pub(crate) const fn is_dead(state: u64) -> bool {
    state & TASK_DEAD != 0
}

/// A typed pointer to a `task_struct`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Task(*const u8);

impl Task {
    #[inline(always)]
    pub(crate) const fn new(task: *const u8) -> Self {
        Self(task)
    }

    /// The task that runs here now.
    #[inline(always)]
    pub(crate) fn current() -> Self {
        // SAFETY: the helper has no precondition.
        Self(unsafe { bpf_get_current_task_btf() }.cast_const().cast())
    }

    #[inline(always)]
    pub(crate) fn as_ptr(self) -> *mut task_struct {
        self.0.cast_mut().cast()
    }

    #[inline(always)]
    pub(crate) fn address(self) -> u64 {
        self.0 as u64
    }

    #[inline(always)]
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    #[inline(always)]
    pub(crate) fn tid(self) -> u32 {
        load(self.0, &g::TASK_PID)
    }

    #[inline(always)]
    pub(crate) fn tgid(self) -> u32 {
        load(self.0, &g::TASK_TGID)
    }

    /// Every CPU's idle task has thread id 0.
    #[inline(always)]
    pub(crate) fn is_idle(self) -> bool {
        self.tid() == 0
    }

    #[inline(always)]
    pub(crate) fn state(self) -> u64 {
        u64::from(load::<u32>(self.0, &g::TASK_STATE))
    }

    #[inline(always)]
    pub(crate) fn is_dead(self) -> bool {
        is_dead(self.state())
    }

    #[inline(always)]
    pub(crate) fn cpu(self) -> u32 {
        load(self.0, &g::TASK_CPU)
    }

    /// Bits that ask this task to give up the CPU.
    #[inline(always)]
    pub(crate) fn need_resched(self) -> u64 {
        load::<u64>(self.0, &g::TASK_THREAD_FLAGS) & g::NEED_RESCHED_MASK.read()
    }

    #[inline(always)]
    pub(crate) fn is_on_cpu(self) -> bool {
        if g::TASK_ON_CPU_BYTES.read() == 1 {
            load::<u8>(self.0, &g::TASK_ON_CPU) != 0
        } else {
            load::<u32>(self.0, &g::TASK_ON_CPU) != 0
        }
    }

    /// The low half: it grows by one at a time.
    #[inline(always)]
    pub(crate) fn nvcsw_low(self) -> u32 {
        load(self.0, &g::TASK_NVCSW)
    }

    /// See `nvcsw_low`.
    #[inline(always)]
    pub(crate) fn nivcsw_low(self) -> u32 {
        load(self.0, &g::TASK_NIVCSW)
    }

    #[inline(always)]
    pub(crate) fn run_delay(self) -> u64 {
        load(self.0, &g::TASK_RUN_DELAY)
    }

    /// Non-zero while the task waits for a CPU.
    #[inline(always)]
    pub(crate) fn last_queued(self) -> u64 {
        load(self.0, &g::TASK_LAST_QUEUED)
    }

    #[inline(always)]
    pub(crate) fn sum_exec(self) -> u64 {
        load(self.0, &g::TASK_SUM_EXEC)
    }

    #[inline(always)]
    pub(crate) fn start_boottime(self) -> u64 {
        load(self.0, &g::TASK_START_BOOTTIME)
    }

    #[inline(always)]
    pub(crate) fn leader(self) -> Self {
        Self(load(self.0, &g::TASK_GROUP_LEADER))
    }

    #[inline(always)]
    pub(crate) fn uid(self) -> u32 {
        load(load(self.0, &g::TASK_CRED), &g::CRED_UID)
    }

    /// The cgroup set, for `cgroup.rs`.
    #[inline(always)]
    pub(crate) fn css_set(self) -> *const u8 {
        load(self.0, &g::TASK_CGROUPS)
    }

    #[inline(always)]
    pub(crate) fn comm(self) -> [u8; 16] {
        // VERIFIER: in words; bytes are copied by a loop, which does not take pointers of several kinds.
        let words: [u64; 2] = [
            load(self.0, &g::TASK_COMM),
            load(self.0.wrapping_add(size_of::<u64>()), &g::TASK_COMM),
        ];
        as_comm(words)
    }

    #[inline(always)]
    pub(crate) fn is_kthread(self) -> bool {
        load::<u32>(self.0, &g::TASK_FLAGS) & PF_KTHREAD != 0
    }

    /// Whether it is a thread that works on what the kernel's work queues hold.
    #[inline(always)]
    pub(crate) fn is_worker(self) -> bool {
        load::<u32>(self.0, &g::TASK_FLAGS) & PF_WQ_WORKER != 0
    }

    /// 0 fair, 1 real-time, 2 deadline. The stopper is told apart by `is_stopper`.
    #[inline(always)]
    pub(crate) fn class_rank(self) -> u32 {
        match self.prio() {
            ..0 => 2,
            0..MAX_RT_PRIO => 1,
            _ => 0,
        }
    }

    #[inline(always)]
    pub(crate) fn is_stopper(self) -> bool {
        self.class_rank() == 1
            && self.is_kthread()
            && load::<u64>(self.0, &g::TASK_COMM) == STOPPER_NAME
    }

    /// The number of the system call that the task is in, by its saved registers; negative outside.
    #[inline(always)]
    pub(crate) fn syscall(self) -> i32 {
        if g::REGS_SYSCALL_NR.read() == ABSENT || self.is_kthread() {
            return -1;
        }
        load(self.saved_registers(), &g::REGS_SYSCALL_NR)
    }

    /// The first argument of the system call that the task is in.
    #[inline(always)]
    pub(crate) fn first_argument(self) -> u64 {
        if g::REGS_FIRST_ARGUMENT.read() == ABSENT {
            return 0;
        }
        load(self.saved_registers(), &g::REGS_FIRST_ARGUMENT)
    }

    /// Its registers when it entered the kernel.
    #[inline(always)]
    fn saved_registers(self) -> *const u8 {
        // SAFETY: the typed task pointer is what the helper asks for.
        unsafe { bpf_task_pt_regs(self.as_ptr()) as *const u8 }
    }

    /// Whether the task is inside `sched_yield`.
    #[inline(always)]
    pub(crate) fn is_in_sched_yield(self) -> bool {
        self.syscall().cast_unsigned() == g::SCHED_YIELD_NR.read()
    }

    /// How long the task has the CPU, or had it when it is just leaving: the kernel's account.
    #[inline(always)]
    pub(crate) fn present_stint(self) -> u64 {
        if g::TASK_PREV_SUM_EXEC.read() == ABSENT || self.class_rank() != 0 {
            return 0;
        }
        self.sum_exec()
            .saturating_sub(load(self.0, &g::TASK_PREV_SUM_EXEC))
    }

    /// CPUs that the task may run on; 0 where that is not known.
    #[inline(always)]
    pub(crate) fn n_cpus_allowed(self) -> u32 {
        if g::TASK_CPUS_ALLOWED.read() == ABSENT {
            return 0;
        }
        load(self.0, &g::TASK_CPUS_ALLOWED)
    }

    #[inline(always)]
    pub(crate) fn prio(self) -> i32 {
        load(self.0, &g::TASK_PRIO)
    }

    /// As `prio`, which fits.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "from -1 to 139")]
    pub(crate) fn short_prio(self) -> i16 {
        self.prio() as i16
    }

    /// The clock of the run queue of this task's CPU, as it was last updated.
    #[inline(always)]
    pub(crate) fn queue_clock(self) -> Option<u64> {
        if g::TASK_CFS_RQ.read() == ABSENT
            || g::CFS_RQ_RQ.read() == ABSENT
            || g::RQ_CLOCK.read() == ABSENT
        {
            return None;
        }
        Some(load(
            load(load(self.0, &g::TASK_CFS_RQ), &g::CFS_RQ_RQ),
            &g::RQ_CLOCK,
        ))
    }

    /// How long the tasks of this one's queue were out of quota so far, by the queue's clock: up to
    /// the last release, and since when they are now, 0 while they are not.
    #[inline(always)]
    pub(crate) fn quota_waits(self) -> Option<(u64, u64)> {
        if g::TASK_CFS_RQ.read() == ABSENT
            || g::CFS_RQ_THROTTLED_NS.read() == ABSENT
            || g::CFS_RQ_THROTTLED_SINCE.read() == ABSENT
        {
            return None;
        }
        let queue: *const u8 = load(self.0, &g::TASK_CFS_RQ);
        Some((
            load(queue, &g::CFS_RQ_THROTTLED_NS),
            load(queue, &g::CFS_RQ_THROTTLED_SINCE),
        ))
    }

    /// The kernel's count of the switches of this task's CPU, if it can be read.
    #[inline(always)]
    pub(crate) fn nr_switches(self) -> Option<u64> {
        if g::TASK_CFS_RQ.read() == ABSENT
            || g::CFS_RQ_RQ.read() == ABSENT
            || g::RQ_NR_SWITCHES.read() == ABSENT
        {
            return None;
        }
        Some(load(
            load(load(self.0, &g::TASK_CFS_RQ), &g::CFS_RQ_RQ),
            &g::RQ_NR_SWITCHES,
        ))
    }

    /// Whether CFS bandwidth keeps the task from running.
    #[inline(always)]
    pub(crate) fn is_throttled(self) -> bool {
        if g::TASK_THROTTLED.read() != ABSENT {
            return load::<u8>(self.0, &g::TASK_THROTTLED) != 0;
        }
        if g::TASK_CFS_RQ.read() != ABSENT && g::CFS_RQ_THROTTLE_COUNT.read() != ABSENT {
            return load::<u32>(load(self.0, &g::TASK_CFS_RQ), &g::CFS_RQ_THROTTLE_COUNT) != 0;
        }
        false
    }
}

/// Bits that ask the task at this address to give up its CPU, 0 where that cannot be read.
///
/// For the current task of another CPU, which is only known by its address.
#[inline(always)]
pub(crate) fn need_resched_at(task: u64) -> u64 {
    if g::CAN_PROBE_READ.read() == 0 || task == 0 {
        return 0;
    }
    let flags = (task + u64::from(g::TASK_THREAD_FLAGS.read())) as *const u64;
    // SAFETY: the helper checks the address.
    let flags = unsafe { bpf_probe_read_kernel(flags) };
    flags.unwrap_or(0) & g::NEED_RESCHED_MASK.read()
}

#[inline(always)]
const fn as_comm(words: [u64; 2]) -> [u8; 16] {
    // SAFETY: any bytes are a name.
    unsafe { core::mem::transmute(words) }
}
