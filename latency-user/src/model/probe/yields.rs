//! Results of `probe yield`.

use serde::Serialize;

use super::{Figures, Verdict};

/// One class beside one peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct YieldSeries {
    /// Policy of the probe and of its peer.
    pub policy: String,
    /// The CPU of both.
    pub cpu: u32,
    /// `none`, `yielder` or `spinner`.
    pub peer: &'static str,
    /// What ran beside.
    pub load: String,
    /// The kernel's preemption model, where it was switched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<String>,
    /// Calls.
    pub yields: u64,
    /// Calls that the kernel counted; absent where it has no tracepoint that shows them (before 6.16).
    pub kernel_saw: Option<u64>,
    /// Calls that gave the CPU to another task.
    pub switched: u64,
    /// Their share.
    pub switched_pct: f64,
    /// Calls in which the CPU was lost, but not to the call.
    pub lost: u64,
    /// Switches by a yield that the recorder counted of this thread.
    pub kernel_switched: u64,
    /// Of those seen one by one, the ones that are in no call.
    pub unmatched: u64,
    /// The most by which the kernel's waits in a call were longer than the call.
    pub worst_disagreement_ns: u64,
    /// Mean of all calls, one reading of the clock included.
    pub ns_per_yield: Option<i64>,
    /// Calls that gave the CPU away, until they were back.
    pub switched_ns: Figures,
    /// Calls that came back at once.
    pub unswitched_ns: Figures,
    /// Calls in which the CPU was lost otherwise.
    pub lost_ns: Figures,
    /// Who ran while the probe was not on its CPU, whatever the reason.
    pub ran_instead: Vec<RanInstead>,
    /// `count`, `time`, `watchdog` or `signal`.
    pub ended_by: &'static str,
    /// What it comes to.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A task that ran instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RanInstead {
    /// Its name.
    pub comm: String,
    /// Its thread id; 0 for several.
    pub tid: u32,
    /// Its process; 0 for several.
    pub tgid: u32,
    /// `same_process`, `same_cgroup`, `foreign` or `kernel_thread`.
    pub kind: &'static str,
    /// It is the probe's own peer.
    pub is_peer: bool,
    /// Stretches of its running.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// Their mean.
    pub mean_ns: u64,
    /// The longest.
    pub max_ns: u64,
}
