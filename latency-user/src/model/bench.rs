//! What `schedlat bench` reports: repetitions of commands, and what sums them up.
//!
//! Field names are the JSON keys. Seconds are floats here, as in the tables of old; what ends in `_ns` is
//! in nanoseconds as everywhere.

use serde::Serialize;

use super::{Audit, AuditClass, Host, Losses, RunConditions, probe::Warning};

/// The columns of the table: of one repetition with whole counts, or of several with their means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BenchFigures<N> {
    /// From before the start of the command to after its end.
    pub real_s: f64,
    /// Time on a CPU, of all its tasks.
    pub cpu_s: f64,
    /// Of its CPU time, the part in the kernel.
    pub sys_pct: f64,
    /// CPU time in percent of the real time.
    pub tpt_pct: f64,
    /// Time its tasks waited for a CPU, together.
    pub delay_s: f64,
    /// Switches away from its tasks.
    pub cxsw: N,
    /// Of those, blocked.
    pub voluntary: N,
    /// Of those, still runnable, yields included.
    pub involuntary: N,
    /// Of those, by `sched_yield`.
    pub r#yield: N,
    /// Moves of its tasks to another CPU.
    pub migrations: N,
    /// Tasks waiting at a time, on average.
    pub waiters: f64,
    /// Delay by switch.
    pub delay_per_switch_ns: N,
    /// CPU time that was idle while its tasks waited; absent where it could not be measured.
    pub idle_while_runnable_s: Option<f64>,
}

/// The kernel's own account of a command's processes that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rusage {
    /// CPU time in user space.
    pub user_s: f64,
    /// CPU time in the kernel.
    pub system_s: f64,
    /// `nvcsw`.
    pub voluntary: u64,
    /// `nivcsw`.
    pub involuntary: u64,
}

/// Our figures of a repetition beside the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Reconciliation {
    /// The kernel's account.
    pub rusage: Rusage,
    /// CPU time of tasks that ended, ours.
    pub cpu_ours_s: f64,
    /// How far both are apart, in percent of the kernel's; positive where ours is more.
    pub cpu_apart_pct: f64,
    /// Switches of tasks that ended, ours.
    pub switches_ours: u64,
    /// How many more ours are.
    pub switches_apart: i64,
    /// Last switches of threads that ended, which the kernel adds to no account.
    pub last_switches_of_threads: u64,
    /// Last switches of processes that ended: each may come after the process was waited for.
    pub last_switches_of_processes: u64,
    /// Switches that fired no event.
    pub missed_switches: u64,
    /// Tasks that had not ended when the command had: nobody waits for them, and they are in no account.
    pub left_running: u64,
    /// All waits that ended, ours.
    pub delay_ours_s: f64,
    /// The kernel's run delay.
    pub delay_kernel_s: f64,
    /// Time on a CPU is within the tolerance.
    pub is_cpu_equal: bool,
    /// Switches are equal to the unit, but for those that are named here.
    pub are_switches_equal: bool,
    /// Waits by cause, switches and stints of every task are within the recorder's tolerances.
    pub is_audit_ok: bool,
}

impl Reconciliation {
    /// Whether all of it holds.
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        self.is_cpu_equal && self.are_switches_equal && self.is_audit_ok
    }
}

/// One repetition of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BenchRun {
    /// Which command.
    pub label: String,
    /// Its how-manieth repetition, from 1.
    pub repetition: u32,
    /// Its place among all that ran, from 1.
    pub place: u32,
    /// The table's columns.
    #[serde(flatten)]
    pub figures: BenchFigures<u64>,
    /// Tasks that it had.
    pub n_tasks: u64,
    /// What its tasks waited that may not run on all CPUs, and is not in `idle_while_runnable_s`.
    pub restricted_waiting_s: Option<f64>,
    /// Both accounts.
    pub reconciliation: Reconciliation,
    /// The recorder's audit, by cause.
    pub audit: Audit,
    /// What the recorder lost.
    pub loss: Losses,
    /// Its exit code.
    pub exit_code: u8,
}

/// Which figure of the repetitions a row has, column by column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The mean.
    #[default]
    Average,
    /// The smallest.
    Minimum,
    /// The largest.
    Maximum,
}

/// Repetitions of one command, summed up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BenchSummary {
    /// Which command.
    pub label: String,
    /// Which figure.
    pub statistic: Statistic,
    /// Of so many.
    pub n_runs: u64,
    /// The table's columns.
    #[serde(flatten)]
    pub figures: BenchFigures<f64>,
}

/// Both accounts of the waits of one cause, of all repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DelayByCause {
    /// Which cause, as in `audit.by_cause`.
    pub cause: &'static str,
    /// Both accounts.
    #[serde(flatten)]
    pub account: AuditClass,
}

/// The document of `schedlat bench`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BenchReport {
    /// Where.
    pub host: Host,
    /// What the commands ran under.
    pub conditions: RunConditions,
    /// Doubts, with advice.
    pub warnings: Vec<Warning>,
    /// Which label is which command.
    pub commands: Vec<BenchCommand>,
    /// What decides the order: the same number gives the same one.
    pub seed: u64,
    /// Repetitions in the order in which they ran; those to warm up are not among them.
    pub runs: Vec<BenchRun>,
    /// Three rows for each command.
    pub summary: Vec<BenchSummary>,
    /// Both accounts of all delays.
    pub delay_by_cause: Vec<DelayByCause>,
}

/// A command and its label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BenchCommand {
    /// What it is called in the tables.
    pub label: String,
    /// What is run.
    pub command: String,
}
