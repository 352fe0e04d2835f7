//! The switch: the end of one task's stint, the end of another's wait, and the check that both are true.

use aya_ebpf::{
    helpers::bpf_ktime_get_ns, helpers::generated::bpf_get_smp_processor_id,
    macros::btf_tracepoint, programs::BtfTracePointContext,
};
use latency_common::{
    class::{WaitClass, still_runnable},
    cpu::CpuState,
    loss::Loss,
    record::TaskPhase,
    timeline::Timeline,
};

use crate::{
    cause::cause,
    counters::{book_kernel_wait, book_latency, book_unmeasured, book_wait, note_preemptor},
    globals as g, idle,
    interrupt::abandon,
    maps::{control, count_loss, cpu_state, timeline},
    rows::send_ended,
    segment, stack,
    state::{FRESH, HAS_SWITCH_BASE, MOVED, SELECTED, TaskState, WAS_SELECTED, create, lookup},
    task::{Task, is_dead},
    throttle,
    timeline::{begin_stint, book_stolen, mend_break},
    trace, waitlog,
    waker::book_wakeup,
};

/// A CPU goes from one task to the next. Runs under the runqueue lock, interrupts off.
#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn sched_switch(ctx: BtfTracePointContext) -> i32 {
    let (prev, next) = (Task::new(ctx.arg(1)), Task::new(ctx.arg(2)));
    // SAFETY: the helper has no precondition.
    let here = unsafe { bpf_get_smp_processor_id() };
    let Some((cpu, n_missed)) = follow_chain(prev, next, here) else {
        return 0;
    };
    let switch = Switch {
        prev,
        next,
        prev_tid: prev.tid(),
        next_tid: next.tid(),
        is_preempt: ctx.arg::<u8>(0) != 0,
        is_chained: n_missed == 0,
        // SAFETY: the helper has no precondition.
        now: unsafe { bpf_ktime_get_ns() },
    };
    let mut timeline = if g::ATTRIBUTE.read() == 0 {
        None
    } else {
        timeline(here)
    };
    if let Some(timeline) = timeline.as_deref_mut() {
        if timeline.depth != 0 {
            abandon(timeline);
        }
        if n_missed != 0 {
            mend_break(timeline, prev, n_missed, switch.now);
        }
        if stack::is_due(timeline, switch.now) {
            stack::take(&ctx, timeline, prev, switch.now);
        }
    }
    trace::leave(timeline.as_deref_mut());
    leave(&switch, cpu, timeline.as_deref_mut());
    enter(&switch, cpu, timeline.as_deref_mut());
    if let Some(timeline) = timeline {
        if switch.next_tid == 0 {
            // Whatever still counts as waiting here was lost sight of.
            timeline.n_waiting = 0;
            timeline.waiting_since_ns = 0;
        }
        begin_stint(timeline, next, switch.next_tid, switch.now);
    }
    idle::switch(switch.next_tid, switch.now);
    cpu.evidence = 0;
    cpu.fork_tid = 0;
    0
}

/// What a switch is.
struct Switch {
    prev: Task,
    next: Task,
    /// Each look at a field is some ten instructions: these are asked for often.
    prev_tid: u32,
    /// See `prev_tid`.
    next_tid: u32,
    /// It came from inside the kernel.
    is_preempt: bool,
    /// `prev` is the task last switched in here.
    is_chained: bool,
    now: u64,
}

#[inline(always)]
fn leave(switch: &Switch, cpu: &mut CpuState, timeline: Option<&mut Timeline>) {
    let prev = switch.prev;
    if switch.prev_tid == 0 {
        return;
    }
    let Some(state) = tracked(prev, switch.now) else {
        return;
    };
    if state.is(SELECTED) {
        switch_out(switch, state, cpu, timeline);
    } else {
        leave_unselected(prev, state, switch.now);
    }
}

/// The row of a task that was measured once is still owed.
#[inline(always)]
pub(crate) fn leave_unselected(prev: Task, state: &mut TaskState, now: u64) {
    if state.is(WAS_SELECTED) && prev.is_dead() {
        send_ended(prev, state, now);
    }
}

#[inline(always)]
fn enter(switch: &Switch, cpu: &mut CpuState, timeline: Option<&mut Timeline>) {
    if switch.next_tid != 0
        && let Some(state) = tracked(switch.next, switch.now)
        && state.is(SELECTED)
    {
        switch_in(switch, state, cpu, timeline);
    }
}

