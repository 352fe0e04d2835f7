//! Programs that visit all tasks: one selects those that exist already, one writes the rows of a snapshot.
//!
//! aya has no macro for iterators, so section and context are by hand: argument 0 is the iterator's
//! `meta`, argument 1 the task, null after the last one.

use core::mem::size_of;

use aya_ebpf::{
    bindings::seq_file,
    helpers::{bpf_ktime_get_ns, generated::bpf_seq_write},
};
use latency_common::{counters::TaskCounters, record::TaskHeader};

use crate::{
    maps::word,
    rows::header,
    select::reselect,
    state::{SELECTED, WAS_SELECTED, lookup},
    task::Task,
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
    // SAFETY: the helper has no precondition.
    let row = header(task, state, unsafe { bpf_ktime_get_ns() });
    // SAFETY: the kernel passes a context of this shape; `seq` is the first member of `meta`.
    let meta = unsafe { (*ctx).meta };
    // SAFETY: as above.
    let seq = unsafe { *meta };
    // SAFETY: both buffers have the length given. A full buffer makes the kernel show the task again.
    unsafe { bpf_seq_write(seq, (&raw const row).cast(), word(size_of::<TaskHeader>())) };
    // SAFETY: as above.
    unsafe {
        bpf_seq_write(
            seq,
            (&raw const state.counters).cast(),
            word(size_of::<TaskCounters>()),
        )
    };
    0
}
