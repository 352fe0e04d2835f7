//! The counters of ended tasks whose record found the ring full: a total per CPU, without names.

use latency_common::{
    attribution::{Attribution, N_INTERRUPTS, N_WAKERS, WakePath, WakeupCounters},
    class::N_CLASSES,
    counters::{N_PREEMPTORS, TaskCounters, WaitCounters},
    interrupt::{N_CATEGORIES, Source},
};

use crate::{given::given, globals as g, maps::UNSENT};

/// Adds the counters of a task to the total.
///
/// VERIFIER: exported, so that it is verified once.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn keep_unsent(counters: *const TaskCounters) -> u32 {
    let (Some(total), Some(counters)) = (UNSENT.get_ptr_mut(0), given(counters)) else {
        return 0;
    };
    // SAFETY: a per-CPU value, written under this CPU's runqueue lock only.
    let total = unsafe { &mut *total };
    for index in 0..N_CLASSES {
        if let (Some(to), Some(from)) = (total.classes.get_mut(index), counters.classes.get(index))
        {
            merge(to, from);
        }
    }
    merge(&mut total.latency, &counters.latency);
    total.voluntary += counters.voluntary;
    total.involuntary += counters.involuntary;
    total.yields += counters.yields;
    total.cancelled_sleeps += counters.cancelled_sleeps;
    total.kernel_voluntary += counters.kernel_voluntary;
    total.kernel_involuntary += counters.kernel_involuntary;
    total.on_cpu_ns += counters.on_cpu_ns;
    total.on_cpu_unaudited_ns += counters.on_cpu_unaudited_ns;
    total.kernel_on_cpu_ns += counters.kernel_on_cpu_ns;
    total.migrations += counters.migrations;
    total.wakeups_not_asleep += counters.wakeups_not_asleep;
    total.unseen_on_cpu_ns += counters.unseen_on_cpu_ns;
    // Names do not merge: all go to the last row.
    for row in &counters.preemptors {
        if let Some(others) = total.preemptors.get_mut(N_PREEMPTORS - 1) {
            others.count += row.count;
            others.sum_ns += row.sum_ns;
        }
    }
    if g::ATTRIBUTE.read() != 0 {
        keep_attribution(&mut total.attribution, &counters.attribution);
    }
    0
}

#[inline(always)]
fn keep_attribution(total: &mut Attribution, from: &Attribution) {
    for (to, part) in total.parts.iter_mut().zip(&from.parts) {
        *to += part;
    }
    // What was sent is kept with a row, which this task has lost.
    total.dropped_culprits_ns += from.dropped_culprits_ns + from.sent_culprits_ns;
    for row in &from.culprits {
        total.dropped_culprits_ns += row.sum_ns;
    }
    for category in 0..N_CATEGORIES {
        if let (Some(ns), Some(count), Some(from_ns), Some(from_count)) = (
            total.stolen.ns.get_mut(category),
            total.stolen.counts.get_mut(category),
            from.stolen.ns.get(category),
            from.stolen.counts.get(category),
        ) {
            *ns += from_ns;
            *count += from_count;
        }
    }
    if let Some(others) = total.interrupts.get_mut(N_INTERRUPTS - 1) {
        others.source = Source::SEVERAL;
        for row in &from.interrupts {
            others.count += row.count;
            others.sum_ns += row.sum_ns;
        }
    }
    if let Some(others) = total.wakers.get_mut(N_WAKERS - 1) {
        others.source = Source::SEVERAL;
        for row in &from.wakers {
            others.count += row.count;
            others.latency_sum_ns += row.latency_sum_ns;
        }
    }
    keep_wake_path(&mut total.wake_path, &from.wake_path);
}

#[inline(always)]
fn keep_wake_path(total: &mut WakePath, from: &WakePath) {
    merge(&mut total.to_queued, &from.to_queued);
    for (to, from) in total.placements.iter_mut().zip(&from.placements) {
        merge_wakeups(to, from);
    }
    for (to, from) in total.sampled.iter_mut().zip(&from.sampled) {
        merge_wakeups(to, from);
    }
    total.moved += from.moved;
}

#[inline(always)]
fn merge(to: &mut WaitCounters, from: &WaitCounters) {
    if from.count != 0 && (to.count == 0 || from.min_ns < to.min_ns) {
        to.min_ns = from.min_ns;
    }
    to.max_ns = to.max_ns.max(from.max_ns);
    to.count += from.count;
    to.sum_ns += from.sum_ns;
}

#[inline(always)]
fn merge_wakeups(to: &mut WakeupCounters, from: &WakeupCounters) {
    to.count += from.count;
    to.same_cpu += from.same_cpu;
    to.latency_sum_ns += from.latency_sum_ns;
    to.latency_max_ns = to.latency_max_ns.max(from.latency_max_ns);
}
