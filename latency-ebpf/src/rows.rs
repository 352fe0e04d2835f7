//! Rows: what the iterator writes of a task that lives, and what the ring carries of one that ended.

use latency_common::{
    class::N_CLASSES,
    counters::{N_PREEMPTORS, TaskCounters, WaitCounters},
    loss::Loss,
    record::{RecordTag, TaskHeader, TaskPhase, TaskRecord},
};

use crate::{
    cgroup::cgroup_id,
    hist::orphan_slots,
    maps::{RECORDS, UNSENT, count_loss},
    state::TaskState,
    task::Task,
};

/// The reader polls: waking it from under the runqueue lock would add wakeups to what is measured.
pub(crate) const NO_WAKEUP: u64 = 1;

/// Who a task is and what it is doing.
#[inline(always)]
pub(crate) fn header(task: Task, state: &TaskState, now: u64) -> TaskHeader {
    let is_running = state.is_in(TaskPhase::Running);
    // A task whose switch-out fired no event would seem to run for ever.
    let phase = if is_running && !task.is_on_cpu() {
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
    }
}

/// Sends the row of a task at its last switch-out; where the ring is full, its counts are kept apart.
///
/// Out of line, so that what every switch executes stays on few cache lines.
#[inline(never)]
pub(crate) fn send_ended(task: Task, state: &mut TaskState, now: u64) {
    // From here on the task is neither measured nor shown again.
    state.end(now);
    state.phase = TaskPhase::Dead as u8;
    state.flags = 0;
    let Some(mut entry) = RECORDS.reserve::<TaskRecord>(0) else {
        count_loss(Loss::ExitRecords);
        orphan_slots(state);
        keep_unsent(&state.counters);
        return;
    };
    let record = entry.as_mut_ptr();
    let mut header = header(task, state, now);
    header.tag = RecordTag::Exit as u64;
    // SAFETY: the reserved record is ours until it is submitted.
    unsafe { (*record).header = header };
    // SAFETY: as above.
    copy_counters(unsafe { &raw mut (*record).counters }, &state.counters);
    entry.submit(NO_WAKEUP);
}

/// Copies word by word. VERIFIER: a plain assignment of this size calls `memcpy`, whose byte loop is
/// slow and, for overlapping ranges, not accepted.
#[inline(always)]
pub(crate) fn copy_counters(to: *mut TaskCounters, from: &TaskCounters) {
    let (to, from) = (to.cast::<u64>(), (&raw const *from).cast::<u64>());
    for word in 0..size_of::<TaskCounters>() / size_of::<u64>() {
        let (to, from) = (to.wrapping_add(word), from.wrapping_add(word));
        // SAFETY: within the structure, which is 8-byte aligned and without padding.
        let value = unsafe { from.read_volatile() };
        // SAFETY: as above.
        unsafe { to.write_volatile(value) };
    }
}

#[inline(always)]
fn keep_unsent(counters: &TaskCounters) {
    let Some(total) = UNSENT.get_ptr_mut(0) else {
        return;
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
    total.unseen_switch_ins += counters.unseen_switch_ins;
    // Names do not merge: all go to the last row.
    for row in &counters.preemptors {
        if let Some(others) = total.preemptors.get_mut(N_PREEMPTORS - 1) {
            others.count += row.count;
            others.sum_ns += row.sum_ns;
        }
    }
}

#[inline(always)]
fn merge(to: &mut WaitCounters, from: &WaitCounters) {
    if from.count != 0 && (to.count == 0 || from.min_ns < to.min_ns) {
        to.min_ns = from.min_ns;
    }
    if from.max_ns > to.max_ns {
        to.max_ns = from.max_ns;
    }
    to.count += from.count;
    to.sum_ns += from.sum_ns;
}
