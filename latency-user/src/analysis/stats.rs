//! What a tally says: waits by kind and cause, preemptors, switches, times.
//!
//! Pure rearrangement of a tally's counters; only percentiles are estimated, in `quantile`.

use latency_common::class::{WaitClass, WaitKind};
use latency_common::hist::HistKind;

use super::attribution::{self, IrqNames};
use super::escape;
use super::merge::add_class;
use super::quantile::percentiles;
use crate::model::{
    CauseStats, Causes, Censored, ClassTally, PreemptorStats, PreemptorTally, Stats, Switches,
    Tally, WaitStats, Waits, WorkNames,
};

/// What is shown for a preemptor that found no row of its own.
const OTHERS: &str = "(others)";

/// The figures of a tally; `irqs` names device interrupts, `works` what workers of the kernel work on.
pub(super) fn stats(tally: Tally, irqs: &IrqNames, works: &WorkNames) -> Stats {
    let Totals {
        run_delay_ns,
        run_delay_kernel_ns,
    } = Totals::of(&tally);
    Stats {
        waits: Waits {
            wakeup: waits_of_kind(&tally, WaitKind::Wakeup, HistKind::Wakeup),
            preemption: waits_of_kind(&tally, WaitKind::Preemption, HistKind::Preemption),
            new_task: waits_of_kind(&tally, WaitKind::NewTask, HistKind::NewTask),
        },
        wakeup_latency: wait_stats(&tally, &tally.latency, HistKind::Latency),
        causes: causes(&tally),
        preemptors: tally.preemptors.iter().map(preemptor).collect(),
        switches: Switches {
            voluntary: tally.voluntary,
            involuntary: tally.involuntary,
            r#yield: tally.yields,
        },
        migrations: tally.migrations,
        on_cpu_ns: tally.on_cpu_ns,
        run_delay_ns,
        run_delay_kernel_ns,
        waited_ns: tally.waited_ns(),
        parts: attribution::parts(&tally.attribution),
        blame: attribution::blame(&tally.attribution.culprits, works),
        interrupts: attribution::interrupts(&tally.attribution.interrupts, irqs),
        stolen: attribution::stolen(&tally.attribution),
        wakers: attribution::wakers(&tally.attribution.wakers, irqs),
        wake_path: attribution::wake_path(&tally),
        censored: censored(&tally),
        wakeups_not_asleep: tally.wakeups_not_asleep,
        tally,
    }
}

/// Both accounts of all waits that ended, those included that were not measured from start to end.
pub(super) struct Totals {
    pub(super) run_delay_ns: u64,
    pub(super) run_delay_kernel_ns: u64,
}

impl Totals {
    pub(super) fn of(tally: &Tally) -> Self {
        Self {
            run_delay_ns: tally.classes.iter().map(|class| class.sum_ns).sum(),
            run_delay_kernel_ns: tally.classes.iter().map(|class| class.kernel_ns).sum(),
        }
    }
}

fn waits_of_kind(tally: &Tally, kind: WaitKind, hist: HistKind) -> WaitStats {
    let mut all = ClassTally::default();
    for class in WaitClass::ALL
        .into_iter()
        .filter(|class| class.kind() == Some(kind))
    {
        add_class(&mut all, tally.class(class));
    }
    wait_stats(tally, &all, hist)
}

fn wait_stats(tally: &Tally, exact: &ClassTally, kind: HistKind) -> WaitStats {
    let is_complete = tally.without_hist[kind as usize] == 0 || exact.count == 1;
    let shown = percentiles(&tally.hists[kind as usize], exact).filter(|_| is_complete);
    let percentile = |index: usize| shown.map(|shown| shown[index]);
    WaitStats {
        count: exact.count,
        sum_ns: exact.sum_ns,
        min_ns: exact.min_ns,
        max_ns: exact.max_ns,
        p50_ns: percentile(0),
        p90_ns: percentile(1),
        p99_ns: percentile(2),
        p999_ns: percentile(3),
    }
}

fn causes(tally: &Tally) -> Causes {
    let of = |class| {
        let ClassTally {
            count,
            sum_ns,
            max_ns,
            ..
        } = *tally.class(class);
        CauseStats {
            count,
            sum_ns,
            max_ns,
        }
    };
    Causes {
        tick: of(WaitClass::Tick),
        hrtick: of(WaitClass::Hrtick),
        wakeup: of(WaitClass::WakeupPreemption),
        higher_class: of(WaitClass::HigherClass),
        r#yield: of(WaitClass::Yield),
        throttled: of(WaitClass::Throttled),
        stopper: of(WaitClass::Stopper),
        unknown: of(WaitClass::Unknown),
    }
}

