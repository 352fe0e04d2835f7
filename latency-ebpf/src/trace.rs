//! Events of traced tasks, one by one: each wait that ends, with the timer that woke the task, and each
//! interrupt while such a task has the CPU.
//!
//! Where nothing is traced, the verifier removes all of it.

use aya_ebpf::helpers::{bpf_ktime_get_ns, generated::bpf_get_smp_processor_id};
use latency_common::{
    class::WaitClass,
    config::{ABSENT, TRACED_TARGET},
    loss::Loss,
    timeline::{ActiveInterrupt, Timeline},
    trace::{Firing, TraceInterrupt, TraceTag, TraceWait},
};

use crate::{
    globals as g,
    maps::{TARGET_TIDS, TRACE_RECORDS, count_loss, timeline},
    ring::NO_WAKEUP,
    state::{TRACED, TaskState},
    task::{Task, load},
    waitlog::write_parts,
    words::copy,
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

/// A record of a wait, in words.
const TRACE_WAIT_WORDS: usize = size_of::<TraceWait>() / size_of::<u64>();

/// The firing that this CPU is in: on a line that its interrupts have just used.
#[inline(always)]
fn firing() -> Option<&'static mut Firing> {
    // SAFETY: the helper has no precondition.
    timeline(unsafe { bpf_get_smp_processor_id() }).map(|timeline| &mut timeline.firing)
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
        firing.fired_at_ns = 0;
    }
}

/// A task is woken here: a traced one remembers by which timer.
#[inline(always)]
pub(crate) fn woken(state: &mut TaskState) {
    if g::TRACE.read() != 0 && state.is(TRACED) {
        state.firing.fired_at_ns = 0;
        if let Some(firing) = firing() {
            state.firing.programmed_ns = firing.programmed_ns;
            state.firing.expires_ns = firing.expires_ns;
            state.firing.fired_at_ns = firing.fired_at_ns;
        }
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

/// A wait has ended, and its parts are known. The task keeps it until it leaves the CPU: a record of the
/// ring is far away in memory, and would make the task later that is being measured.
#[inline(always)]
pub(crate) fn wait_ends(state: &mut TaskState, task: Task, previous_tid: u32, now: u64) {
    if g::TRACE.read() != 0 && state.is(TRACED) && state.class != WaitClass::OpenAtStart as u8 {
        // Where its switch-out was not seen, the last one is still there.
        send_wait(state);
        keep_wait(state, task, previous_tid, now);
    }
}

#[inline(never)]
fn keep_wait(state: &mut TaskState, task: Task, previous_tid: u32, now: u64) -> u32 {
    let is_woken = state.class == WaitClass::Wakeup as u8;
    let firing = &state.firing;
    let has_fired = is_woken && firing.fired_at_ns != 0;
    let wait = &mut state.traced_wait;
    wait.tag = TraceTag::Wait as u32;
    wait.tid = task.tid();
    wait.cpu = task.cpu();
    wait.class = state.class.into();
    wait.previous_tid = previous_tid;
    wait.reserved = 0;
    wait.waking_at_ns = if is_woken { state.waking_at_ns } else { 0 };
    wait.queued_at_ns = state.since_ns;
    wait.running_at_ns = now;
    wait.firing.programmed_ns = firing.programmed_ns;
    wait.firing.expires_ns = firing.expires_ns;
    wait.firing.fired_at_ns = if has_fired { firing.fired_at_ns } else { 0 };
    // It is for one wait.
    state.firing.fired_at_ns = 0;
    let ns = now.saturating_sub(state.since_ns);
    write_parts(&mut wait.parts, &state.parts, state.only_part, ns);
    0
}

/// A traced task leaves the CPU.
#[inline(always)]
pub(crate) fn switch_out(state: &mut TaskState) {
    if g::TRACE.read() != 0 && state.is(TRACED) {
        send_wait(state);
    }
}

#[inline(never)]
fn send_wait(state: &mut TaskState) -> u32 {
    if state.traced_wait.tag == 0 {
        return 0;
    }
    if let Some(mut entry) = TRACE_RECORDS.reserve::<[u64; TRACE_WAIT_WORDS]>(0) {
        let words = (&raw const state.traced_wait).cast::<[u64; TRACE_WAIT_WORDS]>();
        // SAFETY: of this size, without padding, and at a multiple of eight bytes.
        let words = unsafe { &*words };
        // SAFETY: the reserved record is ours until it is submitted, and all of it is written.
        copy(unsafe { &mut *entry.as_mut_ptr() }, words);
        entry.submit(NO_WAKEUP);
    } else {
        count_loss(Loss::TraceRecords);
    }
    state.traced_wait.tag = 0;
    0
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
