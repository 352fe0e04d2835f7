//! Single waits: as the kernel side records them, and taken apart for a report.

use std::sync::Arc;

use latency_common::record::WaitRecord;
use serde::Serialize;

use super::{Parts, SchedClass, WakerIdent};

/// A long wait that has ended.
#[derive(Clone, Debug)]
pub struct WaitEvent {
    /// What the kernel side knows of it.
    pub record: WaitRecord,
    /// Path of the task's cgroup.
    pub cgroup: Arc<str>,
}

impl WaitEvent {
    /// Its length.
    #[must_use]
    pub const fn wait_ns(&self) -> u64 {
        self.record.until_ns.saturating_sub(self.record.since_ns)
    }
}

/// Who waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Victim {
    /// Name of the thread, escaped where it is not printable UTF-8.
    pub comm: String,
    /// Its id.
    pub tid: u32,
    /// Its process's id.
    pub tgid: u32,
    /// Name of the process's leader.
    pub process_comm: String,
    /// Path of its cgroup.
    pub cgroup: String,
}

/// What had the CPU for a stretch of a wait. Keys that do not fit the kind are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Span {
    /// `task`, `idle`, `unseen`, `throttled`, or the kind of an interrupt.
    pub kind: &'static str,
    /// Name of the task; empty where it had ended before the wait did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// Its thread id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Its process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tgid: Option<u32>,
    /// Its priority as the kernel counts; absent where it had ended before the wait did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prio: Option<i16>,
    /// The class of that priority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sched_class: Option<SchedClass>,
    /// The function that it worked on, of a worker of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// The system call that the task was in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syscall: Option<String>,
    /// Functions of the kernel that the task was in, leaf first; `[user]` alone for user space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<Vec<String>>,
    /// Name of the interrupt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Runs of the interrupt, with nothing else between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// When it began, or the wait did.
    pub at_ns: u64,
    /// Its time within the wait, without what interrupted it.
    pub ns: u64,
}

/// One wait taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Autopsy {
    /// Who waited.
    pub victim: Victim,
    /// Why the wait began: `after_wakeup`, `new_task`, or a cause.
    pub cause: &'static str,
    /// Its length.
    pub wait_ns: u64,
    /// When it began, `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Where it ended.
    pub cpu: u32,
    /// When the task came to that CPU's queue: later than `at_ns` where it was moved.
    pub here_at_ns: u64,
    /// What it was made of.
    pub parts: Parts,
    /// Who woke the task; none where the wait began otherwise.
    pub waker: Option<WakerIdent>,
    /// What ran on `cpu` meanwhile, since the task came to its queue, in the order of their begins.
    pub spans: Vec<Span>,
    /// Some that ran first is not in `spans`: too much happened since.
    pub hidden_spans: bool,
    /// What would have helped, where that is certain.
    pub hint: Option<String>,
}

/// Waits over a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OverStats {
    /// The threshold.
    pub over_ns: u64,
    /// Waits at least as long.
    pub count: u64,
    /// Of those, what was not printed as it happened, since there were too many.
    pub not_shown: u64,
}
