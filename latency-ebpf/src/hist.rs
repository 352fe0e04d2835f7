//! Histograms: a slot of the pool per task and kind, taken at the first sample.
//!
//! A slot is written only by the CPU that switches its task in, so it needs no atomics.
//! User space takes slots back after the task has ended.

use latency_common::{
    counters::{HIST_EXHAUSTED, HIST_NONE},
    hist::{HistKind, HistSlot, bucket_of},
    loss::Loss,
};

use crate::{
    maps::{FREE_HISTS, HISTS, SHARED_HISTS, count_loss},
    state::TaskState,
    task::Task,
};

/// Adds a sample to the task's histogram of this kind.
#[inline(always)]
pub(crate) fn add_sample(state: &mut TaskState, task: Task, kind: HistKind, ns: u64) {
    let Some(handle) = state.hist.get_mut(kind as usize) else {
        return;
    };
    if *handle == HIST_NONE {
        *handle = take_slot(task, kind);
    }
    let slot = if *handle == HIST_EXHAUSTED {
        SHARED_HISTS.get_ptr_mut(kind as u32)
    } else {
        HISTS.get_ptr_mut(handle.wrapping_sub(1))
    };
    if let Some(slot) = slot {
        // SAFETY: the slot belongs to this task, or is this CPU's own.
        add_to(unsafe { &mut *slot }, ns);
    }
}

#[inline(always)]
fn add_to(slot: &mut HistSlot, ns: u64) {
    match bucket_of(ns).and_then(|bucket| slot.buckets.get_mut(bucket)) {
        Some(count) => *count += 1,
        None => slot.overflow += 1,
    }
}

#[inline(never)]
fn take_slot(task: Task, kind: HistKind) -> u32 {
    let Ok(Some(index)) = FREE_HISTS.pop() else {
        count_loss(Loss::TaskHistograms);
        return HIST_EXHAUSTED;
    };
    if let Some(slot) = HISTS.get_ptr_mut(index) {
        // SAFETY: a slot off the stack belongs to nobody else.
        let slot = unsafe { &mut *slot };
        slot.owner_start_ns = task.start_boottime();
        slot.owner_tid = task.tid();
        slot.kind = kind as u32;
    }
    index.wrapping_add(1)
}

/// Marks the slots of a task whose record could not be sent, so that user space finds them.
#[inline(always)]
pub(crate) fn orphan_slots(state: &TaskState) {
    for &handle in &state.hist {
        if handle == HIST_NONE || handle == HIST_EXHAUSTED {
            continue;
        }
        if let Some(slot) = HISTS.get_ptr_mut(handle.wrapping_sub(1)) {
            // SAFETY: the slot belongs to this task, which has ended.
            unsafe { (*slot).is_orphan = 1 };
        }
    }
}
