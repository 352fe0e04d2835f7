//! Tracepoints that a recording can do without: which this kernel lacks, and what is lost with them.
//!
//! Those of one group are attached together or not at all, since a begin without its end would be worse
//! than neither. What a recording cannot do without is among the required features.

use super::{
    arch,
    btf::KernelTypes,
    feature::{Feature, degradable, optional},
};

/// The feature that tells interrupts from the tasks that they interrupt.
pub(super) const INTERRUPTS_SEEN: &str = "interrupts";

/// The feature that tells the functions of the kernel's workers apart.
pub(super) const WORK_FUNCTIONS: &str = "work functions";

/// The feature that counts the calls of `sched_yield` that reach the scheduler.
pub(super) const YIELD_CALLS: &str = "calls of sched_yield";

/// Tracepoints that a recording does without where they do not exist.
#[derive(Clone, Debug, Default)]
pub struct Lacking {
    /// All of each group of which one is missing.
    tracepoints: Vec<&'static str>,
}

/// What takes a CPU from its task. Begins are attached after ends, so that none is seen without its end.
/// The first [`N_ON_ANY_MACHINE`] exist on any machine, the others where vectors have events of their own.
pub(super) const INTERRUPTS: [[&str; 2]; 7] = [
    ["irq_handler_exit", "irq_handler_entry"],
    ["softirq_exit", "softirq_entry"],
    ["local_timer_exit", "local_timer_entry"],
    ["reschedule_exit", "reschedule_entry"],
    ["call_function_exit", "call_function_entry"],
    ["call_function_single_exit", "call_function_single_entry"],
    ["irq_work_exit", "irq_work_entry"],
];

const N_ON_ANY_MACHINE: usize = 2;

/// What tells the functions of the kernel's workers apart.
pub(super) const WORKS: [&str; 2] = ["workqueue_execute_end", "workqueue_execute_start"];

/// What tells the tick and the slice timer from other timers.
pub(super) const TIMERS: [&str; 2] = ["hrtimer_expire_entry", "hrtimer_expire_exit"];

/// What follows cgroups.
pub(super) const CGROUPS: [&str; 2] = ["cgroup_attach_task", "cgroup_mkdir"];

/// Each call of `schedule()`, by which calls of `sched_yield` are counted.
pub(super) const SCHED_ENTRY: &str = "sched_entry_tp";

/// Its return; only needed where timers ask for nothing.
pub(super) const SCHED_EXIT: &str = "sched_exit_tp";

impl Lacking {
    /// By type information.
    pub(super) fn of(types: &KernelTypes) -> Self {
        Self::unless(|name| types.has_tracepoint(name))
    }

    /// All that `exists` denies.
    pub(super) fn unless(exists: impl Fn(&str) -> bool) -> Self {
        let incomplete = groups().filter(|group| !group.iter().all(|name| exists(name)));
        Self {
            tracepoints: incomplete.flatten().copied().collect(),
        }
    }

    /// Whether nothing can be attached to it.
    #[must_use]
    pub fn has(&self, tracepoint: &str) -> bool {
        self.tracepoints.contains(&tracepoint)
    }

    /// What it means, feature by feature. The timers' is told with the causes that rest on them.
    pub(super) fn features(&self) -> [Feature; 4] {
        let unseen = self.unseen_interrupts(arch::HAS_VECTOR_EVENTS).join(", ");
        [
            degradable(
                INTERRUPTS_SEEN,
                unseen.is_empty(),
                "the entries and exits of all kinds are in BTF",
                &format!("no {unseen}: their time is that of the task that they interrupt"),
                "a kernel with these tracepoints",
            ),
            optional(
                WORK_FUNCTIONS,
                !self.has(WORKS[0]),
                "workers of the kernel are named by what they work on",
                "no workqueue_execute_start and workqueue_execute_end: workers have their thread's name only",
                "a kernel with these tracepoints",
            ),
            optional(
                "moves between cgroups",
                !self.has(CGROUPS[0]),
                "cgroup_attach_task and cgroup_mkdir are in BTF",
                "no cgroup_attach_task and cgroup_mkdir: tasks keep the group in which they were found",
                "a kernel with CONFIG_CGROUPS=y",
            ),
            optional(
                YIELD_CALLS,
                !self.has(SCHED_ENTRY),
                "for probe yield the kernel counts them at sched_entry_tp",
                "no sched_entry_tp: how many calls of probe yield the kernel saw is not known",
                "a kernel of 6.16 or later",
            ),
        ]
    }

    /// Interrupts that are not seen, by the names of their begins.
    fn unseen_interrupts(&self, has_vector_events: bool) -> Vec<&'static str> {
        let n_expected = if has_vector_events {
            INTERRUPTS.len()
        } else {
            N_ON_ANY_MACHINE
        };
        let begins = INTERRUPTS.into_iter().map(|[_, begin]| begin);
        let begins = begins.take(n_expected);
        begins.filter(|name| self.has(name)).collect()
    }
}

fn groups() -> impl Iterator<Item = &'static [&'static str]> {
    const SINGLE: [&[&str]; 2] = [&[SCHED_ENTRY], &[SCHED_EXIT]];
    const PAIRS: [&[&str]; 3] = [&WORKS, &TIMERS, &CGROUPS];
    let interrupts = INTERRUPTS.iter().map(|pair| &pair[..]);
    interrupts.chain(PAIRS).chain(SINGLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lacking_where_everything_exists() {
        assert!(Lacking::unless(|_| true).tracepoints.is_empty());
    }

    #[test]
    fn what_lacks_its_counterpart_is_lacking_too() {
        for missing in ["local_timer_entry", "local_timer_exit"] {
            let lacking = Lacking::unless(|name| name != missing);
            assert_eq!(lacking.tracepoints, INTERRUPTS[2]);
            assert_eq!(lacking.unseen_interrupts(true), ["local_timer_entry"]);
            assert!(lacking.has("local_timer_entry") && lacking.has("local_timer_exit"));
            assert!(!lacking.has("softirq_entry"));
        }
    }

    #[test]
    fn vectors_without_events_of_their_own_are_seen_like_devices() {
        let lacking = Lacking::unless(|name| name.starts_with("irq_handler"));
        assert_eq!(lacking.unseen_interrupts(false), ["softirq_entry"]);
        assert_eq!(lacking.unseen_interrupts(true).len(), INTERRUPTS.len() - 1);
    }

    #[test]
    fn every_group_can_be_missing_alone() {
        for group in groups() {
            let lacking = Lacking::unless(|name| name != group[0]);
            assert_eq!(lacking.tracepoints, group);
        }
    }
}
