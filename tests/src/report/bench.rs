//! The document of `schedlat bench --format json`.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::Audit;
use crate::outcome::Outcome;

/// The whole document.
#[derive(Debug, Deserialize)]
pub struct Bench {
    /// `schedlat.bench`.
    pub schema: String,
    /// Of the program.
    pub version: String,
    /// Where.
    pub host: Value,
    /// Under what.
    pub conditions: Value,
    /// Doubts.
    pub warnings: Vec<Warning>,
    /// What decides the order.
    pub seed: u64,
    /// Repetitions, in their order.
    pub runs: Vec<BenchRun>,
    /// Three rows for each label.
    pub summary: Vec<BenchRow>,
}

/// A doubt.
#[derive(Debug, Deserialize)]
pub struct Warning {
    /// A fixed word.
    pub kind: String,
    /// A sentence.
    pub message: String,
    /// What to do.
    pub advice: String,
}

/// The columns of the table.
#[derive(Clone, Debug, Deserialize)]
pub struct BenchRow {
    /// Which command.
    pub label: String,
    /// `average`, `minimum` or `maximum`; only of a summary.
    pub statistic: Option<String>,
    /// Seconds from start to end.
    pub real_s: f64,
    /// Seconds on a CPU.
    pub cpu_s: f64,
    /// Of those, in the kernel.
    pub sys_pct: f64,
    /// CPU time over real time.
    pub tpt_pct: f64,
    /// Seconds waited.
    pub delay_s: f64,
    /// Switches.
    pub cxsw: f64,
    /// Blocked.
    pub voluntary: f64,
    /// Runnable.
    pub involuntary: f64,
    /// By `sched_yield`.
    pub r#yield: f64,
    /// Moves.
    pub migrations: f64,
    /// Waiting at a time.
    pub waiters: f64,
    /// Delay by switch.
    pub delay_per_switch_ns: f64,
    /// Idle CPU time while tasks waited.
    pub idle_while_runnable_s: Option<f64>,
}

/// A repetition.
#[derive(Debug, Deserialize)]
pub struct BenchRun {
    /// Its columns.
    #[serde(flatten)]
    pub row: BenchRow,
    /// From 1.
    pub repetition: u32,
    /// From 1.
    pub place: u32,
    /// Both accounts.
    pub reconciliation: Reconciliation,
    /// By cause.
    pub audit: Audit,
    /// Of the command.
    pub exit_code: u8,
}

/// Ours beside the kernel's.
#[derive(Debug, Deserialize)]
pub struct Reconciliation {
    /// The kernel's.
    pub rusage: Rusage,
    /// Ours.
    pub cpu_ours_s: f64,
    /// Ours.
    pub switches_ours: u64,
    /// How many more ours are.
    pub switches_apart: i64,
    /// In no account of the kernel.
    pub last_switches_of_threads: u64,
    /// Perhaps in none.
    pub last_switches_of_processes: u64,
    /// Fired no event.
    pub missed_switches: u64,
    /// Tasks that nobody waits for.
    pub left_running: u64,
    /// A verdict.
    pub is_cpu_equal: bool,
    /// A verdict.
    pub are_switches_equal: bool,
    /// A verdict.
    pub is_audit_ok: bool,
}

/// `rusage` of the command and all that was waited for.
#[derive(Debug, Deserialize)]
pub struct Rusage {
    /// Seconds in user space.
    pub user_s: f64,
    /// Seconds in the kernel.
    pub system_s: f64,
    /// `nvcsw`.
    pub voluntary: u64,
    /// `nivcsw`.
    pub involuntary: u64,
}

impl Bench {
    /// The document of a finished bench.
    pub fn of(outcome: &Outcome) -> Result<Self> {
        let document = outcome.only_document()?;
        let bench: Self = serde_json::from_value(document)
            .with_context(|| format!("the contract is broken:\n{}", outcome.output()))?;
        ensure!(
            bench.schema == "schedlat.bench",
            "the schema is {}",
            bench.schema
        );
        Ok(bench)
    }

    /// Repetitions of one command.
    pub fn runs_of<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a BenchRun> {
        self.runs.iter().filter(move |run| run.row.label == label)
    }

    /// A row of the summary.
    pub fn summary_of(&self, label: &str, statistic: &str) -> Result<&BenchRow> {
        let mut rows = self.summary.iter();
        rows.find(|row| row.label == label && row.statistic.as_deref() == Some(statistic))
            .with_context(|| format!("no {statistic} of {label}"))
    }
}
