//! The tests' own reading of the JSON contract.
//!
//! Every key of the contract is a required field of its type, so a missing key or a number that is
//! no integer fails the test that reads it. It is written apart from the product's own types on
//! purpose: a renamed key must be noticed here.

mod attribution;
mod audit;
mod bench;
mod paths;
mod verify;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

pub use self::{attribution::*, audit::*, bench::*, paths::*, verify::*};

/// The document of `schedlat record --format json`.
#[derive(Debug, Deserialize)]
pub struct Report {
    /// `schedlat.record`.
    pub schema: String,
    /// Where.
    pub host: Host,
    /// When.
    pub window: Window,
    /// All selected tasks together.
    pub totals: Stats,
    /// One row per thread (`--by tid`).
    #[serde(default)]
    pub tasks: Vec<Row>,
    /// One row per group (any other `--by`).
    #[serde(default)]
    pub groups: Vec<Row>,
    /// Two accounts of the same.
    pub audit: Audit,
    /// Waits cut by the window.
    pub censored: Censored,
    /// What was lost.
    pub loss: BTreeMap<String, u64>,
    /// What it cost.
    pub cost: Cost,
    /// What a hypervisor kept from all CPUs together.
    pub steal_ns: u64,
    /// Interrupts of all CPUs.
    pub interrupts: Option<Vec<Interrupt>>,
    /// The longest waits.
    pub longest: Option<Vec<LongWait>>,
    /// What others did in the kernel.
    #[serde(flatten)]
    pub paths: PathStats,
}

/// The machine.
#[derive(Debug, Deserialize)]
pub struct Host {
    /// Ticks in a second, where the kernel tells.
    pub hz: Option<u64>,
}

/// A line of `--interval`: what happened in it. Accounts are compared over the whole only.
#[derive(Debug, Deserialize)]
pub struct Interval {
    /// When.
    pub window: Window,
    /// All selected tasks together.
    pub totals: Stats,
}

impl Interval {
    /// The intervals among the documents of a recording.
    pub fn among(documents: &[Value]) -> Result<Vec<Self>> {
        let lines = documents
            .iter()
            .filter(|line| line["schema"] == "schedlat.record.interval");
        lines.map(|line| Ok(Self::deserialize(line)?)).collect()
    }
}

/// The time observed.
#[derive(Debug, Deserialize)]
pub struct Window {
    /// Its length.
    pub seconds: f64,
    /// Its start.
    pub start_at_ns: u64,
    /// How long the machine was suspended meanwhile.
    pub suspended_ns: u64,
}

/// A distribution.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct WaitStats {
    /// Samples.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The shortest.
    pub min_ns: u64,
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

/// Waits by kind.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Waits {
    /// After a wakeup.
    pub wakeup: WaitStats,
    /// After losing the CPU.
    pub preemption: WaitStats,
    /// Before the first run.
    pub new_task: WaitStats,
}

impl Waits {
    /// All waits.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.wakeup.count + self.preemption.count + self.new_task.count
    }

    /// Their sum.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.wakeup.sum_ns + self.preemption.sum_ns + self.new_task.sum_ns
    }

    /// The longest of all.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.wakeup
            .max_ns
            .max(self.preemption.max_ns)
            .max(self.new_task.max_ns)
    }
}

/// Waits of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct CauseStats {
    /// Waits.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Who took the CPU.
#[derive(Debug, Deserialize)]
pub struct Preemptor {
    /// Why.
    pub cause: String,
    /// Name.
    pub comm: String,
    /// Thread id.
    pub tid: u32,
    /// Waits.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
}

/// Switches away from a task.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Switches {
    /// It blocked.
    pub voluntary: u64,
    /// It stayed runnable, yields included.
    pub involuntary: u64,
    /// It yielded.
    pub r#yield: u64,
}

/// Waits cut by the window.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Censored {
    /// Going on when the recording began.
    pub open_at_start: u64,
    /// Their time within the window.
    pub open_at_start_ns: u64,
    /// Going on when it ended.
    pub open_at_end: u64,
    /// Their time within the window.
    pub open_at_end_ns: u64,
}

