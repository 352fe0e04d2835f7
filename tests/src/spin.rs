//! The tests' own reading of what `probe yield` and `probe busy` say.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::probe::{Document, Figures, probe};

/// A series of `probe yield`.
#[derive(Clone, Debug, Deserialize)]
pub struct YieldSeries {
    /// Policy.
    pub policy: String,
    /// Who was beside.
    pub peer: String,
    /// Calls.
    pub yields: u64,
    /// Calls that the kernel counted.
    pub kernel_saw: Option<u64>,
    /// Calls that switched.
    pub switched: u64,
    /// Their share.
    pub switched_pct: f64,
    /// Calls that lost the CPU otherwise.
    pub lost: u64,
    /// Switches by yield that the recorder counted.
    pub kernel_switched: u64,
    /// Of those seen one by one, the ones in no call.
    pub unmatched: u64,
    /// Waits longer than their call, by so much.
    pub worst_disagreement_ns: u64,
    /// Mean.
    pub ns_per_yield: Option<i64>,
    /// Calls that switched.
    pub switched_ns: Figures,
    /// Calls that did not.
    pub unswitched_ns: Figures,
    /// Who ran instead.
    pub ran_instead: Vec<RanInstead>,
    /// Why it ended.
    pub ended_by: String,
    /// In a word.
    pub verdict: String,
    /// Why.
    pub reasons: Vec<String>,
}

/// Who ran instead.
#[derive(Clone, Debug, Deserialize)]
pub struct RanInstead {
    /// Name.
    pub comm: String,
    /// Thread id.
    pub tid: u32,
    /// It is the probe's own peer.
    pub is_peer: bool,
    /// Stretches.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
}

/// A series of `probe busy`.
#[derive(Clone, Debug, Deserialize)]
pub struct BusySeries {
    /// Policy.
    pub policy: String,
    /// How long.
    pub seconds: f64,
    /// The shortest gap.
    pub threshold_ns: u64,
    /// Ticks a second.
    pub hz: Option<u64>,
    /// All gaps.
    pub lost_ns: u64,
    /// Their share.
    pub lost_pct: f64,
    /// All gaps.
    pub gaps: Figures,
    /// By cause.
    pub causes: GapCauses,
    /// Without an event.
    pub gaps_without_event: u64,
    /// Without a gap.
    pub events_without_gap: u64,
    /// Without room.
    pub dropped_gaps: u64,
    /// Events longer than their gap, by so much.
    pub worst_disagreement_ns: u64,
    /// Ticks that asked.
    pub asking_ticks: u64,
    /// Ticks that asked for nothing.
    pub repicked_ticks: u64,
    /// Who ran instead.
    pub ran_instead: Vec<RanInstead>,
    /// Every gap.
    pub pairs: Option<Vec<Pair>>,
    /// In a word.
    pub verdict: String,
    /// Why.
    pub reasons: Vec<String>,
}

/// Gaps by cause.
#[derive(Clone, Debug, Deserialize)]
#[expect(
    missing_docs,
    reason = "they are keys of the contract, explained there"
)]
pub struct GapCauses {
    pub tick: CauseGaps,
    pub irq: CauseGaps,
    pub softirq: CauseGaps,
    pub ipi: CauseGaps,
    pub preempted: CauseGaps,
    pub throttled: CauseGaps,
    pub unexplained: CauseGaps,
}

impl GapCauses {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> [&CauseGaps; 7] {
        [
            &self.tick,
            &self.irq,
            &self.softirq,
            &self.ipi,
            &self.preempted,
            &self.throttled,
            &self.unexplained,
        ]
    }
}

/// Gaps of one cause.
#[derive(Clone, Debug, Deserialize)]
pub struct CauseGaps {
    /// Their lengths.
    #[serde(flatten)]
    pub length: Figures,
    /// How many a second.
    pub per_second: f64,
    /// The kernel's events in them.
    pub kernel_ns: u64,
    /// By whom.
    pub by: Vec<GapsBy>,
}

/// Gaps by one task or interrupt.
#[derive(Clone, Debug, Deserialize)]
pub struct GapsBy {
    /// Name.
    pub name: String,
    /// Thread id.
    pub tid: Option<u32>,
    /// Gaps.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// A gap and the time to the next.
#[derive(Clone, Debug, Deserialize)]
pub struct Pair {
    /// When.
    pub at_ns: u64,
    /// How long.
    pub length_ns: u64,
    /// Until the next.
    pub to_next_ns: u64,
    /// The kernel's events in it.
    pub kernel_ns: u64,
    /// Cause.
    pub cause: String,
    /// Who.
    pub by: Option<String>,
}

/// Runs `probe yield`.
pub fn yields(line: &str) -> Result<Document<YieldSeries>> {
    let outcome = probe(&format!("yield {line}")).run()?.success()?;
    Document::of("yield", &outcome)
}

/// Runs `probe busy`.
pub fn busy(line: &str) -> Result<Document<BusySeries>> {
    let outcome = probe(&format!("busy {line}")).run()?.success()?;
    Document::of("busy", &outcome)
}

impl Document<YieldSeries> {
    /// The series of a policy beside a peer.
    pub fn beside(&self, policy: &str, peer: &str) -> Result<&YieldSeries> {
        let is_it = |series: &&YieldSeries| series.policy == policy && series.peer == peer;
        let found = self.series.iter().find(is_it);
        found.with_context(|| format!("no series of {policy} beside {peer}"))
    }
}
