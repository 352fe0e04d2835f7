//! Calls of `sched_yield` by the threads of a yield probe, counted where `schedule()` begins: the only
//! event of a call that gives the CPU to nobody.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};

use crate::{maps::YIELD_CALLS, task::Task};

/// `schedule()` begins, with preemption off (from 6.16 on).
///
/// A call that returns to user space by way of another `schedule()` is seen twice. So the probe numbers
/// its calls, in an argument that `sched_yield` does not have: it is in the saved registers all the same.
#[btf_tracepoint(function = "sched_entry_tp")]
pub(crate) fn sched_entry_tp(ctx: BtfTracePointContext) -> i32 {
    let is_preempt = ctx.arg::<u8>(0) != 0;
    let current = Task::current();
    if is_preempt || !current.is_in_sched_yield() {
        return 0;
    }
    if let Some(calls) = YIELD_CALLS.get_ptr_mut(current.tid()) {
        // SAFETY: the pointer comes from the map; only the thread itself writes there.
        let calls = unsafe { &mut *calls };
        let number = current.first_argument();
        if number != calls.last_number {
            calls.last_number = number;
            calls.count += 1;
        }
    }
    0
}
