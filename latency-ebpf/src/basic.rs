//! The cheapest recording: one program, no clock reading, the kernel's own account of each wait.
//!
//! What the kernel added to a task's run delay between two of its switch-outs is the wait before the
//! stint that ends. That gives kinds and distributions, but no second account to audit it with, and it
//! shares the kernel's blind spot: the wait of a wakeup that preempts at once reads as 0.

use aya_ebpf::{
    helpers::{bpf_ktime_get_ns, generated::bpf_get_smp_processor_id},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use latency_common::{
    class::{WaitClass, still_runnable},
    record::TaskPhase,
};

use crate::{
    counters::{book_kernel_wait, book_wait},
    rows::send_ended,
    sched::{count_switch, follow_chain, leave_unselected, tracked},
    state::{FRESH, SELECTED, TaskState},
    task::Task,
};

/// A CPU goes from one task to the next. Runs under the runqueue lock, interrupts off.
#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn basic_switch(ctx: BtfTracePointContext) -> i32 {
    let prev = Task::new(ctx.arg(1));
    // SAFETY: the helper has no precondition.
    let here = unsafe { bpf_get_smp_processor_id() };
    if follow_chain(prev, Task::new(ctx.arg(2)), here).is_some()
        && !prev.is_idle()
        && let Some(state) = tracked(prev, 0)
    {
        if state.is(SELECTED) {
            switch_out(prev, state, ctx.arg::<u8>(0) != 0);
        } else {
            leave_unselected(prev, state, 0);
        }
    }
    0
}

/// Books the wait and the stint that a switch-out ends.
#[inline(always)]
fn switch_out(prev: Task, state: &mut TaskState, is_preempt: bool) {
    let waited_ns = prev.run_delay().wrapping_sub(state.last_run_delay);
    // A task that ran when it was selected had waited before; of one that waited then, the kernel
    // does not say how much of the wait came after.
    let began_before = state.class == WaitClass::OpenAtStart as u8;
    let ran_before = state.is(FRESH) && state.is_in(TaskPhase::Running);
    if !began_before && !ran_before {
        book_wait(state, prev, waited_ns);
    }
    book_kernel_wait(state, prev);
    let sum_exec = prev.sum_exec();
    let stint = sum_exec.wrapping_sub(state.last_sum_exec);
    state.counters.on_cpu_ns += stint;
    state.counters.on_cpu_unaudited_ns += stint;
    state.last_sum_exec = sum_exec;
    let is_runnable = still_runnable(is_preempt, prev.state());
    count_switch(prev, state, is_preempt, is_runnable);
    state.flags &= !FRESH;
    // Whatever goes on now is booked when it has ended.
    state.phase = TaskPhase::Unknown as u8;
    state.class = if is_runnable {
        WaitClass::Unknown
    } else {
        WaitClass::Wakeup
    } as u8;
    if prev.is_dead() {
        // SAFETY: the helper has no precondition.
        send_ended(prev, state, unsafe { bpf_ktime_get_ns() });
    }
}
