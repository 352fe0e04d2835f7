//! What happened between two snapshots of one recording: the rows of `--interval`.
//!
//! Counts, sums and buckets are differences of cumulative ones, so intervals sum exactly to the
//! whole. A wait that lasts through several intervals counts as a sample where it ends; its time
//! is split (`Tally::waited_ns`). `tally` takes one task's counters apart.

/// A struct of which some fields grew from `earlier` to `later`, and the others are as given. Each
/// field must be in one of the two lists.
macro_rules! growth {
    ($later:expr, $earlier:expr, $type:ident { $($grown:ident),+; $($others:tt)* }) => {
        $type {
            $($grown: $later.$grown.saturating_sub($earlier.$grown),)+
            $($others)*
        }
    };
}

mod attribution;
mod tally;

use std::collections::HashMap;

use self::tally::minus;
use super::merge;
use crate::model::{
    CostSample, CpuTotals, IdleWhileRunnable, InterruptTotal, KernelNames, Losses, Observation,
    Tally, TaskRow,
};

/// What happened from `earlier` to `later`, two snapshots of one recording. Tasks to which nothing
/// happened have no row.
#[must_use]
pub fn difference(later: &Observation, earlier: &Observation) -> Observation {
    let mut before: HashMap<(u32, u64), &Tally> = earlier
        .rows
        .iter()
        .map(|row| (identity(row), &row.tally))
        .collect();
    let none = Tally::default();
    let rows = later
        .rows
        .iter()
        .filter_map(|row| {
            let tally = minus(&row.tally, before.remove(&identity(row)).unwrap_or(&none));
            has_happened(&tally).then(|| TaskRow {
                ident: row.ident.clone(),
                tally,
            })
        })
        .collect();
    // A task whose last record was lost has moved from the rows to the unsent counts, with all it
    // ever counted: what earlier intervals have shown of it is taken off there.
    let shown_before = merge::sum(before.into_values().chain([&earlier.unsent]));
    let length_before_ns = earlier.end_at_ns.saturating_sub(earlier.start_at_ns);
    Observation {
        start_at_ns: earlier.end_at_ns,
        attach_ns: later.attach_ns,
        start_wall_ns: earlier.start_wall_ns + length_before_ns + earlier.cpus.suspended_ns,
        end_at_ns: later.end_at_ns,
        rows,
        unsent: minus(&later.unsent, &shown_before),
        interrupts: interrupts_minus(&later.interrupts, &earlier.interrupts),
        irq_names: later.irq_names.clone(),
        longest: Vec::new(),
        stacks: Vec::new(),
        names: KernelNames {
            works: later.names.works.clone(),
            ..KernelNames::default()
        },
        stacks_over_ns: None,
        cpus: cpus_minus(&later.cpus, &earlier.cpus),
        losses: losses_minus(&later.losses, &earlier.losses),
        idle_while_runnable: idle_minus(later.idle_while_runnable, earlier.idle_while_runnable),
        cost: cost_minus(later.cost, earlier.cost),
    }
}

const fn identity(row: &TaskRow) -> (u32, u64) {
    (row.ident.tid, row.ident.start_time_ns)
}

fn has_happened(tally: &Tally) -> bool {
    // That a histogram is missing is a state, not an event.
    let quiet = Tally {
        without_hist: tally.without_hist,
        ..Tally::default()
    };
    *tally != quiet
}

fn cpus_minus(later: &CpuTotals, earlier: &CpuTotals) -> CpuTotals {
    let interrupts = later
        .local_timer_interrupts
        .zip(earlier.local_timer_interrupts);
    growth!(later, earlier, CpuTotals {
        switches, missed_switches, ticks, hrticks, kernel_switches, steal_ns, suspended_ns;
        // Either end can be off by its own slack.
        kernel_switches_slack: later.kernel_switches_slack + earlier.kernel_switches_slack,
        local_timer_interrupts: interrupts.map(|(later, earlier)| later.saturating_sub(earlier)),
    })
}

fn interrupts_minus(later: &[InterruptTotal], earlier: &[InterruptTotal]) -> Vec<InterruptTotal> {
    let before: HashMap<_, _> = earlier.iter().map(|row| (row.source.0, row)).collect();
    let grown = later.iter().map(|row| {
        let Some(before) = before.get(&row.source.0) else {
            return *row;
        };
        let sum_ns = row.sum_ns.saturating_sub(before.sum_ns);
        InterruptTotal {
            count: row.count.saturating_sub(before.count),
            sum_ns,
            max_ns: attribution::longest(row.max_ns, before.max_ns, sum_ns),
            ..*row
        }
    });
    grown.filter(|row| row.count > 0).collect()
}

fn losses_minus(later: &Losses, earlier: &Losses) -> Losses {
    growth!(later, earlier, Losses {
        missed_switches, unmeasured_waits, untracked_tasks, untracked_switches, exit_records,
        folded_rows, task_histograms, clock_backwards, cgroup_names, wait_records, trace_records,
        blame_records, unpaired_interrupts, stacks, recursion_misses, malformed_records;
    })
}

fn idle_minus(
    later: Option<IdleWhileRunnable>,
    earlier: Option<IdleWhileRunnable>,
) -> Option<IdleWhileRunnable> {
    let (later, earlier) = (later?, earlier.unwrap_or_default());
    Some(IdleWhileRunnable {
        ns: later.ns.saturating_sub(earlier.ns),
        restricted_waiting_ns: later
            .restricted_waiting_ns
            .saturating_sub(earlier.restricted_waiting_ns),
    })
}

