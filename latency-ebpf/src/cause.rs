//! Why a runnable task loses the CPU.
//!
//! The flags that asked for it are cleared before `sched_switch`, so evidence is collected when they
//! are set (`wakeup.rs`, `timer.rs`). Several causes can hold at once: the first in this order names it.

use latency_common::{class::WaitClass, cpu::CpuState};

use crate::task::Task;

/// The class of the wait that begins as `prev`, still runnable, gives way to `next`.
#[inline(always)]
pub(crate) fn cause(prev: Task, next: Task, is_preempt: bool, cpu: &CpuState) -> WaitClass {
    let is_for_wakee =
        cpu.evidence == WaitClass::WakeupPreemption as u32 && cpu.evidence_tid == next.tid();
    // A yield that a wakeup overtakes lost the CPU to the wakee; this also spares the look at registers.
    if !is_preempt && !is_for_wakee && prev.is_in_sched_yield() {
        return WaitClass::Yield;
    }
    let (prev_rank, next_rank) = (prev.class_rank(), next.class_rank());
    // A lower class runs before a runnable real-time task only when that is out of budget.
    if prev.is_throttled() || prev_rank > next_rank {
        return WaitClass::Throttled;
    }
    if next.is_stopper() {
        return WaitClass::Stopper;
    }
    if next_rank > prev_rank {
        return WaitClass::HigherClass;
    }
    match cpu.evidence {
        evidence if evidence == WaitClass::WakeupPreemption as u32 => WaitClass::WakeupPreemption,
        evidence if evidence == WaitClass::Hrtick as u32 => WaitClass::Hrtick,
        evidence if evidence == WaitClass::Tick as u32 => WaitClass::Tick,
        // A fork asks for the child without leaving evidence: its event comes before the check.
        _ if cpu.fork_tid != 0 && cpu.fork_tid == next.tid() => WaitClass::WakeupPreemption,
        _ => WaitClass::Unknown,
    }
}
