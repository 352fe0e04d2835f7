//! The tick and the slice timer: whether their handling asked for a reschedule.
//!
//! Both are timer callbacks, known by their addresses. What the flags gain between entry and exit is
//! theirs, unless a wakeup inside the callback (usual on RT) asked first.

use aya_ebpf::{
    helpers::generated::bpf_get_smp_processor_id, macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use latency_common::{
    class::WaitClass,
    interrupt::{InterruptKind, Source},
};

use crate::{
    globals as g, interrupt,
    maps::{cpu_state, timeline},
    stack,
    task::{Task, load},
    timeline::split_stint,
    trace,
};

/// A timer's callback begins.
#[btf_tracepoint(function = "hrtimer_expire_entry")]
pub(crate) fn hrtimer_expire_entry(ctx: BtfTracePointContext) -> i32 {
    let timer: *const u8 = ctx.arg(0);
    trace::timer_fires(timer);
    let callback: u64 = load(timer, &g::HRTIMER_FUNCTION);
    let class = if callback == g::TICK_CALLBACK.read() {
        WaitClass::Tick
    } else if callback == g::HRTICK_CALLBACK.read() {
        WaitClass::Hrtick
    } else {
        return 0;
    };
    // SAFETY: the helper has no precondition.
    let here = unsafe { bpf_get_smp_processor_id() };
    let Some(cpu) = cpu_state(here) else {
        return 0;
    };
    match class {
        WaitClass::Tick => cpu.ticks += 1,
        _ => cpu.hrticks += 1,
    }
    cpu.timer = timer as u64;
    cpu.timer_class = class as u32;
    if g::ATTRIBUTE.read() != 0 {
        interrupt::begin(tick_source(cpu.timer_class));
        look_at_current(&ctx, here);
    }
    cpu.flags_at_timer = Task::current().need_resched();
    if cpu.flags_at_timer == 0 {
        // Nothing is asked of the current task, so older evidence is stale.
        cpu.evidence = 0;
    }
    0
}

/// Where somebody is overdue, keeps the stack of the task that has the CPU. What it does from now on
/// is another stint.
#[inline(always)]
fn look_at_current(ctx: &BtfTracePointContext, here: u32) {
    let Some(timeline) = timeline(here) else {
        return;
    };
    // The tick has just begun: the totals of interrupts are those of that moment.
    let now = timeline.context_since_ns;
    let current = Task::current();
    if stack::is_due(timeline, now) && stack::take(ctx, timeline, current, now) != 0 {
        split_stint(timeline, now);
    }
}

#[inline(always)]
fn tick_source(class: u32) -> Source {
    let number = u32::from(class == WaitClass::Hrtick as u32);
    Source::new(InterruptKind::Tick, number)
}

/// A timer's callback ended.
#[btf_tracepoint(function = "hrtimer_expire_exit")]
pub(crate) fn hrtimer_expire_exit(ctx: BtfTracePointContext) -> i32 {
    let timer: *const u8 = ctx.arg(0);
    trace::timer_has_fired();
    // SAFETY: the helper has no precondition.
    let Some(cpu) = cpu_state(unsafe { bpf_get_smp_processor_id() }) else {
        return 0;
    };
    if cpu.timer != timer as u64 {
        return 0;
    }
    cpu.timer = 0;
    if g::ATTRIBUTE.read() != 0 {
        interrupt::end(tick_source(cpu.timer_class));
    }
    let new = Task::current().need_resched() & !cpu.flags_at_timer;
    if new != 0 {
        // Evidence that is there now came from a wakeup inside the window, or from the request that
        // this tick only made urgent: both asked first.
        if cpu.evidence == 0 {
            cpu.evidence = cpu.timer_class;
        }
    }
    0
}