/// Counts the switch on this CPU and checks that `prev` is the task last switched in here; says how
/// many switches fired no event since.
#[inline(always)]
pub(crate) fn follow_chain(
    prev: Task,
    next: Task,
    here: u32,
) -> Option<(&'static mut CpuState, u64)> {
    let cpu = cpu_state(here)?;
    cpu.switches += 1;
    let mut n_missed = 0;
    if cpu.current != prev.address() {
        n_missed = note_break(prev, cpu);
    }
    cpu.current = next.address();
    Some((cpu, n_missed))
}

/// The chain of switches begins, or it broke: counts the switches that fired no event.
#[inline(always)]
fn note_break(prev: Task, cpu: &mut CpuState) -> u64 {
    let before = cpu.missed_switches;
    let nr_switches = prev.nr_switches();
    if cpu.current == 0 {
        cpu.base_nr_switches = nr_switches.unwrap_or(0).wrapping_sub(cpu.switches);
    } else if let Some(nr_switches) = nr_switches {
        cpu.missed_switches = nr_switches
            .wrapping_sub(cpu.base_nr_switches)
            .wrapping_sub(cpu.switches);
    } else {
        // At least one.
        cpu.missed_switches += 1;
    }
    // Of the first event, nothing before was seen.
    let n_missed = cpu.missed_switches.wrapping_sub(before);
    if n_missed == 0 { u64::MAX } else { n_missed }
}

/// The state of a task; one that the iterator could not see gets it here, where that is safe.
#[inline(always)]
pub(crate) fn tracked(task: Task, now: u64) -> Option<&'static mut TaskState> {
    let state = lookup(task);
    if state.is_some() || g::SELECT_ALL.read() == 0 || control().is_seeded == 0 {
        return state;
    }
    if g::SEED_AT_SWITCH.read() == 0 || task.is_dead() {
        count_loss(Loss::UntrackedSwitches);
        return None;
    }
    seed(task, now)
}

#[inline(always)]
fn seed(task: Task, now: u64) -> Option<&'static mut TaskState> {
    let Some(state) = create(task) else {
        count_loss(Loss::UntrackedTasks);
        return None;
    };
    state.begin(task, 0, now);
    Some(state)
}

#[inline(always)]
fn switch_out(
    switch: &Switch,
    state: &mut TaskState,
    cpu: &CpuState,
    timeline: Option<&mut Timeline>,
) {
    let &Switch {
        prev,
        next,
        is_preempt,
        now,
        ..
    } = switch;
    trace::switch_out(state);
    end_stint(switch, state, timeline.as_deref());
    book_kernel_wait(state, prev);
    let prev_state = prev.state();
    let is_runnable = still_runnable(is_preempt, prev_state);
    count_switch(prev, state, is_preempt, is_runnable);
    if is_runnable {
        let class = cause(prev, next, is_preempt, cpu);
        if matches!(class, WaitClass::Yield) {
            state.counters.yields += 1;
        }
        note_preemptor(state, next, class);
        state.class = class as u8;
        // Out of quota it cannot use an idle CPU.
        if matches!(class, WaitClass::Throttled) {
            idle::wait_ends(state, now);
        } else {
            idle::wait_begins(state, prev, now);
        }
        state.set_phase(TaskPhase::Queued, now);
        if let Some(timeline) = timeline {
            segment::begin_here(state, timeline, now);
            if matches!(class, WaitClass::Throttled) {
                throttle::begin(state, prev);
            }
        }
    } else {
        // The end of its wait may not have been seen.
        idle::wait_ends(state, now);
        state.set_phase(TaskPhase::Sleeping, now);
        if is_dead(prev_state) {
            send_ended(prev, state, now);
        }
    }
}

/// Books the time on the CPU in both accounts, where the switch-in was seen.
#[inline(always)]
fn end_stint(switch: &Switch, state: &mut TaskState, timeline: Option<&Timeline>) {
    let &Switch {
        prev,
        is_chained,
        now,
        ..
    } = switch;
    let sum_exec = prev.sum_exec();
    let kernel_ns = sum_exec.wrapping_sub(state.last_sum_exec);
    state.last_sum_exec = sum_exec;
    // The first switch here is in no chain; a task that ran when it was selected has run since.
    if (is_chained || state.is(FRESH))
        && state.is_in(TaskPhase::Running)
        && let Some(timeline) = timeline
    {
        book_stolen(state, timeline);
    }
    if state.is(FRESH) {
        // It ran when it was selected: this part of the stint has no counterpart in the kernel's account.
        let stint = if state.is_in(TaskPhase::Running) {
            elapsed(state.since_ns, now)
        } else {
            0
        };
        state.counters.on_cpu_ns += stint;
        state.counters.on_cpu_unaudited_ns += stint;
        state.class = WaitClass::Unmeasured as u8;
        state.flags &= !FRESH;
    } else if is_chained && state.is_in(TaskPhase::Running) {
        state.counters.on_cpu_ns += elapsed(state.since_ns, now);
        state.counters.kernel_on_cpu_ns += kernel_ns;
    } else {
        state.counters.unseen_on_cpu_ns += kernel_ns;
        book_unmeasured(state);
    }
}

