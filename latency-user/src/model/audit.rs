//! Two accounts of the same waits, side by side.

use std::collections::BTreeMap;

use serde::Serialize;

/// Both accounts of the waits of one kind or cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AuditClass {
    /// Waits.
    pub count: u64,
    /// Ours.
    pub ours_ns: u64,
    /// The kernel's (`sched_info.run_delay`).
    pub kernel_ns: u64,
}

/// Our switches against the kernel's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SwitchAudit {
    /// Ours.
    pub voluntary_ours: u64,
    /// Growth of `nvcsw`.
    pub voluntary_kernel: u64,
    /// Ours, yields included.
    pub involuntary_ours: u64,
    /// Growth of `nivcsw`.
    pub involuntary_kernel: u64,
    /// The same over all CPUs; only in the audit of the totals.
    #[serde(flatten)]
    pub all: Option<AllSwitchAudit>,
}

/// All switches of all CPUs, idle included, whatever was selected, against the kernel's counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AllSwitchAudit {
    /// Switches seen.
    pub all_ours: u64,
    /// Breaks in the chain of switches: an unseen switch each.
    pub missed: u64,
    /// Growth of `ctxt` of `/proc/stat`.
    pub all_kernel: u64,
    /// Switches that happened while both were read.
    pub all_kernel_slack: u64,
}

/// Ticks of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TickAudit {
    /// Ticks handled.
    pub ticks: u64,
    /// High-resolution slice timers handled.
    pub hrticks: u64,
    /// Local timer interrupts of the same time, all causes.
    pub local_timer_interrupts: Option<u64>,
}

/// Something the audit has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A fixed word for programs, e.g. `switches_differ`.
    pub code: &'static str,
    /// Whether it makes the audit fail. A known blind spot of the kernel's account does not.
    pub is_breach: bool,
    /// A sentence for people.
    pub text: String,
}

/// The audit of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Audit {
    /// By `after_wakeup`, `new_task`, each cause, `open_at_start` and `unmeasured`; only those that occur.
    pub by_cause: BTreeMap<&'static str, AuditClass>,
    /// All waits that ended, ours.
    pub run_delay_ours_ns: u64,
    /// All of the kernel's run delay within the window, measured by us or not.
    pub run_delay_kernel_ns: u64,
    /// Switches.
    pub switches: SwitchAudit,
    /// Time on a CPU over the audited stints, ours.
    pub on_cpu_ours_ns: u64,
    /// The kernel's.
    pub on_cpu_kernel_ns: u64,
    /// The kernel's account of stints whose begin or end fired no event; we have none.
    pub on_cpu_unseen_kernel_ns: u64,
    /// Ticks; only in the audit of the totals.
    #[serde(flatten)]
    pub ticks: Option<TickAudit>,
    /// No finding is a breach.
    pub ok: bool,
    /// What was found.
    pub findings: Vec<Finding>,
}
