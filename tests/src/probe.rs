//! The tests' own reading of the documents of probes, apart from the product's types on purpose.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::schedlat::{Outcome, Schedlat};

/// Figures of a distribution.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Figures {
    /// Samples.
    pub count: u64,
    /// Their sum.
    pub sum_ns: i64,
    /// The smallest.
    pub min_ns: Option<i64>,
    /// The mean.
    pub mean_ns: Option<i64>,
    /// The largest.
    pub max_ns: Option<i64>,
    /// Median.
    pub p50_ns: Option<i64>,
    /// 90th percentile.
    pub p90_ns: Option<i64>,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// 99.9th percentile.
    pub p999_ns: Option<i64>,
}

impl Figures {
    /// The median, which there must be.
    pub fn p50(&self) -> Result<i64> {
        self.p50_ns.context("no median")
    }
}

/// A series of `probe wake`.
#[derive(Clone, Debug, Deserialize)]
pub struct WakeSeries {
    /// Policy.
    pub policy: String,
    /// CPU.
    pub cpu: Option<u32>,
    /// Load.
    pub load: String,
    /// Preemption model, where it was switched.
    pub preemption: Option<String>,
    /// Its thread.
    pub tid: u32,
    /// The period.
    pub interval_ns: u64,
    /// What became of its samples.
    pub samples: WakeSamples,
    /// How late.
    pub lateness: Figures,
    /// How late, for every intended period.
    pub intended: Figures,
    /// Share of samples later than a period.
    pub late_by_a_period_pct: f64,
    /// Share of intended periods.
    pub intended_late_by_a_period_pct: f64,
    /// Timer slack.
    pub slack: Figures,
    /// Jitter.
    pub jitter: Figures,
    /// Jitter below zero.
    pub jitter_negative: Figures,
    /// What the lateness is made of.
    pub phases: WakePhases,
    /// The phases' maxima together.
    pub composed_worst_ns: Option<i64>,
    /// Lateness minus phases.
    pub disagreement: Disagreement,
    /// In a word.
    pub verdict: String,
    /// Why.
    pub reasons: Vec<String>,
}

/// Samples of a series.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct WakeSamples {
    /// Taken.
    pub taken: u64,
    /// Wakeups the kernel saw.
    pub kernel_saw: u64,
    /// Matched with their timers.
    pub matched: u64,
    /// Ended by something else.
    pub other_waker: u64,
    /// Due before the thread slept.
    pub awake: u64,
    /// Cut by a switch that fired no event.
    pub missed_switch: u64,
    /// Not seen.
    pub unmatched: u64,
    /// Periods without activation.
    pub missed_periods: u64,
}

/// Phases of a series.
#[derive(Clone, Copy, Debug, Deserialize)]
#[expect(
    missing_docs,
    reason = "they are keys of the contract, explained there"
)]
pub struct WakePhases {
    pub expiry_lateness: Figures,
    pub timer_handler: Figures,
    pub placement: Figures,
    pub ipi_idle_exit: Figures,
    pub queue_wait: Figures,
    pub switch_return: Figures,
    pub unaccounted: Figures,
}

impl WakePhases {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> [Figures; 7] {
        [
            self.expiry_lateness,
            self.timer_handler,
            self.placement,
            self.ipi_idle_exit,
            self.queue_wait,
            self.switch_return,
            self.unaccounted,
        ]
    }
}

/// Two accounts.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Disagreement {
    /// The worst.
    pub max_ns: u64,
}

/// A document of a probe, with its series read.
#[derive(Debug)]
pub struct Document<S> {
    /// All of it.
    pub whole: Value,
    /// The series.
    pub series: Vec<S>,
}

impl<S: for<'a> Deserialize<'a>> Document<S> {
    /// The document of the probe of this name.
    pub fn of(probe: &str, outcome: &Outcome) -> Result<Self> {
        let whole = outcome.documents()?.pop().context("no document")?;
        let schema = format!("schedlat.probe.{probe}");
        ensure!(whole["schema"] == schema, "{}", whole["schema"]);
        for key in ["version", "host", "conditions", "warnings", "record"] {
            ensure!(!whole[key].is_null(), "no key {key}");
        }
        ensure!(whole["record"]["schema"] == "schedlat.record");
        let series = Vec::deserialize(&whole["series"])?;
        Ok(Self { whole, series })
    }

    /// The only series.
    pub fn only(&self) -> Result<&S> {
        let [only] = &self.series[..] else {
            anyhow::bail!("{} series", self.series.len());
        };
        Ok(only)
    }

    /// Whether there is a warning of this kind.
    #[must_use]
    pub fn warns(&self, kind: &str) -> bool {
        let warnings = self.whole["warnings"].as_array();
        warnings.is_some_and(|all| all.iter().any(|warning| warning["kind"] == kind))
    }
}

/// `schedlat probe PROBE --format json`, split at spaces.
#[must_use]
pub fn probe(line: &str) -> Schedlat {
    Schedlat::command("probe").args(line).args("--format json")
}

/// Runs `probe wake`.
pub fn wake(line: &str) -> Result<Document<WakeSeries>> {
    let outcome = probe(&format!("wake {line}")).run()?.success()?;
    Document::of("wake", &outcome)
}