/// Counts the switch as the kernel does, which has done so already.
#[inline(always)]
pub(crate) fn count_switch(prev: Task, state: &mut TaskState, is_preempt: bool, is_runnable: bool) {
    let (voluntary, involuntary) = (prev.nvcsw_low(), prev.nivcsw_low());
    let has_base = state.is(HAS_SWITCH_BASE);
    let mut is_voluntary = !is_runnable;
    // A pending signal cancels a sleep: the task stays runnable, and the kernel counts a voluntary switch.
    if is_runnable && !is_preempt && has_base && voluntary != state.last_nvcsw {
        is_voluntary = true;
        state.counters.cancelled_sleeps += 1;
    }
    if is_voluntary {
        state.counters.voluntary += 1;
    } else {
        state.counters.involuntary += 1;
    }
    if !has_base {
        // The kernel's account begins with this very switch.
        state.last_nvcsw = voluntary.wrapping_sub(is_voluntary.into());
        state.last_nivcsw = involuntary.wrapping_sub((!is_voluntary).into());
        state.flags |= HAS_SWITCH_BASE;
    }
    state.counters.kernel_voluntary += u64::from(voluntary.wrapping_sub(state.last_nvcsw));
    state.counters.kernel_involuntary += u64::from(involuntary.wrapping_sub(state.last_nivcsw));
    state.last_nvcsw = voluntary;
    state.last_nivcsw = involuntary;
}

#[inline(always)]
fn switch_in(
    switch: &Switch,
    state: &mut TaskState,
    cpu: &mut CpuState,
    mut timeline: Option<&mut Timeline>,
) {
    let &Switch { next, now, .. } = switch;
    if state.is_in(TaskPhase::Queued) {
        if state.is(FRESH) {
            state.flags &= !FRESH;
        }
        let wait_ns = elapsed(state.since_ns, now);
        book_wait(state, next, wait_ns);
        take_apart(switch, state, cpu, timeline.as_deref_mut());
        if state.class == WaitClass::Wakeup as u8 {
            let latency_ns = elapsed(state.waking_at_ns, now);
            book_latency(state, next, latency_ns);
            if timeline.is_some() {
                book_wakeup(state, wait_ns, latency_ns);
            }
        }
    } else if state.is(FRESH) {
        // Selected between its wakeup and now: the wait began before the window.
        state.class = WaitClass::OpenAtStart as u8;
        book_wait(state, next, elapsed(state.since_ns, now));
        take_apart(switch, state, cpu, timeline.as_deref_mut());
        state.flags &= !FRESH;
    } else {
        book_unmeasured(state);
    }
    idle::wait_ends(state, now);
    state.set_phase(TaskPhase::Running, now);
    if let Some(timeline) = timeline {
        segment::restart_here(state, timeline, now);
        trace::enter(state, timeline, switch.next_tid);
    }
}

/// What the wait that ends was made of.
#[inline(always)]
fn take_apart(
    switch: &Switch,
    state: &mut TaskState,
    cpu: &mut CpuState,
    timeline: Option<&mut Timeline>,
) {
    if let Some(timeline) = timeline {
        let &Switch {
            next,
            next_tid,
            now,
            ..
        } = switch;
        segment::end(state, next, next_tid, timeline, now);
        waitlog::record(state, next, cpu, timeline, now);
        trace::wait_ends(state, next, switch.prev_tid, now);
        state.flags &= !MOVED;
    }
}

/// Two CPUs' clocks may differ by nanoseconds around an update: never negative, and counted.
#[inline(always)]
fn elapsed(from: u64, to: u64) -> u64 {
    if from > to {
        count_loss(Loss::ClockBackwards);
        return 0;
    }
    to - from
}

/// `schedule()` returned. Without a switch, evidence collected before it is stale (from 6.16 on).
#[btf_tracepoint(function = "sched_exit_tp")]
pub(crate) fn sched_exit_tp(ctx: BtfTracePointContext) -> i32 {
    if ctx.arg::<u8>(0) != 0 {
        return 0;
    }
    // SAFETY: the helper has no precondition.
    if let Some(cpu) = cpu_state(unsafe { bpf_get_smp_processor_id() }) {
        cpu.evidence = 0;
    }
    0
}
