//! Wakeups: where a wait begins, and evidence that one asks for another task's CPU.

use aya_ebpf::{
    helpers::bpf_ktime_get_ns, helpers::generated::bpf_get_smp_processor_id,
    macros::btf_tracepoint, programs::BtfTracePointContext,
};
use latency_common::{class::WaitClass, cpu::CpuState, record::TaskPhase};

use crate::{
    globals as g, idle,
    maps::{cpu_state, timeline},
    segment,
    stack::sample_sync,
    state::{FRESH, SELECTED, TaskState, lookup},
    task::{Task, need_resched_at},
    trace,
    waker::{active_interrupt, note_placement, note_unknown_waker, note_waker},
};

/// A wakeup begins, on the waker's CPU, before a CPU is chosen.
///
/// It may come before the switch-out it ends, so the time is kept always and judged at `sched_wakeup`.
/// A task that last ran here is queued here at once, or announces its move (`sched_migrate_task`), so
/// its time is handed over by the CPU and spares a look-up. Any other may be queued by another CPU
/// later: its time goes with the task.
#[btf_tracepoint(function = "sched_waking")]
pub(crate) fn sched_waking(ctx: BtfTracePointContext) -> i32 {
    let task = Task::new(ctx.arg(0));
    // SAFETY: the helper has no precondition.
    let here = unsafe { bpf_get_smp_processor_id() };
    let Some(cpu) = cpu_state(here) else {
        return 0;
    };
    // SAFETY: the helper has no precondition.
    cpu.waking_at_ns = unsafe { bpf_ktime_get_ns() };
    cpu.waking_tid = task.tid();
    cpu.was_clear_at_waking = u32::from(Task::current().need_resched() == 0);
    if cpu.was_clear_at_waking != 0 {
        // Nothing is asked of the current task, so older evidence is stale.
        cpu.evidence = 0;
    }
    if g::ATTRIBUTE.read() != 0 {
        cpu.waking_source = active_interrupt(here).0;
        cpu.waking_sync = sample_sync(&ctx, cpu) as u32;
    }
    if task.cpu() != here {
        keep_waking(task, cpu, here);
    }
    0
}

/// Lets the task carry the time of its waking, and who woke it.
#[inline(always)]
fn keep_waking(task: Task, cpu: &mut CpuState, here: u32) {
    if let Some(state) = lookup(task)
        && state.is(SELECTED)
    {
        state.waking_at_ns = cpu.waking_at_ns;
        trace::woken(state);
        if g::ATTRIBUTE.read() != 0 {
            note_waker(state, cpu, here);
        }
    }
}

/// A task was queued, and the kernel has decided whether that preempts.
#[btf_tracepoint(function = "sched_wakeup")]
pub(crate) fn sched_wakeup(ctx: BtfTracePointContext) -> i32 {
    let task = Task::new(ctx.arg(0));
    // SAFETY: the helper has no precondition.
    let here = unsafe { bpf_get_smp_processor_id() };
    let Some(cpu) = cpu_state(here) else {
        return 0;
    };
    let tid = task.tid();
    let is_woken_here = cpu.waking_tid == tid;
    let target = task.cpu();
    if let Some(state) = begin_wait(
        task,
        target,
        WaitClass::Wakeup,
        if is_woken_here { cpu.waking_at_ns } else { 0 },
    ) && g::ATTRIBUTE.read() != 0
    {
        if is_woken_here {
            trace::woken(state);
            note_waker(state, cpu, here);
        } else if state.waker_row == 0 {
            // An interrupt woke another task between this one's waking and now.
            note_unknown_waker(state, here);
        }
        note_placement(state, target);
    }
    if target == here {
        let flags = Task::current().need_resched();
        note_preemption(
            cpu,
            tid,
            flags,
            is_woken_here && cpu.was_clear_at_waking != 0,
        );
    } else if let Some(cpu) = cpu_state(target) {
        note_preemption(cpu, tid, need_resched_at(cpu.current), false);
    }
    0
}

/// A new task was queued for the first time; the kernel's preemption check follows.
#[btf_tracepoint(function = "sched_wakeup_new")]
pub(crate) fn sched_wakeup_new(ctx: BtfTracePointContext) -> i32 {
    let task = Task::new(ctx.arg(0));
    let target = task.cpu();
    let _ = begin_wait(task, target, WaitClass::NewTask, 0);
    if let Some(cpu) = cpu_state(target) {
        cpu.fork_tid = task.tid();
    }
    0
}

/// Starts the wait of a task that slept; a wakeup of any other is counted and starts nothing.
#[inline(always)]
fn begin_wait(
    task: Task,
    target: u32,
    class: WaitClass,
    waking_at_ns: u64,
) -> Option<&'static mut TaskState> {
    let state = lookup(task)?;
    if !state.is(SELECTED) {
        return None;
    }
    if !state.is_in(TaskPhase::Sleeping) {
        state.counters.wakeups_not_asleep += 1;
        return None;
    }
    // A waking may be seen before the switch-out that it undoes; asleep it is only from that on.
    state.waking_at_ns = state.waking_at_ns.max(waking_at_ns).max(state.since_ns);
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    idle::wait_begins(state, task, now);
    state.set_phase(TaskPhase::Queued, now);
    if g::ATTRIBUTE.read() != 0
        && let Some(timeline) = timeline(target)
    {
        segment::begin(state, timeline, now);
    }
    state.class = class as u8;
    state.preemptor_row = 0;
    state.flags &= !FRESH;
    Some(state)
}

/// Notes that the wakeup asked for the CPU of the task that runs where the wakee was queued.
///
/// `was_clear` says that nothing was asked of that task when this very wakeup began.
#[inline(always)]
fn note_preemption(cpu: &mut CpuState, wakee_tid: u32, flags: u64, was_clear: bool) {
    if flags != 0 && (cpu.evidence == 0 || was_clear) {
        cpu.evidence = WaitClass::WakeupPreemption as u32;
        cpu.evidence_tid = wakee_tid;
    }
}
