//! Results of `probe busy`.

use serde::Serialize;

use super::{Figures, RanInstead, Verdict};

/// One class on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BusySeries {
    /// Policy of the probe.
    pub policy: String,
    /// Its CPU.
    pub cpu: u32,
    /// What ran beside.
    pub load: String,
    /// The kernel's preemption model, where it was switched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<String>,
    /// How long it spun.
    pub seconds: f64,
    /// Turns of the loop.
    pub turns: u64,
    /// A turn that nothing interrupts.
    pub turn: TurnFigures,
    /// The shortest jump of the clock that is called a gap.
    pub threshold_ns: u64,
    /// How often a second the tick came; absent where there were too few.
    pub hz: Option<u64>,
    /// Sum of all gaps.
    pub lost_ns: u64,
    /// Its share of the time.
    pub lost_pct: f64,
    /// All gaps.
    pub gaps: Figures,
    /// Gaps by cause.
    pub causes: GapCauses,
    /// Gaps without an event of the kernel.
    pub gaps_without_event: u64,
    /// Events of the kernel without a gap.
    pub events_without_gap: u64,
    /// Gaps that found no room.
    pub dropped_gaps: u64,
    /// The most by which the kernel's events in a gap were longer than the gap.
    pub worst_disagreement_ns: u64,
    /// Ticks that asked for another task.
    pub asking_ticks: u64,
    /// Of those, the ones after which the same task went on.
    pub repicked_ticks: u64,
    /// Who ran while the probe was not on its CPU, whatever the reason.
    pub ran_instead: Vec<RanInstead>,
    /// Every gap, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairs: Option<Vec<Pair>>,
    /// What it comes to.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Turns of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TurnFigures {
    /// The shortest.
    pub min_ns: u64,
    /// The one in the middle.
    pub median_ns: u64,
}

/// Gaps by cause. Each gap has one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GapCauses {
    /// The scheduler's tick or slice timer, with what came along.
    pub tick: CauseGaps,
    /// Devices, and timers other than the scheduler's.
    pub irq: CauseGaps,
    /// Softirqs on their own.
    pub softirq: CauseGaps,
    /// Another CPU asked for something.
    pub ipi: CauseGaps,
    /// Another task had the CPU.
    pub preempted: CauseGaps,
    /// Another task had it although its class is lower, or the probe was out of quota.
    pub throttled: CauseGaps,
    /// No event of the kernel, or none for the most of it.
    pub unexplained: CauseGaps,
}

/// Gaps of one cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CauseGaps {
    /// How many a second.
    pub per_second: f64,
    /// Their lengths.
    #[serde(flatten)]
    pub length: Figures,
    /// Time of the kernel's events in them; the rest is the way into the kernel and back, or not seen.
    pub kernel_ns: u64,
    /// Who, the largest sum first.
    pub by: Vec<GapsBy>,
}

/// Gaps by one interrupt or task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GapsBy {
    /// The interrupt, or the name of the task.
    pub name: String,
    /// Thread id of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Gaps.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// One gap and the time until the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// When it began.
    pub at_ns: u64,
    /// How long it was.
    pub length_ns: u64,
    /// From its end to the next one, or to the end of the run.
    pub to_next_ns: u64,
    /// Time of the kernel's events in it.
    pub kernel_ns: u64,
    /// A key of `causes`.
    pub cause: &'static str,
    /// Who, where that is known.
    pub by: Option<String>,
}
