//! What a probe ran under, as the kernel said.

use serde::Serialize;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conditions {
    /// The probe's threads.
    pub threads: Vec<ThreadConditions>,
    /// The kernel's clock source.
    pub clocksource: Clocksources,
    /// How much of the time real-time tasks may have; absent where that cannot be read.
    pub rt_limit: Option<RtLimit>,
    /// How long the probe's threads were out of quota while they wanted to run.
    pub throttled_ns: u64,
    /// All memory of the process was locked, not only the samples.
    pub is_memory_locked: bool,
    /// CPUs were kept from idle states that take long to leave.
    pub are_idle_states_held: bool,
    /// Time a hypervisor kept from all CPUs together.
    pub steal_ns: u64,
    /// Loads that ran beside it.
    pub loads: Vec<LoadReport>,
    /// Who else had the CPUs: before the probe's threads came to run, and while they waited.
    pub others: Vec<OtherTask>,
}

/// What one thread ran under.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadConditions {
    /// Its thread id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// The policy it was given.
    pub asked_policy: String,
    /// The CPU it was bound to.
    pub asked_cpu: Option<u32>,
    /// The policy the kernel says it has.
    pub policy: &'static str,
    /// The real-time priority; 0 without.
    pub priority: u32,
    /// The nice value.
    pub nice: i32,
    /// Whether these are what was asked for.
    pub is_as_asked: bool,
    /// CPUs it may run on.
    pub affinity: String,
    /// How late its timers may be on purpose.
    pub timer_slack_ns: u64,
}

/// The clock source before and after: a change means that the kernel no longer trusted the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clocksources {
    /// Before the first sample.
    pub at_start: String,
    /// After the last one.
    pub at_end: String,
}

/// `sched_rt_runtime_us` in `sched_rt_period_us`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RtLimit {
    /// Time in each period; absent without a limit.
    pub runtime_ns: Option<u64>,
    /// The period.
    pub period_ns: u64,
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoadReport {
    /// Which.
    pub load: String,
    /// Turns of its workers; 0 for a command.
    pub n_iterations: u64,
    /// Bytes written, copied or handed over.
    pub n_bytes: u64,
    /// CPU time of its processes.
    pub cpu_ns: u64,
    /// It loaded nothing, or not to the end.
    pub has_failed: bool,
    /// Why it ended before it was stopped.
    pub failed: Option<String>,
}

/// A task that had a CPU of the probe's threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OtherTask {
    /// Its thread id; 0 is the idle task, or several of one name.
    pub tid: u32,
    /// Its name; absent where it had ended before it could be asked for.
    pub comm: Option<String>,
    /// How often it had the CPU right before a thread of the probe.
    pub n_before: u64,
    /// How long threads of the probe waited while it ran.
    pub waited_for_ns: u64,
}
