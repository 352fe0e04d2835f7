//! Interrupts: how long each ran, nested ones counted once, and what that took from whom.
//!
//! A CPU is in one context at a time: the innermost active interrupt, or a task. Each begin and end
//! adds the time since the last one to the context that was left, so that no time counts twice.

use aya_ebpf::{
    helpers::bpf_ktime_get_ns, helpers::generated::bpf_get_smp_processor_id,
    macros::btf_tracepoint, programs::BtfTracePointContext,
};
use latency_common::{
    interrupt::{InterruptKind, Source, Vector},
    loss::Loss,
    timeline::{ActiveInterrupt, N_RECENT_INTERRUPTS, RecentInterrupt, Timeline},
};

use crate::{
    maps::{SOURCES, count_loss, timeline},
    timeline::{active, present},
    trace,
};

/// An interrupt begins on this CPU.
#[inline(always)]
pub(crate) fn begin(source: Source) {
    // SAFETY: the helper has no precondition.
    let Some(timeline) = timeline(unsafe { bpf_get_smp_processor_id() }) else {
        return;
    };
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    change(timeline, |timeline| {
        leave_context(timeline, now);
        let depth = timeline.depth as usize;
        let Some(active) = timeline.active.get_mut(depth) else {
            count_loss(Loss::UnpairedInterrupts);
            return;
        };
        *active = ActiveInterrupt {
            since_ns: now,
            own_ns: 0,
            source,
            was_asked: trace::is_asked(timeline.traced_tid).into(),
        };
        timeline.depth += 1;
        if let Some(count) = timeline.counts.get_mut(source.category() as usize) {
            *count = count.wrapping_add(1);
        }
    });
    if let Some(counters) = SOURCES.get_ptr_mut(source.row()) {
        // SAFETY: a per-CPU value, written by this CPU only.
        unsafe { (*counters).count += 1 };
    }
}

/// The interrupt that began last on this CPU ends.
#[inline(always)]
pub(crate) fn end(source: Source) {
    // SAFETY: the helper has no precondition.
    let Some(timeline) = timeline(unsafe { bpf_get_smp_processor_id() }) else {
        return;
    };
    let Some(&active) = active(timeline) else {
        // It began before the first program was attached.
        return;
    };
    if active.source != source {
        count_loss(Loss::UnpairedInterrupts);
        abandon(timeline);
        return;
    }
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    let own_ns = active.own_ns + now.saturating_sub(timeline.context_since_ns);
    change(timeline, |timeline| {
        leave_context(timeline, now);
        timeline.depth = timeline.depth.wrapping_sub(1);
    });
    remember(
        timeline,
        RecentInterrupt {
            since_ns: active.since_ns,
            until_ns: now,
            own_ns,
            source,
            count: 1,
        },
    );
    trace::interrupt_ends(timeline.traced_tid, &active, now, own_ns);
    if let Some(counters) = SOURCES.get_ptr_mut(source.row()) {
        // SAFETY: a per-CPU value, written by this CPU only.
        let counters = unsafe { &mut *counters };
        counters.sum_ns += own_ns;
        counters.max_ns = counters.max_ns.max(own_ns);
    }
}

/// No interrupt is active any more: on RT a softirq is part of a task, and goes with it.
#[inline(never)]
pub(crate) fn abandon(timeline: &mut Timeline) {
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    change(timeline, |timeline| {
        leave_context(timeline, now);
        timeline.depth = 0;
    });
}

/// Lets other CPUs see that the totals are being written.
#[inline(always)]
fn change(timeline: &mut Timeline, write: impl FnOnce(&mut Timeline)) {
    let version = timeline.version;
    // SAFETY: the field is valid; volatile, as other CPUs read it.
    unsafe { (&raw mut timeline.version).write_volatile(version.wrapping_add(1)) };
    write(timeline);
    // SAFETY: as above.
    unsafe { (&raw mut timeline.version).write_volatile(version.wrapping_add(2)) };
}

/// Books the time since the last change of context.
#[inline(always)]
fn leave_context(timeline: &mut Timeline, now: u64) {
    let innermost = (timeline.depth as usize).wrapping_sub(1);
    if let Some(active) = timeline.active.get_mut(innermost) {
        let ns = now.saturating_sub(timeline.context_since_ns);
        active.own_ns += ns;
        let category = active.source.category() as usize;
        if let Some(total) = timeline.totals_ns.get_mut(category) {
            *total += ns;
        }
        timeline.interrupted_ns += ns;
    }
    timeline.context_since_ns = now;
}

/// Where a wait begins, at a switch or a wakeup, the next entry is a new one.
#[inline(always)]
fn remember(timeline: &mut Timeline, interrupt: RecentInterrupt) {
    let present_since_ns = present(timeline).map_or(0, |stint| stint.since_ns);
    let number = timeline.n_interrupts as usize;
    let newest = number.wrapping_sub(1) & (N_RECENT_INTERRUPTS - 1);
    if let Some(recent) = timeline.interrupts.get_mut(newest)
        && timeline.is_cut == 0
        && recent.source == interrupt.source
        && recent.since_ns >= present_since_ns
    {
        recent.until_ns = interrupt.until_ns;
        recent.own_ns += interrupt.own_ns;
        recent.count += 1;
        return;
    }
    if let Some(recent) = timeline
        .interrupts
        .get_mut(number & (N_RECENT_INTERRUPTS - 1))
    {
        *recent = interrupt;
    }
    timeline.n_interrupts = timeline.n_interrupts.wrapping_add(1);
    timeline.is_cut = 0;
}

/// A device's handler begins.
#[btf_tracepoint(function = "irq_handler_entry")]
pub(crate) fn irq_handler_entry(ctx: BtfTracePointContext) -> i32 {
    begin(Source::new(InterruptKind::HardIrq, ctx.arg::<u32>(0)));
    0
}

/// A device's handler ends.
#[btf_tracepoint(function = "irq_handler_exit")]
pub(crate) fn irq_handler_exit(ctx: BtfTracePointContext) -> i32 {
    end(Source::new(InterruptKind::HardIrq, ctx.arg::<u32>(0)));
    0
}

/// A softirq begins.
#[btf_tracepoint(function = "softirq_entry")]
pub(crate) fn softirq_entry(ctx: BtfTracePointContext) -> i32 {
    begin(Source::new(InterruptKind::Softirq, ctx.arg::<u32>(0)));
    0
}

/// A softirq ends.
#[btf_tracepoint(function = "softirq_exit")]
pub(crate) fn softirq_exit(ctx: BtfTracePointContext) -> i32 {
    end(Source::new(InterruptKind::Softirq, ctx.arg::<u32>(0)));
    0
}

macro_rules! vectors {
    ($($vector:ident: $entry:ident, $exit:ident;)+) => {$(
        /// The vector's handling begins.
        #[btf_tracepoint]
        pub(crate) fn $entry(_ctx: BtfTracePointContext) -> i32 {
            begin(Source::new(InterruptKind::Vector, Vector::$vector as u32));
            0
        }

        /// The vector's handling ends.
        #[btf_tracepoint]
        pub(crate) fn $exit(_ctx: BtfTracePointContext) -> i32 {
            end(Source::new(InterruptKind::Vector, Vector::$vector as u32));
            0
        }
    )+};
}

vectors! {
    LocalTimer: local_timer_entry, local_timer_exit;
    Reschedule: reschedule_entry, reschedule_exit;
    CallFunction: call_function_entry, call_function_exit;
    CallFunctionSingle: call_function_single_entry, call_function_single_exit;
    IrqWork: irq_work_entry, irq_work_exit;
}
