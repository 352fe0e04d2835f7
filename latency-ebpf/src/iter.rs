//! Programs that visit all tasks: one selects those that exist already, one writes the rows of a snapshot.
//!
//! aya has no macro for iterators, so section and context are by hand: argument 0 is the iterator's
//! `meta`, argument 1 the task, null after the last one.

use core::mem::size_of;

use aya_ebpf::{
    bindings::seq_file,
    helpers::{bpf_ktime_get_ns, generated::bpf_seq_write},
};
use latency_common::{
    class::WaitClass,
    counters::TaskCounters,
    record::{TaskHeader, TaskPhase, TaskRecord},
};

use crate::{
    globals as g,
    maps::{ROW, timeline, word},
    rows::{copy_counters, header, runs_unseen},
    segment,
    select::reselect,
    state::{SELECTED, TaskState, WAS_SELECTED, lookup},
    task::Task,
    timeline::{Reading, add_growth, read},
};

/// The context of a `task` iterator.
#[repr(C)]
pub(crate) struct TaskIter {
    meta: *const *mut seq_file,
    task: *const u8,
}

/// Selects the tasks that fit the targets and lets go of those that no longer do.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub(crate) extern "C" fn select_tasks(ctx: *const TaskIter) -> i32 {
    // SAFETY: the kernel passes a context of this shape.
    let task = Task::new(unsafe { (*ctx).task });
    if !task.is_null() {
        reselect(task, &task.comm());
    }
    0
}

/// Writes the row of each task that is, or was, selected.
#[unsafe(no_mangle)]
#[unsafe(link_section = "iter/task")]
pub(crate) extern "C" fn write_rows(ctx: *const TaskIter) -> i32 {
    // SAFETY: the kernel passes a context of this shape.
    let task = Task::new(unsafe { (*ctx).task });
    if task.is_null() {
        return 0;
    }
    let Some(state) = lookup(task) else {
        return 0;
    };
    if !state.is(SELECTED | WAS_SELECTED) {
        return 0;
    }
    let Some(row) = ROW.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: the pointer comes from the map; only this run of the iterator uses it.
    let row = unsafe { &mut *row };
    read_row(task, state, row);
    // SAFETY: the kernel passes a context of this shape; `seq` is the first member of `meta`.
    let meta = unsafe { (*ctx).meta };
    // SAFETY: as above.
    let seq = unsafe { *meta };
    // SAFETY: the buffer has the length given. A full `seq` makes the kernel show the task again.
    unsafe { bpf_seq_write(seq, (&raw const *row).cast(), word(size_of::<TaskRecord>())) };
    0
}

/// What interrupts took of the stint that goes on.
#[inline(always)]
fn look_at_stolen(task: Task, state: &TaskState, header: &mut TaskHeader) {
    if let Some(timeline) = timeline(task.cpu()) {
        let mut reading = Reading::default();
        read(timeline, header.at_ns, &mut reading);
        add_growth(&mut header.open_stolen, &reading, &state.base);
    }
}

/// The wait that ended and the stint that goes on, as the kernel has counted them so far.
#[inline(always)]
fn add_unseen(task: Task, state: &TaskState, counters: &mut TaskCounters) {
    counters.unseen_on_cpu_ns += task.sum_exec().wrapping_sub(state.last_sum_exec);
    let class = WaitClass::Unmeasured as usize;
    if let Some(class) = counters.classes.get_mut(class) {
        class.count += 1;
    }
    if let Some(kernel_ns) = counters.kernel_ns.get_mut(class) {
        *kernel_ns += task.run_delay().wrapping_sub(state.last_run_delay);
    }
}

/// Times a row is read again because the task went on meanwhile.
const MAX_READS: u32 = 4;

/// Reads header and counters of one moment, though the task may be switching on another CPU.
#[inline(always)]
fn read_row(task: Task, state: &TaskState, row: &mut TaskRecord) {
    for _ in 0..MAX_READS {
        let before = state.version();
        // SAFETY: the helper has no precondition.
        row.header = header(task, state, unsafe { bpf_ktime_get_ns() });
        if g::ATTRIBUTE.read() != 0 && state.is_in(TaskPhase::Queued) {
            segment::look(state, task, row.header.at_ns, &mut row.header.open_parts);
        }
        if g::ATTRIBUTE.read() != 0 && state.is_in(TaskPhase::Running) {
            look_at_stolen(task, state, &mut row.header);
        }
        copy_counters(&raw mut row.counters, &raw const state.counters);
        if runs_unseen(task, state) {
            add_unseen(task, state, &mut row.counters);
        }
        if state.version() == before {
            return;
        }
    }
}
