//! What the audit says about losses: one finding for each kind that occurred.
//!
//! A loss that leaves the sums whole, or that the kernel caused and we can count, is a note. One
//! that means a figure is too small is a breach.

use crate::model::{Finding, Losses};
use crate::units;

/// A kind of loss: its code, whether it is a breach, its figure, and what is said of that.
type Kind = (&'static str, bool, fn(&Losses) -> u64, &'static str);

#[rustfmt::skip]
const KINDS: [Kind; 15] = [
    ("untracked_tasks", true, |loss| loss.untracked_tasks,
        "tasks got no storage and were not measured"),
    ("untracked_switches", true, |loss| loss.untracked_switches,
        "switches were of tasks without storage"),
    ("exit_records", true, |loss| loss.exit_records,
        "tasks that ended have no row since the ring was full; the totals hold them"),
    ("recursion_misses", true, |loss| loss.recursion_misses,
        "runs of the measuring programs were skipped by the kernel"),
    ("malformed_records", true, |loss| loss.malformed_records,
        "records from the kernel side could not be read"),
    ("missed_switches", false, |loss| loss.missed_switches,
        "switches fired no event (a kernel blind spot; the waits and stints they cut are left out)"),
    ("unmeasured_waits", false, |loss| loss.unmeasured_waits,
        "waits whose start or end was not seen are in the kernel's account only"),
    ("task_histograms", false, |loss| loss.task_histograms,
        "histograms found no room: their tasks have no percentiles, the totals are whole"),
    ("folded_rows", false, |loss| loss.folded_rows,
        "tasks that ended have no row since there were too many; the totals hold them"),
    ("clock_backwards", false, |loss| loss.clock_backwards,
        "samples were set to 0 since the clock ran backwards between CPUs"),
    ("cgroup_names", false, |loss| loss.cgroup_names,
        "cgroups are shown by id since their path was lost"),
    ("wait_records", false, |loss| loss.wait_records,
        "long waits have no story since the ring was full; the sums hold them"),
    ("trace_records", false, |loss| loss.trace_records,
        "events of the probe's threads are missing since the ring was full; the sums hold them"),
    ("unpaired_interrupts", false, |loss| loss.unpaired_interrupts,
        "interrupts began or ended unseen; their time is taken for that of tasks"),
    ("stacks", false, |loss| loss.stacks,
        "stacks could not be taken or kept; their time has a culprit and no path"),
];

/// One finding for each kind of loss in `losses`.
pub(super) fn findings(losses: &Losses) -> Vec<Finding> {
    let finding = |(code, is_breach, figure, what): Kind| {
        let n = figure(losses);
        let text = format!("{} {what}", units::count(n));
        (n > 0).then_some(Finding {
            code,
            is_breach,
            text,
        })
    };
    KINDS.into_iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::codes;
    use super::*;

    #[test]
    fn nothing_lost_says_nothing() {
        assert_eq!(findings(&Losses::default()), []);
    }

    #[test]
    fn every_kind_of_loss_is_named() {
        let losses = Losses {
            missed_switches: 12,
            unmeasured_waits: 2,
            untracked_tasks: 3,
            untracked_switches: 4,
            exit_records: 5,
            folded_rows: 11,
            task_histograms: 6,
            clock_backwards: 8,
            cgroup_names: 9,
            wait_records: 12,
            trace_records: 15,
            unpaired_interrupts: 13,
            stacks: 14,
            recursion_misses: 10,
            malformed_records: 11,
        };
        let expected = [
            "untracked_tasks!",
            "untracked_switches!",
            "exit_records!",
            "recursion_misses!",
            "malformed_records!",
            "missed_switches",
            "unmeasured_waits",
            "task_histograms",
            "folded_rows",
            "clock_backwards",
            "cgroup_names",
            "wait_records",
            "trace_records",
            "unpaired_interrupts",
            "stacks",
        ];
        assert_eq!(codes(&findings(&losses)), expected);
    }

    #[test]
    fn loss_is_said_with_its_number() {
        let losses = Losses {
            missed_switches: 1_200,
            ..Losses::default()
        };
        let text = &findings(&losses)[0].text;
        assert!(
            text.starts_with("1,200 switches fired no event (a kernel blind spot"),
            "{text}"
        );
    }
}
