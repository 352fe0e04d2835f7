//! What the kernel saw of a probe's own threads, event by event. All times are `CLOCK_MONOTONIC`.

use latency_common::{attribution::N_PARTS, class::WaitClass, interrupt::Source};

/// One event of a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// It waited, and has the CPU again.
    Wait(TracedWait),
    /// An interrupt has ended that came while it had the CPU.
    Interrupt(TracedInterrupt),
}

impl TraceEvent {
    /// Whose it is.
    #[must_use]
    pub const fn tid(&self) -> u32 {
        match self {
            Self::Wait(wait) => wait.tid,
            Self::Interrupt(interrupt) => interrupt.tid,
        }
    }

    /// When it ended.
    #[must_use]
    pub const fn end_ns(&self) -> u64 {
        match self {
            Self::Wait(wait) => wait.running_at_ns,
            Self::Interrupt(interrupt) => interrupt.until_ns,
        }
    }

    /// When half of it was over.
    #[must_use]
    pub const fn middle_ns(&self) -> u64 {
        match self {
            Self::Wait(wait) => wait.middle_ns(),
            Self::Interrupt(interrupt) => u64::midpoint(interrupt.since_ns, interrupt.until_ns),
        }
    }
}

/// A wait that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedWait {
    /// Who waited.
    pub tid: u32,
    /// Where it was switched in.
    pub cpu: u32,
    /// Why it waited.
    pub class: WaitClass,
    /// When the waking began that queued it; none where it did not sleep.
    pub waking_at_ns: Option<u64>,
    /// When it was queued.
    pub queued_at_ns: u64,
    /// When it was switched in.
    pub running_at_ns: u64,
    /// The wait by [`latency_common::attribution::Part`].
    pub parts_ns: [u64; N_PARTS],
    /// The timer whose callback woke it; none where something else did.
    pub timer: Option<TimerFiring>,
    /// Who had the CPU before; 0 for idle.
    pub previous_tid: u32,
}

impl TracedWait {
    /// Its length.
    #[must_use]
    pub const fn length_ns(&self) -> u64 {
        self.running_at_ns.saturating_sub(self.queued_at_ns)
    }

    /// When half of it was over: it belongs to what contains that, since readings of the clock on both
    /// sides may be nanoseconds apart.
    #[must_use]
    pub const fn middle_ns(&self) -> u64 {
        u64::midpoint(self.queued_at_ns, self.running_at_ns)
    }
}

/// A high-resolution timer that fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerFiring {
    /// When it was asked to, on its own clock.
    pub programmed_ns: u64,
    /// The latest that the slack of its task allowed, on the same clock.
    pub expires_ns: u64,
    /// When its callback began.
    pub fired_at_ns: u64,
}

/// An interrupt that came while the thread had the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedInterrupt {
    /// Who was interrupted.
    pub tid: u32,
    /// Where.
    pub cpu: u32,
    /// Which interrupt.
    pub source: Source,
    /// When it began.
    pub since_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// Its time without other interrupts nested in it.
    pub own_ns: u64,
    /// The CPU was asked to switch in it.
    pub asked_for_switch: bool,
}
