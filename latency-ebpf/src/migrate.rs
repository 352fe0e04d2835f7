//! Moves of tasks between CPUs.

use aya_ebpf::{
    helpers::{bpf_ktime_get_ns, generated::bpf_get_smp_processor_id},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use latency_common::record::TaskPhase;

use crate::{
    globals as g,
    maps::cpu_state,
    segment,
    state::{SELECTED, lookup},
    task::Task,
    waker::note_waker,
};

/// A task is moved to another CPU, queued or asleep (delayed dequeue): this starts no wait.
#[btf_tracepoint(function = "sched_migrate_task")]
pub(crate) fn sched_migrate_task(ctx: BtfTracePointContext) -> i32 {
    let task = Task::new(ctx.arg(0));
    if let Some(state) = lookup(task)
        && state.is(SELECTED)
    {
        state.counters.migrations += 1;
        if g::ATTRIBUTE.read() != 0 && state.is_in(TaskPhase::Queued) {
            // SAFETY: the helper has no precondition.
            segment::cross(state, task, ctx.arg::<u32>(1), unsafe {
                bpf_ktime_get_ns()
            });
        }
        // SAFETY: the helper has no precondition.
        let here = unsafe { bpf_get_smp_processor_id() };
        // A wakeup that moves the task may be completed by another CPU, out of reach of this one's time.
        if let Some(cpu) = cpu_state(here)
            && cpu.waking_tid == task.tid()
        {
            state.waking_at_ns = state.waking_at_ns.max(cpu.waking_at_ns);
            if g::ATTRIBUTE.read() != 0 && state.is_in(TaskPhase::Sleeping) {
                note_waker(state, cpu, here);
                state.counters.attribution.wake_path.moved += 1;
            }
        }
    }
    0
}
