//! Rows: what the iterator writes of a task that lives, and what the ring carries of one that ended.

use latency_common::{
    attribution::{N_PARTS, Stolen},
    counters::TaskCounters,
    loss::Loss,
    record::{RecordTag, TaskHeader, TaskPhase, TaskRecord},
};

use crate::{
    cgroup::cgroup_id,
    hist::orphan_slots,
    maps::{EXITS, RECORDS, count_loss},
    ring::urgency,
    state::TaskState,
    task::Task,
    unsent::keep_unsent,
};

/// Whether a task that seems to wait has the CPU: its switch-in fired no event.
#[inline(always)]
pub(crate) fn runs_unseen(task: Task, state: &TaskState) -> bool {
    // While it is switched out it is on the CPU still, and queued already.
    state.is_in(TaskPhase::Queued) && task.is_on_cpu() && task.last_queued() == 0
}

/// Who a task is and what it is doing.
#[inline(always)]
pub(crate) fn header(task: Task, state: &TaskState, now: u64) -> TaskHeader {
    let is_running = state.is_in(TaskPhase::Running);
    // A task whose switch-out fired no event would seem to run for ever.
    let phase = if is_running && !task.is_on_cpu() || runs_unseen(task, state) {
        TaskPhase::Unknown as u8
    } else {
        state.phase
    };
    TaskHeader {
        tag: 0,
        at_ns: now,
        start_time_ns: task.start_boottime(),
        cgroup_id: cgroup_id(task),
        since_ns: state.since_ns,
        pending_kernel_ns: if is_running {
            task.run_delay().wrapping_sub(state.last_run_delay)
        } else {
            0
        },
        tid: task.tid(),
        tgid: task.tgid(),
        phase: phase.into(),
        class: state.class.into(),
        hist: state.hist,
        reserved: 0,
        comm: task.comm(),
        leader_comm: task.leader().comm(),
        open_parts: [0; N_PARTS],
        open_stolen: Stolen::default(),
    }
}

/// Sends the row of a task at its last switch-out; where the ring is full, its counts are kept apart.
///
/// Out of line, so that what every switch executes stays on few cache lines.
#[inline(never)]
pub(crate) fn send_ended(task: Task, state: &mut TaskState, now: u64) {
    // From here on the task is neither measured nor shown again.
    state.end(now);
    if state.is_ending != 0
        && let Some(exits) = EXITS.get_ptr_mut(0)
    {
        // SAFETY: a per-CPU value, written under this CPU's runqueue lock only.
        unsafe { (*exits).ended += 1 };
    }
    state.phase = TaskPhase::Dead as u8;
    state.flags = 0;
    let Some(mut entry) = RECORDS.reserve::<TaskRecord>(0) else {
        count_loss(Loss::ExitRecords);
        orphan_slots(state);
        keep_unsent(&raw const state.counters);
        return;
    };
    let record = entry.as_mut_ptr();
    let mut header = header(task, state, now);
    header.tag = RecordTag::Exit as u64;
    // SAFETY: the reserved record is ours until it is submitted.
    unsafe { (*record).header = header };
    // SAFETY: as above.
    let counters = unsafe { &raw mut (*record).counters };
    copy_counters(counters, &raw const state.counters);
    entry.submit(urgency().into());
}

/// Copies word by word.
///
/// VERIFIER: a plain assignment of this size calls `memcpy`, whose byte loop is slow and, for
/// overlapping ranges, not accepted. Exported, so that it is verified once.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn copy_counters(to: *mut TaskCounters, from: *const TaskCounters) -> u32 {
    let (to, from) = (to.cast::<u64>(), from.cast::<u64>());
    if to.is_null() || from.is_null() {
        return 0;
    }
    for word in 0..size_of::<TaskCounters>() / size_of::<u64>() {
        let (to, from) = (to.wrapping_add(word), from.wrapping_add(word));
        // SAFETY: within the structure, which is 8-byte aligned and without padding.
        let value = unsafe { from.read_volatile() };
        // SAFETY: as above.
        unsafe { to.write_volatile(value) };
    }
    0
}
