//! Wakeups: where a wait begins, and evidence that one asks for another task's CPU.

use aya_ebpf::{
    helpers::bpf_ktime_get_ns, helpers::generated::bpf_get_smp_processor_id, macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use latency_common::{class::WaitClass, cpu::CpuState, record::TaskPhase};

use crate::{
    globals as g,
    maps::cpu_state,
    state::{FRESH, SELECTED, lookup},
    task::{Task, need_resched_at},
};

/// A wakeup begins, on the waker's CPU, before a CPU is chosen.
///
/// It may come before the switch-out it ends, so the time is stored always and judged at `sched_wakeup`.
#[btf_tracepoint(function = "sched_waking")]
pub(crate) fn sched_waking(ctx: BtfTracePointContext) -> i32 {
    if g::is_empty_run() {
        return 0;
    }
    let task = Task::new(ctx.arg(0));
    if let Some(state) = lookup(&task)
        && state.is(SELECTED)
    {
        // SAFETY: the helper has no precondition.
        state.waking_at_ns = unsafe { bpf_ktime_get_ns() };
    }
    // SAFETY: the helper has no precondition.
    if let Some(cpu) = cpu_state(unsafe { bpf_get_smp_processor_id() }) {
        cpu.waking_tid = task.tid();
        cpu.flags_at_waking = Task::current().need_resched();
        if cpu.flags_at_waking == 0 {
            // Nothing is asked of the current task, so older evidence is stale.
            cpu.evidence = 0;
        }
    }
    0
}

/// A task was queued, and the kernel has decided whether that preempts.
#[btf_tracepoint(function = "sched_wakeup")]
pub(crate) fn sched_wakeup(ctx: BtfTracePointContext) -> i32 {
    if g::is_empty_run() {
        return 0;
    }
    let task = Task::new(ctx.arg(0));
    begin_wait(&task, WaitClass::Wakeup);
    note_preemption(&task);
    0
}

/// A new task was queued for the first time; the kernel's preemption check follows.
#[btf_tracepoint(function = "sched_wakeup_new")]
pub(crate) fn sched_wakeup_new(ctx: BtfTracePointContext) -> i32 {
    if g::is_empty_run() {
        return 0;
    }
    let task = Task::new(ctx.arg(0));
    begin_wait(&task, WaitClass::NewTask);
    if let Some(cpu) = cpu_state(task.cpu()) {
        cpu.fork_tid = task.tid();
    }
    0
}

/// Starts the wait of a task that slept; a wakeup of any other is counted and starts nothing.
#[inline(always)]
fn begin_wait(task: &Task, class: WaitClass) {
    let Some(state) = lookup(task) else {
        return;
    };
    if !state.is(SELECTED) {
        return;
    }
    if !state.is_in(TaskPhase::Sleeping) {
        state.counters.wakeups_not_asleep += 1;
        return;
    }
    // A waking may be seen before the switch-out that it undoes; asleep it is only from that on.
    state.waking_at_ns = state.waking_at_ns.max(state.since_ns);
    // SAFETY: the helper has no precondition.
    state.set_phase(TaskPhase::Queued, unsafe { bpf_ktime_get_ns() });
    state.class = class as u32;
    state.preemptor_row = 0;
    state.flags &= !FRESH;
}

/// Notes that the wakeup asked for the CPU of the task that runs where the wakee was queued.
#[inline(always)]
fn note_preemption(wakee: &Task) {
    let target = wakee.cpu();
    // SAFETY: the helper has no precondition.
    let here = unsafe { bpf_get_smp_processor_id() };
    let Some(cpu) = cpu_state(target) else {
        return;
    };
    let flags = if target == here {
        Task::current().need_resched()
    } else {
        need_resched_at(cpu.current)
    };
    if flags != 0 && (cpu.evidence == 0 || was_clear_before(cpu, wakee, target == here)) {
        cpu.evidence = WaitClass::WakeupPreemption as u32;
        cpu.evidence_tid = wakee.tid();
    }
}

/// Whether `sched_waking` of this very wakeup saw the flags clear.
#[inline(always)]
fn was_clear_before(cpu: &CpuState, wakee: &Task, is_here: bool) -> bool {
    is_here && cpu.waking_tid == wakee.tid() && cpu.flags_at_waking == 0
}
