//! Events of traced tasks, one by one: each wait that ends, with the timer that woke the task, and each
//! interrupt while such a task has the CPU.
//!
//! Where nothing is traced, the verifier removes all of it.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use latency_common::{
    class::WaitClass,
    config::{ABSENT, TRACED_TARGET},
    loss::Loss,
    timeline::{ActiveInterrupt, Timeline},
    trace::{Firing, TraceInterrupt, TraceTag, TraceWait},
};

use crate::{
    globals as g,
    maps::{FIRINGS, TARGET_TIDS, TRACE_RECORDS, count_loss},
    rows::NO_WAKEUP,
    state::{TRACED, TaskState, lookup},
    task::{Task, load},
    waitlog::write_parts,
};

/// Whether user space wants this task traced.
#[inline(always)]
pub(crate) fn is_wanted(task: Task) -> bool {
    g::TRACE.read() != 0
        && TARGET_TIDS
            .get_ptr(task.tid())
            // SAFETY: the pointer comes from the map, which nobody writes any more.
            .is_some_and(|value| unsafe { *value } == TRACED_TARGET)
}

/// The firing that this CPU is in.
#[inline(always)]
fn firing() -> Option<&'static mut Firing> {
    // SAFETY: a per-CPU value, written by this CPU only.
    FIRINGS.get_ptr_mut(0).map(|firing| unsafe { &mut *firing })
}

/// A timer's callback begins.
#[inline(always)]
pub(crate) fn timer_fires(timer: *const u8) {
    if g::TRACE.read() == 0
        || g::HRTIMER_SOFT_EXPIRES.read() == ABSENT
        || g::HRTIMER_EXPIRES.read() == ABSENT
    {
        return;
    }
    if let Some(firing) = firing() {
        firing.programmed_ns = load(timer, &g::HRTIMER_SOFT_EXPIRES);
        firing.expires_ns = load(timer, &g::HRTIMER_EXPIRES);
        // SAFETY: the helper has no precondition.
        firing.fired_at_ns = unsafe { bpf_ktime_get_ns() };
    }
}

/// A timer's callback ended.
#[inline(always)]
pub(crate) fn timer_has_fired() {
    if g::TRACE.read() != 0
        && let Some(firing) = firing()
    {
        *firing = Firing::default();
    }
}

/// A task is about to be woken: a traced one remembers by which timer.
#[inline(always)]
pub(crate) fn waking(task: Task) {
    if g::TRACE.read() != 0
        && let Some(state) = lookup(task)
        && state.is(TRACED)
    {
        state.firing = firing().map_or(Firing::default(), |firing| *firing);
    }
}

/// Whatever task has the CPU leaves it.
#[inline(always)]
pub(crate) fn leave(timeline: Option<&mut Timeline>) {
    if g::TRACE.read() != 0
        && let Some(timeline) = timeline
    {
        timeline.traced_tid = 0;
    }
}

/// A measured task has the CPU from now on.
#[inline(always)]
pub(crate) fn enter(state: &TaskState, timeline: &mut Timeline, tid: u32) {
    if g::TRACE.read() != 0 && state.is(TRACED) {
        timeline.traced_tid = tid;
    }
}

/// A wait has ended, and its parts are known.
#[inline(always)]
pub(crate) fn wait_ends(state: &mut TaskState, task: Task, previous_tid: u32, now: u64) {
    if g::TRACE.read() != 0 && state.is(TRACED) && state.class != WaitClass::OpenAtStart as u8 {
        send_wait(state, task, previous_tid, now);
    }
}

#[inline(never)]
fn send_wait(state: &mut TaskState, task: Task, previous_tid: u32, now: u64) {
    let Some(mut entry) = TRACE_RECORDS.reserve::<TraceWait>(0) else {
        count_loss(Loss::TraceRecords);
        return;
    };
    // SAFETY: the reserved record is ours until it is submitted, and every field is written below.
    let record = unsafe { &mut *entry.as_mut_ptr() };
    record.tag = TraceTag::Wait as u32;
    record.tid = task.tid();
    record.cpu = task.cpu();
    record.class = state.class.into();
    record.previous_tid = previous_tid;
    record.reserved = 0;
    record.waking_at_ns = 0;
    record.firing = Firing::default();
    if state.class == WaitClass::Wakeup as u8 {
        record.waking_at_ns = state.waking_at_ns;
        record.firing = state.firing;
    }
    record.queued_at_ns = state.since_ns;
    record.running_at_ns = now;
    write_parts(&mut record.parts, state, now);
    entry.submit(NO_WAKEUP);
    // It is for one wait.
    state.firing = Firing::default();
}

/// Whether the CPU is asked to switch while this traced task has it; not looked at for others.
#[inline(always)]
pub(crate) fn is_asked(traced_tid: u32) -> bool {
    g::TRACE.read() != 0 && traced_tid != 0 && Task::current().need_resched() != 0
}

/// An interrupt ends.
#[inline(always)]
pub(crate) fn interrupt_ends(traced_tid: u32, interrupt: &ActiveInterrupt, now: u64, own_ns: u64) {
    if g::TRACE.read() != 0 && traced_tid != 0 {
        send_interrupt(traced_tid, interrupt, now, own_ns);
    }
}

#[inline(never)]
fn send_interrupt(tid: u32, interrupt: &ActiveInterrupt, now: u64, own_ns: u64) {
    let Some(mut entry) = TRACE_RECORDS.reserve::<TraceInterrupt>(0) else {
        count_loss(Loss::TraceRecords);
        return;
    };
    let current = Task::current();
    let is_newly_asked = interrupt.was_asked == 0 && current.need_resched() != 0;
    entry.write(TraceInterrupt {
        tag: TraceTag::Interrupt as u32,
        tid,
        cpu: current.cpu(),
        source: interrupt.source,
        asked_for_switch: is_newly_asked.into(),
        reserved: 0,
        since_ns: interrupt.since_ns,
        until_ns: now,
        own_ns,
    });
    entry.submit(NO_WAKEUP);
}
