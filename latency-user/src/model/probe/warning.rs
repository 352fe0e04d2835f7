//! Doubts about a measurement: typed, each with what it means and what to do.

use serde::Serialize;

use crate::units;

/// Something about the conditions that figures depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "Told")]
pub enum Warning {
    /// A thread has not the policy that was asked for.
    OtherPolicy {
        /// Thread id.
        tid: u32,
        /// What was asked for.
        asked: String,
        /// What it has.
        effective: String,
    },
    /// The timers of a fair thread may be late on purpose.
    TimerSlack {
        /// By so much.
        slack_ns: u64,
    },
    /// The kernel changed its clock source meanwhile.
    ClocksourceChanged {
        /// From this.
        from: String,
        /// To this.
        to: String,
    },
    /// Reading the clock takes long.
    SlowClocksource(
        /// Its name.
        String,
    ),
    /// Threads were out of quota.
    Throttled {
        /// For so long.
        ns: u64,
    },
    /// Priority 99 is that of the kernel's own urgent threads.
    TopPriority,
    /// Some percentiles are not shown.
    FewSamples {
        /// There are so many.
        n_samples: u64,
        /// So many show all.
        n_needed: u64,
    },
    /// Samples could be paged out.
    NotLocked,
    /// A load did nothing, or ended early.
    LoadFailed {
        /// Which.
        load: String,
        /// Why, where it says.
        why: Option<String>,
    },
    /// Time was kept from the CPUs by the hypervisor.
    Stolen {
        /// So much.
        ns: u64,
    },
    /// The machine has no such place for two threads.
    NoPlacement {
        /// Which.
        placement: String,
        /// Why.
        why: String,
    },
    /// The kernel has no such preemption model.
    NoPreemptionModel {
        /// Which.
        model: String,
        /// What it has.
        why: String,
    },
    /// The kernel's preemption model is not what it was before.
    ModelNotPutBack {
        /// Why.
        why: String,
    },
    /// A command failed, and nothing was run after it.
    CommandFailed {
        /// Its exit code.
        code: u8,
    },
    /// The probe was ended before its time.
    EndedEarly,
}

/// How a warning is told.
#[derive(Serialize)]
struct Told {
    kind: &'static str,
    message: String,
    advice: String,
}

impl Warning {
    /// Its name for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::OtherPolicy { .. } => "other_policy",
            Self::TimerSlack { .. } => "timer_slack",
            Self::ClocksourceChanged { .. } => "clocksource_changed",
            Self::SlowClocksource(_) => "slow_clocksource",
            Self::Throttled { .. } => "throttled",
            Self::TopPriority => "top_priority",
            Self::FewSamples { .. } => "few_samples",
            Self::NotLocked => "not_locked",
            Self::LoadFailed { .. } => "load_failed",
            Self::Stolen { .. } => "stolen",
            Self::NoPlacement { .. } => "no_placement",
            Self::NoPreemptionModel { .. } => "no_preemption_model",
            Self::ModelNotPutBack { .. } => "model_not_put_back",
            Self::CommandFailed { .. } => "command_failed",
            Self::EndedEarly => "ended_early",
        }
    }

    /// What is the matter.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::OtherPolicy {
                tid,
                asked,
                effective,
            } => format!("thread {tid} runs under {effective}, not under {asked}"),
            Self::TimerSlack { slack_ns } => format!(
                "timers of the fair class may be {} late on purpose; that is shown apart",
                units::duration(*slack_ns)
            ),
            Self::ClocksourceChanged { from, to } => {
                format!("the clock source changed from {from} to {to}")
            }
            Self::SlowClocksource(name) => {
                format!(
                    "reading the clock source {name} takes microseconds, which are in the figures"
                )
            }
            Self::Throttled { ns } => format!(
                "threads of the probe were out of quota for {}",
                units::duration(*ns)
            ),
            Self::TopPriority => {
                "priority 99 keeps the kernel's own urgent threads from running".to_owned()
            }
            Self::FewSamples {
                n_samples,
                n_needed,
            } => format!(
                "{} samples are too few for all percentiles, which take {}",
                units::count(*n_samples),
                units::count(*n_needed)
            ),
            Self::NotLocked => "the memory of the samples could not be locked".to_owned(),
            Self::LoadFailed { load, why } => match why {
                Some(why) => format!("the load {load} ended early: {why}"),
                None => format!("the load {load} did next to nothing"),
            },
            Self::Stolen { ns } => {
                format!("the hypervisor kept {} from the CPUs", units::duration(*ns))
            }
            Self::NoPlacement { placement, why } => {
                format!("nothing was measured {placement}: {why}")
            }
            Self::NoPreemptionModel { model, why } => {
                format!("nothing was measured under preempt={model}: this kernel lacks it, {why}")
            }
            Self::ModelNotPutBack { why } => {
                format!("the old preemption model was not put back: {why}")
            }
            Self::CommandFailed { code } => {
                format!("a command failed with {code}, and nothing was run after it")
            }
            Self::EndedEarly => "a signal ended the probe before its time".to_owned(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::OtherPolicy { .. } => "look for what changes policies, such as a daemon",
            Self::TimerSlack { .. } => "--slack 1ns asks for timers that are on time",
            Self::ClocksourceChanged { .. } => "`dmesg` says why; do not trust the times around it",
            Self::SlowClocksource(_) => "use tsc where the machine has a stable one",
            Self::Throttled { .. } => "see sched_rt_runtime_us, or cpu.max of the cgroup",
            Self::TopPriority => "use at most 98",
            Self::FewSamples { .. } => "measure for longer",
            Self::NotLocked => "raise `ulimit -l`, or give the binary CAP_IPC_LOCK",
            Self::LoadFailed { .. } => "its figures are those of no load",
            Self::Stolen { .. } => "that time looks like waiting or like running; ask the host",
            Self::NoPlacement { .. } => "leave it out of --placement, or give more CPUs with --cpu",
            Self::NoPreemptionModel { .. } => "leave it out of --preempt",
            Self::ModelNotPutBack { .. } => "write it to /sys/kernel/debug/sched/preempt",
            Self::CommandFailed { .. } => "see what it says on standard error",
            Self::EndedEarly => "what was measured until then is in the figures",
        }
    }
}

impl From<Warning> for Told {
    fn from(warning: Warning) -> Self {
        Self {
            kind: warning.kind(),
            message: warning.message(),
            advice: warning.advice().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_is_told_with_its_kind_and_advice() {
        let told = serde_json::to_value(Warning::TimerSlack { slack_ns: 50_000 }).unwrap();
        assert_eq!(told["kind"], "timer_slack");
        assert_eq!(
            told["message"],
            "timers of the fair class may be 50.0 µs late on purpose; that is shown apart"
        );
        assert_eq!(
            told["advice"],
            "--slack 1ns asks for timers that are on time"
        );
    }
}