/// The figures of a task, a group, or all.
#[derive(Debug, Deserialize)]
pub struct Stats {
    /// Waits from queued to running.
    pub waits: Waits,
    /// From waking to running.
    pub wakeup_latency: WaitStats,
    /// Why the CPU was lost.
    pub causes: BTreeMap<String, CauseStats>,
    /// Who took it.
    pub preemptors: Vec<Preemptor>,
    /// Switches.
    pub switches: Switches,
    /// Moves to another CPU.
    pub migrations: u64,
    /// Time on a CPU.
    pub on_cpu_ns: u64,
    /// All waits that ended, our account.
    pub run_delay_ns: u64,
    /// The same, the kernel's account.
    pub run_delay_kernel_ns: u64,
    /// Time spent waiting within the window, whether the wait ended in it or not.
    pub waited_ns: u64,
    /// Waits cut by the window.
    pub censored: Censored,
    /// Wakeups that ended no sleep.
    pub wakeups_not_asleep: u64,
    /// What the waits were made of.
    #[serde(flatten)]
    pub attribution: Attribution,
}

impl Stats {
    /// The waits of one cause.
    #[must_use]
    pub fn cause(&self, cause: &str) -> CauseStats {
        self.causes.get(cause).copied().unwrap_or_default()
    }

    /// Waits that followed losing the CPU.
    #[must_use]
    pub fn n_lost_cpu(&self) -> u64 {
        self.causes.values().map(|cause| cause.count).sum()
    }
}

/// One task or group.
#[derive(Debug, Deserialize)]
pub struct Row {
    /// Thread id.
    pub tid: Option<u32>,
    /// Process id.
    pub tgid: Option<u32>,
    /// Name.
    pub comm: Option<String>,
    /// Name of the process.
    pub process_comm: Option<String>,
    /// Path of the cgroup.
    pub cgroup: Option<String>,
    /// Start of the task.
    pub start_time_ns: Option<u64>,
    /// All its tasks have ended.
    pub exited: bool,
    /// It belongs to the recorder.
    pub is_self: bool,
    /// Tasks in it.
    pub n_tasks: u64,
    /// Its figures.
    #[serde(flatten)]
    pub stats: Stats,
    /// Its audit.
    pub audit: Audit,
}

/// What the recording cost.
#[derive(Debug, Deserialize)]
pub struct Cost {
    /// Run time of the programs over the switches seen.
    pub ns_per_switch: Option<f64>,
    /// Their share of one CPU.
    pub cpu_pct: Option<f64>,
}

impl Report {
    /// Reads a final document.
    pub fn parse(json: &str) -> Result<Self> {
        let report: Self = serde_json::from_str(json)
            .with_context(|| format!("the report breaks the contract:\n{}", excerpt(json)))?;
        ensure!(
            report.schema == "schedlat.record",
            "the schema is '{}'",
            report.schema
        );
        Ok(report)
    }

    /// The row of a thread.
    pub fn task(&self, tid: u32) -> Result<&Row> {
        let mut rows = self.tasks.iter().filter(|row| row.tid == Some(tid));
        let row = rows.next().with_context(|| {
            let known: Vec<_> = self
                .tasks
                .iter()
                .filter_map(|row| row.tid)
                .take(30)
                .collect();
            format!("no row for thread {tid}; the rows are {known:?}")
        })?;
        ensure!(rows.next().is_none(), "thread {tid} has two rows");
        Ok(row)
    }

    /// The rows of threads with a name.
    #[must_use]
    pub fn named(&self, comm: &str) -> Vec<&Row> {
        self.tasks
            .iter()
            .filter(|row| row.comm.as_deref() == Some(comm))
            .collect()
    }

    /// One kind of loss; an unknown kind is an error, not zero.
    pub fn lost(&self, kind: &str) -> Result<u64> {
        self.loss
            .get(kind)
            .copied()
            .with_context(|| format!("the report knows no loss '{kind}'"))
    }

    /// Length of the window.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        ns_of_seconds(self.window.seconds)
    }
}

/// Nanoseconds of a count of seconds.
#[must_use]
pub fn ns_of_seconds(seconds: f64) -> u64 {
    crate::truth::nanos(std::time::Duration::from_secs_f64(seconds.max(0.0)))
}

/// The beginning of a document, for error messages.
fn excerpt(text: &str) -> &str {
    let end = text
        .char_indices()
        .nth(2000)
        .map_or(text.len(), |(at, _)| at);
    &text[..end]
}
