//! The whole report of a recording: the JSON contract.

use latency_common::config::Detail;
use serde::Serialize;

use super::{
    Audit, Autopsy, Censored, FlightDump, Host, InterruptTotalStats, Losses, OverStats, PathStats,
    Stats,
};

/// What a row stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupBy {
    /// One thread.
    #[default]
    Tid,
    /// One process.
    Pid,
    /// All threads of one name.
    Comm,
    /// All threads of one cgroup.
    Cgroup,
}

/// How much was measured. Each includes the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DetailLevel {
    /// Nothing: the programs return at once.
    Empty,
    /// Waits by kind, in the kernel's own account.
    Basic,
    /// Waits, wakeup latency and causes.
    Causes,
    /// Everything: what each wait was made of as well.
    #[default]
    Full,
}

impl From<Detail> for DetailLevel {
    fn from(detail: Detail) -> Self {
        match detail {
            Detail::Empty => Self::Empty,
            Detail::Basic => Self::Basic,
            Detail::Causes => Self::Causes,
            Detail::Full => Self::Full,
        }
    }
}

/// The time observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// Its length.
    pub seconds: f64,
    /// Its start, `CLOCK_MONOTONIC`.
    pub start_at_ns: u64,
    /// Its end, `CLOCK_MONOTONIC`.
    pub end_at_ns: u64,
    /// Its start, nanoseconds since 1970.
    pub start_wall_ns: u64,
    /// How long the machine was suspended within it, which is no part of its length.
    pub suspended_ns: u64,
}

/// Who a row is. Keys that do not fit the grouping are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowIdent {
    /// Thread id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tgid: Option<u32>,
    /// Name: the thread's, the process leader's for `--by pid`, the group's for `--by comm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// Name of the process's leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_comm: Option<String>,
    /// Path of the cgroup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Start on the boot clock: with `tid` the identity of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time_ns: Option<u64>,
    /// All its tasks have ended.
    pub exited: bool,
    /// It is the recorder itself.
    pub is_self: bool,
    /// Tasks in the row.
    pub n_tasks: u64,
}

/// One line of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Who.
    #[serde(flatten)]
    pub ident: RowIdent,
    /// Its figures.
    #[serde(flatten)]
    pub stats: Stats,
    /// Its own audit.
    pub audit: Audit,
}

/// What the recording itself cost, by the kernel's count over the slices in which that was on.
///
/// The programs run at timers and wakeups as well as at switches. `ns_per_switch` spreads the time
/// of all of them over the switches, so on a machine that seldom switches it is large although the
/// cost, `cpu_pct`, is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Run time of all our programs, whatever they ran at, over the switches seen; absent without
    /// the right to ask.
    pub ns_per_switch: Option<f64>,
    /// Their share of one CPU, in percent.
    pub cpu_pct: Option<f64>,
    /// Mean run time of one program.
    pub ns_per_run: Option<f64>,
    /// How long the kernel's statistics were on.
    pub sampled_ns: u64,
    /// Share of one CPU that the recorder's own process used, in percent.
    pub recorder_cpu_pct: f64,
    /// From the first look at the kernel to the beginning of the window.
    pub attach_ns: u64,
}

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Where.
    pub host: Host,
    /// When.
    pub window: Window,
    /// What was asked for, in words, e.g. `all tasks` or `--comm 'postgres*'`.
    pub target: String,
    /// What a row stands for.
    pub by: GroupBy,
    /// How much was measured.
    pub detail: DetailLevel,
    /// All selected tasks together.
    pub totals: Stats,
    /// Selected tasks.
    pub n_tasks: u64,
    /// Their processes.
    pub n_processes: u64,
    /// Rows, largest sum of waits first.
    pub rows: Vec<Row>,
    /// All interrupts that ran, on any CPU, largest sum first.
    pub interrupts: Vec<InterruptTotalStats>,
    /// The longest waits, taken apart, the longest first; not of intervals.
    pub longest: Vec<Autopsy>,
    /// What others did in the kernel meanwhile; not of intervals.
    pub stacks: PathStats,
    /// Waits over the threshold, where one was asked for.
    pub over: Option<OverStats>,
    /// The audit of the totals.
    pub audit: Audit,
    /// Waits cut by the window.
    pub censored: Censored,
    /// What was lost.
    pub loss: Losses,
    /// What it cost.
    pub cost: Cost,
    /// Time a hypervisor kept from the CPUs.
    pub steal_ns: u64,
    /// Features that were degraded or missing, in words.
    pub degraded: Vec<String>,
    /// Dumps of the flight recorder; none without one.
    pub flight: Vec<FlightDump>,
}
