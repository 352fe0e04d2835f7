//! What is told, event by event, of the threads that a probe traces.

use crate::{attribution::N_PARTS, interrupt::Source};

/// First word of a record of the trace ring.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceTag {
    /// A [`TraceWait`].
    Wait = 1,
    /// A [`TraceInterrupt`].
    Interrupt = 2,
}

/// A high-resolution timer whose callback runs, or ran when a task was woken; 0 where none did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Firing {
    /// The time that was asked for, on the timer's own clock.
    pub programmed_ns: u64,
    /// That time and the slack that its task allows.
    pub expires_ns: u64,
    /// When the callback began, `CLOCK_MONOTONIC`.
    pub fired_at_ns: u64,
}

/// A wait that has ended.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TraceWait {
    /// [`TraceTag::Wait`].
    pub tag: u32,
    /// Who waited.
    pub tid: u32,
    /// Where it was switched in.
    pub cpu: u32,
    /// [`crate::class::WaitClass`].
    pub class: u32,
    /// Who had the CPU before; 0 for idle.
    pub previous_tid: u32,
    /// Fills up to eight bytes.
    pub reserved: u32,
    /// When the waking began that queued it; 0 without.
    pub waking_at_ns: u64,
    /// When it was queued.
    pub queued_at_ns: u64,
    /// When it was switched in.
    pub running_at_ns: u64,
    /// The timer whose callback woke it.
    pub firing: Firing,
    /// The wait by [`crate::attribution::Part`].
    pub parts: [u64; N_PARTS],
}

/// Calls of `sched_yield` by a thread that numbers them from 1 on.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct YieldCalls {
    /// Calls that reached the scheduler.
    pub count: u64,
    /// The number of the last one.
    pub last_number: u64,
}

/// An interrupt that came while a traced thread had the CPU, and has ended.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TraceInterrupt {
    /// [`TraceTag::Interrupt`].
    pub tag: u32,
    /// Who was interrupted.
    pub tid: u32,
    /// Where.
    pub cpu: u32,
    /// Which interrupt.
    pub source: Source,
    /// 1 where the CPU was asked to switch in it.
    pub asked_for_switch: u32,
    /// Fills up to eight bytes.
    pub reserved: u32,
    /// When it began.
    pub since_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// Its time without other interrupts nested in it.
    pub own_ns: u64,
}
