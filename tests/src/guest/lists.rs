//! Which checks a machine runs; `cargo xtask vm` boots it with the name of a list.

use anyhow::{Result, bail, ensure};

use super::{checks, clocks, hotplug, lockdep, preemption, refusal, suspend, topology};

/// A check, and what it says beside passing.
pub(super) type Check = fn() -> Result<String>;

type List = &'static [(&'static str, Check)];

/// Any kernel that schedlat works on. The last one changes the kernel for good.
const ALL: List = &[
    ("doctor", checks::doctor),
    ("yielders_yield", checks::yielders),
    ("pipe_switches_to_the_unit", checks::pipe),
    ("cgroup_v2_selects", checks::cgroup_selects),
    ("cgroup_quota_throttles", checks::cgroup_throttles),
    ("probe_wake_is_matched", checks::probe_wake),
    (
        "probe_wake_compares_the_preemption_models",
        preemption::probe_compares,
    ),
    (
        "causes_are_right_under_every_preemption_model",
        preemption::causes_are_right,
    ),
    (
        "c024_a_wait_without_end_is_shown_as_open",
        clocks::endless_wait,
    ),
    (
        "c068_the_time_of_a_suspended_machine_is_in_no_figure",
        suspend::is_in_no_figure,
    ),
    ("membarrier_and_proc_stress_is_survived", checks::stress),
    ("lockdown_confidentiality", checks::lockdown),
];

/// Kernels on which schedlat cannot work.
const REFUSAL: List = &[
    ("doctor_says_what_is_missing", refusal::doctor),
    ("record_refuses", refusal::record),
    ("probe_refuses", refusal::probe),
];

/// A machine of two sockets of two cores of two threads; and what is the same on every kernel, so that
/// one has to show it. What does not depend on neighbours is checked on this kernel with two CPUs.
const TOPOLOGY: List = &[
    ("doctor", checks::doctor),
    ("pingpong_finds_every_placement", topology::pingpong),
    ("wakeups_are_placed_where_the_tasks_ran", topology::wakeups),
    (
        "remote_wakeups_of_a_real_time_task_preempt",
        topology::remote_preemption,
    ),
    (
        "c064_a_cpu_goes_offline_and_comes_back",
        hotplug::goes_and_comes,
    ),
    (
        "c064_a_recording_starts_without_a_cpu",
        hotplug::starts_without,
    ),
    (
        "a_preemption_model_that_is_not_put_back_is_told",
        preemption::failure_is_told,
    ),
    ("c066_steps_of_the_clock_change_no_figure", clocks::steps),
];

/// A kernel that watches its locks, and is slow: what takes locks in the scheduler's paths, and at the end
/// whether it has found anything.
const LOCKDEP: List = &[
    ("doctor", checks::doctor),
    ("pipe_switches_to_the_unit", checks::pipe),
    ("cgroup_quota_throttles", checks::cgroup_throttles),
    ("probe_wake_is_matched", checks::probe_wake),
    (
        "causes_are_right_under_every_preemption_model",
        preemption::causes_are_right,
    ),
    ("membarrier_and_proc_stress_is_survived", checks::stress),
    ("c063_no_lock_waits_for_another", lockdep::no_trouble),
];

/// The checks of the list of this name; only those whose name contains `only`, where that is given.
pub(super) fn checks(
    list: &str,
    only: Option<&str>,
) -> Result<Vec<&'static (&'static str, Check)>> {
    let all = match list {
        "all" => ALL,
        "refusal" => REFUSAL,
        "topology" => TOPOLOGY,
        "lockdep" => LOCKDEP,
        _ => bail!("no list of checks is called '{list}'"),
    };
    let is_wanted = |(name, _): &&(&str, Check)| only.is_none_or(|only| name.contains(only));
    let checks: Vec<_> = all.iter().filter(is_wanted).collect();
    ensure!(!checks.is_empty(), "no check of '{list}' is called so");
    Ok(checks)
}
