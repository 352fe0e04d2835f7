//! What `probe wake` measured.

use serde::Serialize;

use super::{Figures, Verdict};

/// One thread under one combination of policy, load and preemption model.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WakeSeries {
    /// The policy it was given.
    pub policy: String,
    /// The CPU it was bound to; absent where it was not.
    pub cpu: Option<u32>,
    /// What ran beside it.
    pub load: String,
    /// The kernel's preemption model, where it was switched for this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<String>,
    /// How it slept: `nanosleep` or `timerfd`.
    pub via: &'static str,
    /// Its thread id.
    pub tid: u32,
    /// The period.
    pub interval_ns: u64,
    /// Samples by what became of them.
    pub samples: WakeSamples,
    /// Actual minus programmed time, without what the timer slack allowed; as it was measured.
    pub lateness: Figures,
    /// The same for every period that was intended: a period that was missed since the thread was late is
    /// late by what was left of that.
    pub intended: Figures,
    /// Samples later than a whole period.
    pub late_by_a_period_pct: f64,
    /// Intended periods later than a whole period.
    pub intended_late_by_a_period_pct: f64,
    /// What the kernel used of the timer slack.
    pub slack: Figures,
    /// Distance of successive activations minus the period.
    pub jitter: Figures,
    /// Those of them that are negative.
    pub jitter_negative: Figures,
    /// What the lateness of matched samples is made of.
    pub phases: WakePhases,
    /// The sum of the largest of each phase: what could come together.
    pub composed_worst_ns: Option<i64>,
    /// Lateness minus the sum of the phases.
    pub disagreement: Disagreement,
    /// Whether the kernel bears it out.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Samples, by what the kernel knows of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WakeSamples {
    /// Taken by the thread.
    pub taken: u64,
    /// Times that the kernel saw the thread come to run after a wakeup.
    pub kernel_saw: u64,
    /// Samples whose very timer the kernel saw.
    pub matched: u64,
    /// Samples that something else than their timer ended, such as the signal that continues a process.
    pub other_waker: u64,
    /// Samples for whose time the thread was not asleep yet, since it was late after the one before.
    pub awake: u64,
    /// Samples with a switch that fired no event.
    pub missed_switch: u64,
    /// Samples of which nothing was seen, for no known reason.
    pub unmatched: u64,
    /// Periods without an activation, since the thread was too late for them.
    pub missed_periods: u64,
}

/// What a lateness is made of, from its timer's expiry on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WakePhases {
    /// From the latest that the slack allowed to the timer's callback.
    pub expiry_lateness: Figures,
    /// From there until the thread is being woken.
    pub timer_handler: Figures,
    /// From there until it is queued.
    pub placement: Figures,
    /// It was queued, and its CPU idle: the interrupt that wakes it, and leaving the idle state.
    pub ipi_idle_exit: Figures,
    /// It was queued, and its CPU had others to run.
    pub queue_wait: Figures,
    /// From being switched in until it has read the clock.
    pub switch_return: Figures,
    /// What is known of no other phase.
    pub unaccounted: Figures,
}

/// How far two accounts of the same samples are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// The worst, by its distance from zero.
    pub max_ns: u64,
    /// All together.
    pub sum_ns: i64,
}

impl WakePhases {
    /// All phases in their order, by the keys of JSON.
    #[must_use]
    pub const fn list(&self) -> [(&'static str, Figures); 7] {
        [
            ("expiry_lateness", self.expiry_lateness),
            ("timer_handler", self.timer_handler),
            ("placement", self.placement),
            ("ipi_idle_exit", self.ipi_idle_exit),
            ("queue_wait", self.queue_wait),
            ("switch_return", self.switch_return),
            ("unaccounted", self.unaccounted),
        ]
    }
}