fn cost_minus(later: Option<CostSample>, earlier: Option<CostSample>) -> Option<CostSample> {
    let earlier = earlier.unwrap_or_default();
    later.map(|later| growth!(later, earlier, CostSample { sampled_ns, run_ns, runs, switches; }))
}

#[cfg(test)]
mod tests {
    use latency_common::class::WaitClass;

    use super::*;
    use crate::analysis::fixture::{Random, row, tally_of};
    use crate::model::OpenWait;

    const TICK: WaitClass = WaitClass::Tick;

    fn snapshot(end_at_ns: u64, tallies: Vec<Tally>) -> Observation {
        let rows = (1..)
            .zip(tallies)
            .map(|(tid, tally)| row(tid, 1, "a", tally))
            .collect();
        Observation {
            end_at_ns,
            rows,
            ..Observation::default()
        }
    }

    fn waiting(samples: &[u64], open_ns: u64) -> Tally {
        let open = vec![OpenWait {
            class: TICK,
            ns: open_ns,
        }];
        Tally {
            open,
            ..tally_of(TICK, samples)
        }
    }

    #[test]
    fn intervals_sum_to_the_whole() {
        let seed = 0x5eed_0003;
        let mut random = Random::new(seed);
        for _ in 0..30 {
            let samples = random.durations(300);
            let (first, second) = (random.below(150), 150 + random.below(150));
            let snapshots: Vec<_> = [0, first, second, 300]
                .map(|n| snapshot(n as u64, vec![tally_of(TICK, &samples[..n])]))
                .into();
            let parts: Vec<_> = snapshots
                .windows(2)
                .map(|pair| difference(&pair[1], &pair[0]))
                .flat_map(|interval| interval.rows)
                .map(|row| row.tally)
                .collect();
            let mut whole = merge::sum(&parts);
            // Extremes of intervals are bounds: 1/32 below the shortest, above the longest.
            let exact = snapshots[3].rows[0].tally.class(TICK);
            let found = &mut whole.classes[TICK as usize];
            assert!(found.min_ns <= exact.min_ns, "seed {seed:#x}");
            assert!(found.max_ns >= exact.max_ns, "seed {seed:#x}");
            assert!(
                found.max_ns - exact.max_ns <= exact.max_ns / 32,
                "seed {seed:#x}"
            );
            *found = *exact;
            assert_eq!(whole, snapshots[3].rows[0].tally, "seed {seed:#x}");
        }
    }

    #[test]
    fn task_to_which_nothing_happened_has_no_row() {
        let still = || tally_of(TICK, &[5, 6]);
        let later = snapshot(2, vec![still(), tally_of(TICK, &[7])]);
        let rows = difference(&later, &snapshot(1, vec![still()])).rows;
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].ident.tid, 2);
    }

    /// C007: a wait of 25 over boundaries at 10 and 20 has its time in three intervals.
    #[test]
    fn wait_over_a_boundary_is_split() {
        let snapshots = [
            snapshot(0, vec![Tally::default()]),
            snapshot(10, vec![waiting(&[], 8)]),
            snapshot(20, vec![waiting(&[], 18)]),
            snapshot(30, vec![tally_of(TICK, &[25])]),
        ];
        let waited: Vec<_> = snapshots
            .windows(2)
            .map(|pair| difference(&pair[1], &pair[0]).rows[0].tally.waited_ns())
            .collect();
        assert_eq!(waited, [8, 10, 7]);
    }

    #[test]
    fn task_whose_last_record_was_lost_is_not_counted_twice() {
        let earlier = snapshot(1, vec![tally_of(TICK, &[5, 6])]);
        let mut later = snapshot(2, vec![]);
        later.unsent = tally_of(TICK, &[5, 6, 7]);
        let interval = difference(&later, &earlier);
        assert!(interval.rows.is_empty());
        assert_eq!(interval.unsent.class(TICK).count, 1);
        assert_eq!(interval.unsent.waited_ns(), 7);
    }

    #[test]
    fn first_interval_begins_with_the_recording() {
        let interval = difference(&snapshot(900, vec![]), &Observation::at_start((100, 5_000)));
        assert_eq!((interval.start_at_ns, interval.end_at_ns), (100, 900));
        assert_eq!(interval.start_wall_ns, 5_000);
    }

    #[test]
    fn interval_begins_where_the_last_one_ended() {
        let earlier = Observation {
            start_at_ns: 100,
            start_wall_ns: 5_000,
            end_at_ns: 350,
            ..snapshot(0, vec![])
        };
        let interval = difference(&snapshot(900, vec![]), &earlier);
        assert_eq!((interval.start_at_ns, interval.end_at_ns), (350, 900));
        assert_eq!(interval.start_wall_ns, 5_250);
    }

    #[test]
    fn suspension_belongs_to_one_interval_and_makes_the_wall_clock_of_later_ones_later() {
        let suspended = |suspended_ns, at_ns| {
            let mut snapshot = snapshot(at_ns, vec![]);
            snapshot.cpus.suspended_ns = suspended_ns;
            snapshot
        };
        let earlier = Observation {
            start_at_ns: 100,
            start_wall_ns: 5_000,
            ..suspended(70, 350)
        };
        let interval = difference(&suspended(90, 900), &earlier);
        assert_eq!(interval.start_wall_ns, 5_000 + 250 + 70);
        assert_eq!(interval.cpus.suspended_ns, 20);
    }
}
