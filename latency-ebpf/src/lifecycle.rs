//! New tasks, and the begin of their end. Ended ones are sent at their last switch-out (`sched.rs`).

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use latency_common::{class::WaitClass, loss::Loss, record::TaskPhase};

use crate::{
    maps::{EXITS, control, count_loss},
    select::is_match,
    state::{FOLLOWED, SELECTED, WAS_SELECTED, create, lookup},
    task::Task,
};

/// Flag of `clone` that makes a thread, not a process.
const CLONE_THREAD: u64 = 0x0001_0000;

/// A task was made and has not run yet. `sched_process_fork` would miss threads of `io_uring` and vhost.
#[btf_tracepoint(function = "task_newtask")]
pub(crate) fn task_newtask(ctx: BtfTracePointContext) -> i32 {
    let task = Task::new(ctx.arg(0));
    let is_thread = ctx.arg::<u64>(1) & CLONE_THREAD != 0;
    let parent = Task::current();
    let is_followed = lookup(parent).is_some_and(|state| state.is(FOLLOWED))
        || (!is_thread && is_spawner(parent));
    if !is_followed && !is_match(task, &task.comm()) {
        return 0;
    }
    let Some(state) = create(task) else {
        count_loss(Loss::UntrackedTasks);
        return 0;
    };
    // All of the kernel's figures begin at 0, as ours do, so nothing is cut off.
    state.flags = SELECTED | if is_followed { FOLLOWED } else { 0 };
    state.phase = TaskPhase::Sleeping as u8;
    state.class = WaitClass::NewTask as u8;
    0
}

/// A task begins to end. Before its last switch-out it may be gone from all lists, so that it is in
/// neither the iterator nor the ring: user space waits for it.
#[btf_tracepoint(function = "sched_process_exit")]
pub(crate) fn sched_process_exit(ctx: BtfTracePointContext) -> i32 {
    if let Some(state) = lookup(Task::new(ctx.arg(0)))
        && state.is(SELECTED | WAS_SELECTED)
        && let Some(exits) = EXITS.get_ptr_mut(0)
    {
        state.is_ending = 1;
        // SAFETY: a per-CPU value. One that is lost to a preemption right here is not waited for.
        unsafe { (*exits).begun += 1 };
    }
    0
}

/// Whether user space asked to follow what this thread spawns.
#[inline(always)]
fn is_spawner(parent: Task) -> bool {
    let spawner_tid = control().spawner_tid;
    spawner_tid != 0 && spawner_tid == parent.tid()
}