fn preemptor(row: &PreemptorTally) -> PreemptorStats {
    let comm = if row.tid == 0 {
        OTHERS.to_owned()
    } else {
        escape::bytes(&row.comm)
    };
    PreemptorStats {
        cause: row.class.map_or("several", WaitClass::name),
        comm,
        tid: row.tid,
        count: row.count,
        sum_ns: row.sum_ns,
    }
}

fn censored(tally: &Tally) -> Censored {
    let at_start = tally.class(WaitClass::OpenAtStart);
    Censored {
        open_at_start: at_start.count,
        open_at_start_ns: at_start.sum_ns,
        open_at_end: tally.open.len() as u64,
        open_at_end_ns: tally.open.iter().map(|wait| wait.ns).sum(),
        open_at_end_max_ns: tally.open.iter().map(|wait| wait.ns).max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::{comm, tally_of};
    use crate::analysis::merge;
    use crate::model::OpenWait;

    fn stats_of(parts: &[(WaitClass, &[u64])]) -> Stats {
        let tallies: Vec<_> = parts
            .iter()
            .map(|(class, samples)| tally_of(*class, samples))
            .collect();
        stats(merge::sum(&tallies), &IrqNames::new(), &WorkNames::new())
    }

    #[test]
    fn waits_after_losing_the_cpu_are_the_sum_of_their_causes() {
        let stats = stats_of(&[
            (WaitClass::Tick, &[100, 300]),
            (WaitClass::Yield, &[2]),
            (WaitClass::Wakeup, &[50]),
        ]);
        let lost = stats.waits.preemption;
        assert_eq!(
            (lost.count, lost.sum_ns, lost.min_ns, lost.max_ns),
            (3, 402, 2, 300)
        );
        assert_eq!(
            stats.causes.tick,
            CauseStats {
                count: 2,
                sum_ns: 400,
                max_ns: 300
            }
        );
        assert_eq!(stats.causes.r#yield.count, 1);
        assert_eq!(stats.waits.wakeup.p50_ns, Some(50));
        assert_eq!(stats.waits.new_task, WaitStats::default());
        assert_eq!(stats.run_delay_ns, 452);
    }

    #[test]
    fn waits_cut_by_the_window_count_as_time_but_not_as_samples() {
        let mut tally = tally_of(WaitClass::OpenAtStart, &[10]);
        tally.open = [30, 40]
            .map(|ns| OpenWait {
                class: WaitClass::Tick,
                ns,
            })
            .to_vec();
        let stats = stats(tally, &IrqNames::new(), &WorkNames::new());
        assert_eq!(stats.waits, Waits::default());
        assert_eq!((stats.run_delay_ns, stats.waited_ns), (10, 80));
        let expected = Censored {
            open_at_start: 1,
            open_at_start_ns: 10,
            open_at_end: 2,
            open_at_end_ns: 70,
            open_at_end_max_ns: 40,
        };
        assert_eq!(stats.censored, expected);
    }

    #[test]
    fn task_without_histogram_has_exact_figures_but_no_percentiles() {
        let mut tally = tally_of(WaitClass::Wakeup, &[5; 1000]);
        tally.without_hist[HistKind::Wakeup as usize] = 1;
        let wakeup = stats(tally, &IrqNames::new(), &WorkNames::new())
            .waits
            .wakeup;
        assert_eq!(
            (wakeup.count, wakeup.max_ns, wakeup.p50_ns),
            (1000, 5, None)
        );
    }

    #[test]
    fn sleep_cancelled_by_a_signal_is_voluntary() {
        let tally = Tally {
            voluntary: 6,
            involuntary: 2,
            cancelled_sleeps: 1,
            ..Tally::default()
        };
        let switches = stats(tally, &IrqNames::new(), &WorkNames::new()).switches;
        assert_eq!((switches.voluntary, switches.involuntary), (6, 2));
    }

    #[test]
    fn preemptors_without_a_row_are_the_others() {
        let row = |tid| PreemptorTally {
            class: Some(WaitClass::Tick),
            comm: comm("a\x1b"),
            tid,
            count: 1,
            sum_ns: 1,
        };
        let tally = Tally {
            preemptors: vec![row(7), row(0)],
            ..Tally::default()
        };
        let names: Vec<_> = stats(tally, &IrqNames::new(), &WorkNames::new())
            .preemptors
            .into_iter()
            .map(|row| row.comm)
            .collect();
        assert_eq!(names, ["a\\x1b", "(others)"]);
    }
}
