//! What the kernel's workers work on: the thread of a `kworker` says nothing, its function does.

use core::intrinsics::{AtomicOrdering, atomic_cxchg};

use aya_ebpf::{
    helpers::{bpf_ktime_get_ns, bpf_probe_read_kernel, generated::bpf_get_smp_processor_id},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use latency_common::{
    config::ABSENT,
    timeline::{N_WORKS, Runner},
};

use crate::{
    globals as g,
    maps::{WORKS, timeline},
    task::Task,
    timeline::change_work,
};

/// Rows that a function may have: its address says where they begin.
const N_PLACES: u32 = 8;

/// A worker begins with a function.
#[btf_tracepoint(function = "workqueue_execute_start")]
pub(crate) fn workqueue_execute_start(ctx: BtfTracePointContext) -> i32 {
    change(function(ctx.arg(0)).map_or(0, number_of))
}

/// It is done.
#[btf_tracepoint(function = "workqueue_execute_end")]
pub(crate) fn workqueue_execute_end(_ctx: BtfTracePointContext) -> i32 {
    change(0)
}

/// VERIFIER: loaded directly it would be a pointer, with which nothing can be counted.
#[inline(always)]
fn function(work: *const u8) -> Option<u64> {
    if g::CAN_PROBE_READ.read() == 0 || g::WORK_FUNCTION.read() == ABSENT {
        return None;
    }
    let function = work.wrapping_add(g::WORK_FUNCTION.read() as usize);
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_kernel(function.cast()) }.ok()
}

#[inline(always)]
fn change(number: u32) -> i32 {
    let worker = Task::current();
    // A softirq may do a worker's work in whatever task it came upon, be it a worker.
    // SAFETY: the helper has no precondition.
    if let Some(timeline) = timeline(unsafe { bpf_get_smp_processor_id() })
        && timeline.depth == 0
        && worker.is_worker()
    {
        // SAFETY: the helper has no precondition.
        let now = unsafe { bpf_ktime_get_ns() };
        change_work(timeline, worker, Runner::new(0, number).0, now);
    }
    0
}

/// The number of a function, which gets one now where it has none; 0 where there is no room.
#[inline(always)]
fn number_of(function: u64) -> u32 {
    for place in 0..N_PLACES {
        let number = 1 + (hash(function) + place) % (N_WORKS - 1);
        let Some(row) = WORKS.get_ptr_mut(number) else {
            return 0;
        };
        // SAFETY: the row lies in a map's value.
        let present = unsafe { row.read_volatile() };
        if present == function {
            return number;
        }
        if present != 0 {
            continue;
        }
        // SAFETY: as above, at a multiple of eight bytes.
        let (before, is_new) = unsafe {
            atomic_cxchg::<_, { AtomicOrdering::SeqCst }, { AtomicOrdering::SeqCst }>(
                row, 0, function,
            )
        };
        if is_new || before == function {
            return number;
        }
    }
    0
}

/// Functions begin at multiples of 16.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
const fn hash(function: u64) -> u32 {
    (function >> 4) as u32 % N_WORKS
}
