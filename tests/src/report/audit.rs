//! The audit of a report: two accounts of the same.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Both accounts of the waits of one kind or cause.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct AuditClass {
    /// Waits.
    pub count: u64,
    /// Ours.
    pub ours_ns: u64,
    /// The kernel's.
    pub kernel_ns: u64,
}

/// Our switches against the kernel's.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct SwitchAudit {
    /// Ours.
    pub voluntary_ours: u64,
    /// Growth of `nvcsw`.
    pub voluntary_kernel: u64,
    /// Ours.
    pub involuntary_ours: u64,
    /// Growth of `nivcsw`.
    pub involuntary_kernel: u64,
    /// Switches seen on all CPUs.
    #[serde(default)]
    pub all_ours: u64,
    /// Breaks in the chain of switches.
    #[serde(default)]
    pub missed: u64,
    /// Growth of `ctxt`.
    #[serde(default)]
    pub all_kernel: u64,
    /// Switches that happened while both were read.
    #[serde(default)]
    pub all_kernel_slack: u64,
}

/// Something the audit has to say.
#[derive(Debug, Deserialize)]
pub struct Finding {
    /// A fixed word.
    pub code: String,
    /// Whether it makes the audit fail.
    pub is_breach: bool,
    /// A sentence.
    pub text: String,
}

/// The audit of a recording or of a row.
#[derive(Debug, Deserialize)]
pub struct Audit {
    /// By kind and cause.
    pub by_cause: BTreeMap<String, AuditClass>,
    /// All waits, ours.
    pub run_delay_ours_ns: u64,
    /// All of the kernel's run delay.
    pub run_delay_kernel_ns: u64,
    /// Switches.
    pub switches: SwitchAudit,
    /// Time on a CPU, ours.
    pub on_cpu_ours_ns: u64,
    /// The kernel's.
    pub on_cpu_kernel_ns: u64,
    /// The kernel's, of stints that we did not see.
    pub on_cpu_unseen_kernel_ns: u64,
    /// Ticks handled.
    #[serde(default)]
    pub ticks: u64,
    /// No finding is a breach.
    pub ok: bool,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Audit {
    /// Both accounts of one class; zero when it did not occur.
    #[must_use]
    pub fn class(&self, class: &str) -> AuditClass {
        self.by_cause.get(class).copied().unwrap_or_default()
    }
}
