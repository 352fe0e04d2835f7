//! What `schedlat verify` reports: a foreign tool's claims beside what the kernel saw of its threads.
//!
//! Field names are the JSON keys. What a tool does not say is absent, never 0.

use serde::Serialize;

use super::{Audit, Buckets, Host, Losses, RunConditions, Window, probe::Warning};

/// A distribution as a tool states it, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClaimedLatency {
    /// Samples that the figures rest on.
    pub count: Option<u64>,
    /// The shortest.
    pub min_ns: Option<u64>,
    /// Mean.
    pub mean_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
}

impl ClaimedLatency {
    /// Percentiles that are there: samples per thousand at or below, and the value.
    pub fn percentiles(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = [
            (500, self.p50_ns),
            (900, self.p90_ns),
            (990, self.p99_ns),
            (999, self.p999_ns),
        ];
        all.into_iter()
            .filter_map(|(per_mille, ns)| Some((per_mille, ns?)))
    }
}

/// Figures of one measuring thread, or of all together where the tool does not tell them apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClaimedSeries {
    /// As the tool calls it, e.g. `thread 0`.
    pub name: String,
    /// Its thread id, where the tool says it.
    pub tid: Option<u32>,
    /// Its CPU, where the tool says it.
    pub cpu: Option<u32>,
    /// Period of its timer.
    pub interval_ns: Option<u64>,
    /// Samples taken, where the tool says it; its figures may rest on fewer.
    pub taken: Option<u64>,
    /// What it measured.
    pub latency: ClaimedLatency,
    /// Samples that lie beyond its histogram, and are in none of its buckets or in the last.
    pub beyond_histogram: Option<u64>,
    /// How long it measured.
    pub duration_ns: Option<u64>,
    /// Its figures are cut to whole steps of this size.
    pub resolution_ns: u64,
    /// Samples by the bounds of their buckets: at least so long, and so many. Not reported.
    #[serde(skip)]
    pub histogram: Vec<(u64, u64)>,
}

/// Everything a tool says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Claims {
    /// One per measuring thread, or one for all.
    pub series: Vec<ClaimedSeries>,
    /// Length of the measurement.
    pub duration_ns: Option<u64>,
    /// Operations: round trips or messages.
    pub operations: Option<u64>,
    /// Time of one operation.
    pub ns_per_operation: Option<u64>,
    /// Tasks it says it ran.
    pub tasks: Option<u64>,
    /// It holds the CPUs out of deep idle states while it measures.
    pub holds_cpu_latency: bool,
}

/// Wakeup latency of a thread as the kernel saw it, from waking to running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeenLatency {
    /// Wakeups that ended in running.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
}

/// Times a thread did not have the CPU although it wanted it, and what interrupts took while it had it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeenInterruptions {
    /// Times it lost the CPU.
    pub lost_cpu: u64,
    /// How long it then waited, in all.
    pub lost_cpu_sum_ns: u64,
    /// The longest of those waits.
    pub lost_cpu_max_ns: u64,
    /// Interrupts, softirqs and ticks while it had the CPU.
    pub interrupts: u64,
    /// Their time.
    pub interrupts_sum_ns: u64,
}

/// What was read back from `/proc` while a thread ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeenConditions {
    /// Scheduling policy.
    pub policy: &'static str,
    /// Real-time priority; 0 for others.
    pub priority: u32,
    /// CPUs it may use.
    pub cpus_allowed: String,
    /// Its timer slack; absent for what has none.
    pub timer_slack_ns: Option<u64>,
    /// Times it was found stopped by a signal.
    pub stops: u64,
    /// How long, as far as looking every twentieth of a second can tell.
    pub stopped_ns: u64,
}

/// A thread that was looked at in `/proc` while it ran.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Thread id.
    pub tid: u32,
    /// When it was last found, on the boot clock.
    pub last_seen_boot_ns: u64,
    /// An early moment at which it was measuring, and how often it had slept by then.
    pub measuring_from: Option<(u64, u64)>,
    /// The last moment at which it had slept again, or was stopped.
    pub measuring_until_ns: u64,
    /// What was read back.
    pub conditions: SeenConditions,
}

/// A measuring thread as the kernel saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeenThread {
    /// The series it belongs to.
    pub name: String,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub tgid: u32,
    /// Its name.
    pub comm: String,
    /// From its start to when it was last seen; absent where it was never looked at.
    pub alive_ns: Option<u64>,
    /// From waking to running.
    pub wakeup_latency: SeenLatency,
    /// Its losses of the CPU.
    pub interruptions: SeenInterruptions,
    /// Periods of its timer that passed.
    pub periods: Option<u64>,
    /// Of those, without a sample.
    pub missed_periods: Option<u64>,
    /// What was read back; absent where it was not looked at.
    pub conditions: Option<SeenConditions>,
    /// Its wakeup latencies.
    #[serde(skip)]
    pub latency_buckets: Buckets,
    /// Its waits after losing the CPU.
    #[serde(skip)]
    pub lost_cpu_buckets: Buckets,
}

/// What the kernel saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeenByKernel {
    /// From the tool's start to its end.
    pub elapsed_ns: u64,
    /// All its threads, those included that measure nothing.
    pub n_tasks: u64,
    /// Wakeups of all its threads.
    pub wakeups: u64,
    /// Switches of all its threads.
    pub switches: u64,
    /// Time on a CPU of all its threads.
    pub on_cpu_ns: u64,
    /// Time they waited for one.
    pub waited_ns: u64,
    /// The measuring threads.
    pub threads: Vec<SeenThread>,
}

/// What a reason does to the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonKind {
    /// Nothing: it is good to know.
    Note,
    /// Something that happened is not in the tool's figures.
    Omission,
    /// A figure that cannot be true.
    Contradiction,
}

/// Why the verdict is what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// A fixed word for programs, e.g. `missed_periods`.
    pub code: &'static str,
    /// What it does to the verdict.
    pub kind: ReasonKind,
    /// The series it concerns; none for all.
    pub series: Option<String>,
    /// The tool's number, where there is one.
    pub claimed: Option<u64>,
    /// The kernel's.
    pub kernel: Option<u64>,
    /// How far they may be apart.
    pub allowed: Option<u64>,
    /// A sentence for people.
    pub text: String,
}

/// One word about a tool's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// What both can see is the same, and nothing is left out.
    #[default]
    Agrees,
    /// What it says may be true, and is not all that happened.
    Omits,
    /// A figure cannot be true.
    Disagrees,
}

impl Agreement {
    /// The word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Omits => "omits",
            Self::Disagrees => "disagrees",
        }
    }
}

/// The document of `schedlat verify`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verification {
    /// The tool, e.g. `cyclictest`.
    pub tool: &'static str,
    /// The command as it was run.
    pub command: Vec<String>,
    /// What was added to it, in words.
    pub added: Option<String>,
    /// Where.
    pub host: Host,
    /// When.
    pub window: Window,
    /// What it ran under; what its threads did is with them.
    pub conditions: RunConditions,
    /// Doubts, with advice.
    pub warnings: Vec<Warning>,
    /// What it says.
    pub claims: Claims,
    /// What the kernel saw.
    pub kernel: SeenByKernel,
    /// In one word.
    pub verdict: Agreement,
    /// Why.
    pub reasons: Vec<Reason>,
    /// The recorder's own audit of the tool's threads.
    pub audit: Audit,
    /// What the recorder lost.
    pub loss: Losses,
    /// The tool's exit code; absent without an end.
    pub exit_code: Option<u8>,
}
