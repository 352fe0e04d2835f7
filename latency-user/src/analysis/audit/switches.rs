//! The audit's rules for switches, which are counted and therefore agree to the unit.
//!
//! Two differences are no error: a switch that is in flight on a CPU while a task's row is read, and
//! one that fired no event at all, which is in the kernel's account only and shows as a break in the
//! chain.

use super::{breach, note};
use crate::model::{CpuTotals, Finding, Tally, TaskRow};
use crate::units;

/// The switches of one row, some of which may be in flight.
pub(super) fn row_finding(tally: &Tally, in_flight: u64) -> Option<Finding> {
    let both = Both::of(tally);
    (both.unseen + both.invented > in_flight).then(|| {
        let text = format!(
            "switches: ours are {} voluntary and {} involuntary, the kernel's {} and {}",
            units::count(tally.voluntary),
            units::count(tally.involuntary),
            units::count(tally.kernel_voluntary),
            units::count(tally.kernel_involuntary)
        );
        breach("switches_differ", text)
    })
}

/// Each task's switches must agree, not just their sum.
pub(super) fn task_finding(
    rows: &[TaskRow],
    missed_switches: u64,
    in_flight: u64,
) -> Option<Finding> {
    let (mut n_tasks, mut n_in_flight) = (0, 0);
    let mut sum = Both::default();
    for row in rows {
        let both = Both::of(&row.tally);
        let n = both.unseen + both.invented;
        if n == 1 && !row.ident.has_exited && n_in_flight < in_flight {
            n_in_flight += 1;
        } else if n > 0 {
            n_tasks += 1;
            sum.unseen += both.unseen;
            sum.invented += both.invented;
        }
    }
    if n_tasks == 0 {
        return None;
    }
    let text = format!(
        "switches of {} tasks differ: {} are only in the kernel's count, {} only in ours",
        units::count(n_tasks),
        units::count(sum.unseen),
        units::count(sum.invented)
    );
    let is_explained = sum.invented == 0 && sum.unseen <= missed_switches;
    let finding = if is_explained { note } else { breach };
    Some(finding("switches_differ", text))
}

/// The switches of all CPUs against the kernel's count, read just outside ours.
pub(super) fn all_finding(cpus: &CpuTotals) -> Option<Finding> {
    let ours = cpus.switches + cpus.missed_switches;
    (ours.abs_diff(cpus.kernel_switches) > cpus.kernel_switches_slack).then(|| {
        let text = format!(
            "switches of all CPUs: ours are {} with {} missed, the kernel's {} (± {})",
            units::count(cpus.switches),
            units::count(cpus.missed_switches),
            units::count(cpus.kernel_switches),
            units::count(cpus.kernel_switches_slack)
        );
        breach("context_switches_differ", text)
    })
}

/// Switches that are in one account only.
#[derive(Clone, Copy, Debug, Default)]
struct Both {
    /// In the kernel's.
    unseen: u64,
    /// In ours.
    invented: u64,
}

impl Both {
    fn of(tally: &Tally) -> Self {
        let pairs = [
            (tally.voluntary, tally.kernel_voluntary),
            (tally.involuntary, tally.kernel_involuntary),
        ];
        let unseen = |(ours, kernel): (u64, u64)| kernel.saturating_sub(ours);
        let invented = |(ours, kernel): (u64, u64)| ours.saturating_sub(kernel);
        Self {
            unseen: pairs.into_iter().map(unseen).sum(),
            invented: pairs.into_iter().map(invented).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::codes;
    use super::*;
    use crate::analysis::fixture::row;

    const N_CPUS: u64 = 2;

    fn switched(voluntary: u64, kernel_voluntary: u64) -> Tally {
        Tally {
            voluntary,
            kernel_voluntary,
            ..Tally::default()
        }
    }

    #[track_caller]
    fn check(tallies: &[Tally], has_exited: bool, missed: u64, expected: &[&str]) {
        let rows: Vec<_> = (1..)
            .zip(tallies)
            .map(|(tid, tally)| {
                let mut row = row(tid, 1, "a", tally.clone());
                row.ident.has_exited = has_exited;
                row
            })
            .collect();
        let finding = task_finding(&rows, missed, N_CPUS);
        assert_eq!(codes(finding.as_slice()), expected);
    }

    #[test]
    fn switches_of_a_row_agree_but_for_those_in_flight() {
        let found = |ours, kernel, in_flight| {
            codes(row_finding(&switched(ours, kernel), in_flight).as_slice())
        };
        assert_eq!(found(5, 5, 0), [""; 0]);
        assert_eq!(found(5, 6, 0), ["switches_differ!"]);
        assert_eq!(found(6, 5, 1), [""; 0]);
        assert_eq!(found(5, 7, 1), ["switches_differ!"]);
    }

    #[test]
    fn one_switch_per_cpu_may_be_in_flight() {
        check(&[switched(6, 5), switched(5, 6)], false, 0, &[]);
        check(&[switched(7, 5)], false, 0, &["switches_differ!"]);
        let three = [switched(6, 5), switched(5, 6), switched(6, 5)];
        check(&three, false, 0, &["switches_differ!"]);
    }

    #[test]
    fn differences_of_two_tasks_that_ended_do_not_cancel() {
        let tallies = [switched(5, 6), switched(6, 5)];
        check(&tallies, true, 0, &["switches_differ!"]);
    }

    #[test]
    fn switches_without_event_explain_what_only_the_kernel_counted() {
        check(&[switched(5, 7)], true, 2, &["switches_differ"]);
        check(&[switched(5, 7)], true, 1, &["switches_differ!"]);
        check(&[switched(7, 5)], true, 2, &["switches_differ!"]);
    }

    #[test]
    fn switches_of_all_cpus_agree_within_the_reading() {
        let found = |kernel_switches| {
            let cpus = CpuTotals {
                switches: 337,
                missed_switches: 12,
                kernel_switches,
                kernel_switches_slack: 3,
                ..CpuTotals::default()
            };
            codes(all_finding(&cpus).as_slice())
        };
        assert_eq!(found(349), [""; 0]);
        assert_eq!(found(352), [""; 0]);
        assert_eq!(found(353), ["context_switches_differ!"]);
        assert_eq!(found(345), ["context_switches_differ!"]);
    }
}
