//! The document of `schedlat verify --format json`.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::Audit;
use crate::outcome::Outcome;

/// The whole document.
#[derive(Debug, Deserialize)]
pub struct Verification {
    /// `schedlat.verify`.
    pub schema: String,
    /// Of the program.
    pub version: String,
    /// Where.
    pub host: Value,
    /// Under what.
    pub conditions: Value,
    /// Doubts.
    pub warnings: Vec<Value>,
    /// Its name.
    pub tool: String,
    /// What it says.
    pub claims: Claims,
    /// What the kernel saw.
    pub kernel: Seen,
    /// `agrees`, `omits` or `disagrees`.
    pub verdict: String,
    /// Why.
    pub reasons: Vec<Reason>,
    /// The recorder's own.
    pub audit: Audit,
}

/// What the tool says.
#[derive(Debug, Deserialize)]
pub struct Claims {
    /// One per measuring thread.
    pub series: Vec<ClaimedSeries>,
    /// Its total.
    pub duration_ns: Option<u64>,
    /// Round trips or messages.
    pub operations: Option<u64>,
    /// How many it ran.
    pub tasks: Option<u64>,
}

/// Figures of one thread.
#[derive(Debug, Deserialize)]
pub struct ClaimedSeries {
    /// Its name.
    pub name: String,
    /// Samples taken.
    pub taken: Option<u64>,
    /// Its distribution.
    pub latency: ClaimedLatency,
}

/// A distribution as claimed.
#[derive(Debug, Deserialize)]
pub struct ClaimedLatency {
    /// Samples behind the figures.
    pub count: Option<u64>,
    /// The shortest.
    pub min_ns: Option<u64>,
    /// Mean.
    pub mean_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
}

/// What the kernel saw.
#[derive(Debug, Deserialize)]
pub struct Seen {
    /// All threads.
    pub n_tasks: u64,
    /// All wakeups.
    pub wakeups: u64,
    /// How long it was there.
    pub elapsed_ns: u64,
    /// Those that measure.
    pub threads: Vec<SeenThread>,
}

/// A measuring thread.
#[derive(Debug, Deserialize)]
pub struct SeenThread {
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// From waking to running.
    pub wakeup_latency: SeenLatency,
    /// Without the CPU.
    pub interruptions: SeenInterruptions,
    /// Periods that passed.
    pub periods: Option<u64>,
    /// Without a sample.
    pub missed_periods: Option<u64>,
    /// Read back.
    pub conditions: Option<SeenConditions>,
}

/// A distribution as seen.
#[derive(Debug, Deserialize)]
pub struct SeenLatency {
    /// Wakeups.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Median.
    pub p50_ns: Option<u64>,
}

/// Times without the CPU.
#[derive(Debug, Deserialize)]
pub struct SeenInterruptions {
    /// How often it lost it.
    pub lost_cpu: u64,
    /// The longest.
    pub lost_cpu_max_ns: u64,
}

/// How it ran.
#[derive(Debug, Deserialize)]
pub struct SeenConditions {
    /// Its policy.
    pub policy: String,
    /// Its priority.
    pub priority: u32,
    /// Its CPUs.
    pub cpus_allowed: String,
    /// Its slack.
    pub timer_slack_ns: Option<u64>,
    /// How often it was stopped.
    pub stops: u64,
    /// For how long.
    pub stopped_ns: u64,
}

/// Why the verdict is so.
#[derive(Debug, Deserialize)]
pub struct Reason {
    /// A fixed word.
    pub code: String,
    /// `note`, `omission` or `contradiction`.
    pub kind: String,
    /// The tool's number.
    pub claimed: Option<u64>,
    /// The kernel's.
    pub kernel: Option<u64>,
    /// A sentence.
    pub text: String,
}

impl Verification {
    /// The document of a finished verification.
    pub fn of(outcome: &Outcome) -> Result<Self> {
        let document = outcome.only_document()?;
        let found: Self = serde_json::from_value(document)
            .with_context(|| format!("the contract is broken:\n{}", outcome.output()))?;
        ensure!(
            found.schema == "schedlat.verify",
            "the schema is {}",
            found.schema
        );
        Ok(found)
    }

    /// Requires a verdict, and shows why it is another one.
    pub fn is(&self, verdict: &str) -> Result<()> {
        let Self {
            reasons, kernel, ..
        } = self;
        ensure!(
            self.verdict == verdict,
            "it {}: {reasons:#?}\n{kernel:#?}",
            self.verdict
        );
        Ok(())
    }

    /// The reason of this code.
    pub fn reason(&self, code: &str) -> Result<&Reason> {
        let mut reasons = self.reasons.iter();
        reasons
            .find(|reason| reason.code == code)
            .with_context(|| format!("no reason {code}: {:#?}", self.reasons))
    }

    /// The only measuring thread.
    pub fn thread(&self) -> Result<&SeenThread> {
        let [thread] = &self.kernel.threads[..] else {
            anyhow::bail!("{} measuring threads", self.kernel.threads.len());
        };
        Ok(thread)
    }
}
