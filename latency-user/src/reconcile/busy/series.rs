//! From explained gaps to the figures of a series.

use std::{cmp::Reverse, collections::BTreeMap};

use latency_common::interrupt::Source;

use super::{ExplainedGap, Explanation, GapCause, GapCulprit};
use crate::{
    analysis::Distribution,
    model::{
        Row,
        probe::{BusySeries, CauseGaps, Figures, GapCauses, GapsBy, Pair, TurnFigures, Verdict},
    },
    probe::busy::Spun,
    reconcile::{Names, ran_instead},
    units,
};

/// From this share of the lost time on without an event, that is the verdict.
const UNEXPLAINED_PCT: f64 = 10.0;

/// Distances of ticks below which they say nothing.
const FEWEST_DISTANCES: usize = 8;

/// The most, of the time that was lost, by which the kernel's events may be longer than their gap.
const DISAGREEMENT_NS: u64 = 1_000;

/// What is known of a run beside its gaps.
#[derive(Clone, Copy, Debug)]
pub struct RunFacts<'a> {
    /// Names of tasks and interrupts.
    pub names: &'a Names<'a>,
    /// What the recorder has of the probe's thread.
    pub row: Option<&'a Row>,
    /// Every gap is wanted.
    pub has_pairs: bool,
}

/// The figures of a run. What it ran under is left to the caller.
#[must_use]
pub fn series(spun: &Spun, explanation: &Explanation, facts: &RunFacts<'_>) -> BusySeries {
    let names = facts.names;
    let run_ns = spun.spin.ended_at_ns - spun.spin.began_at_ns;
    let gaps = &explanation.gaps;
    let noted_ns: u64 = gaps.iter().map(|gap| gap.gap.length_ns).sum();
    let lost_ns = noted_ns + spun.spin.dropped_ns;
    let causes = causes(gaps, names, run_ns);
    let lost_pct = 100.0 * units::ratio(lost_ns, run_ns);
    let worst_disagreement_ns = gaps
        .iter()
        .map(|gap| gap.kernel_ns.saturating_sub(gap.gap.length_ns))
        .max()
        .unwrap_or(0);
    let mut verdict = verdict(&causes, lost_ns, run_ns);
    verdict.is_breach = worst_disagreement_ns > DISAGREEMENT_NS;
    BusySeries {
        seconds: seconds(run_ns),
        turns: spun.spin.n_turns,
        turn: TurnFigures {
            min_ns: spun.turn.min_ns,
            median_ns: spun.turn.median_ns,
        },
        threshold_ns: spun.threshold_ns,
        hz: hz(gaps),
        lost_ns,
        lost_pct,
        gaps: lengths(gaps.iter()),
        gaps_without_event: gaps.iter().map(|gap| u64::from(!gap.has_event)).sum(),
        events_without_gap: explanation.n_events_without_gap,
        dropped_gaps: spun.spin.n_dropped,
        worst_disagreement_ns,
        asking_ticks: explanation.n_asking_ticks,
        repicked_ticks: explanation.n_repicked_ticks,
        ran_instead: ran_instead(facts.row, None),
        pairs: facts
            .has_pairs
            .then(|| pairs(gaps, names, spun.spin.ended_at_ns)),
        verdict,
        causes,
        ..BusySeries::default()
    }
}

/// How often a second ticks came, by the distances of the gaps with one; none where there are too few.
///
/// Where others have the CPU in between, distances are several periods. The shortest tenth is at most one
/// period: longer ones than half as much again are left out, and the middle of the rest is taken.
fn hz(gaps: &[ExplainedGap]) -> Option<u64> {
    let ticks: Vec<_> = gaps.iter().filter(|gap| gap.has_tick).collect();
    let mut distances: Vec<_> = ticks
        .windows(2)
        .map(|pair| pair[1].gap.began_at_ns - pair[0].gap.began_at_ns)
        .collect();
    if distances.len() < FEWEST_DISTANCES {
        return None;
    }
    distances.sort_unstable();
    let short_ns = distances[distances.len() / 10];
    let n_periods = distances.partition_point(|ns| *ns <= short_ns + short_ns / 2);
    let period_ns = distances[n_periods / 2].max(1);
    Some((1_000_000_000 + period_ns / 2) / period_ns)
}

fn causes(gaps: &[ExplainedGap], names: &Names<'_>, run_ns: u64) -> GapCauses {
    let of = |cause: GapCause| {
        let gaps: Vec<_> = gaps.iter().filter(|gap| gap.cause == cause).collect();
        let length = lengths(gaps.iter().copied());
        CauseGaps {
            per_second: 1e9 * units::ratio(length.count, run_ns),
            length,
            kernel_ns: gaps.iter().map(|gap| gap.kernel_ns).sum(),
            by: culprits(&gaps, names),
        }
    };
    GapCauses {
        tick: of(GapCause::Tick),
        irq: of(GapCause::Irq),
        softirq: of(GapCause::Softirq),
        ipi: of(GapCause::Ipi),
        preempted: of(GapCause::Preempted),
        throttled: of(GapCause::Throttled),
        unexplained: of(GapCause::Unexplained),
    }
}

fn lengths<'a>(gaps: impl Iterator<Item = &'a ExplainedGap>) -> Figures {
    let lengths = gaps.map(|gap| gap.gap.length_ns.cast_signed());
    lengths.collect::<Distribution>().figures()
}

fn culprits(gaps: &[&ExplainedGap], names: &Names<'_>) -> Vec<GapsBy> {
    let mut by: BTreeMap<GapCulprit, GapsBy> = BTreeMap::new();
    for gap in gaps {
        let Some((name, tid)) = culprit(gap.culprit, names) else {
            continue;
        };
        let row = by.entry(gap.culprit).or_default();
        row.name = name;
        row.tid = tid;
        row.count += 1;
        row.sum_ns += gap.gap.length_ns;
        row.max_ns = row.max_ns.max(gap.gap.length_ns);
    }
    let mut by: Vec<_> = by.into_values().collect();
    by.sort_by_key(|row| Reverse(row.sum_ns));
    by
}

/// Name, and thread id of a task.
fn culprit(culprit: GapCulprit, names: &Names<'_>) -> Option<(String, Option<u32>)> {
    match culprit {
        GapCulprit::Nobody => None,
        GapCulprit::Interrupt(word) => Some((names.interrupt(Source(word)), None)),
        GapCulprit::Task(tid) => {
            let name = names.task(tid).unwrap_or("(ended)");
            Some((name.to_owned(), Some(tid)))
        }
    }
}

fn pairs(gaps: &[ExplainedGap], names: &Names<'_>, ended_at_ns: u64) -> Vec<Pair> {
    let begins = gaps.iter().map(|gap| gap.gap.began_at_ns);
    let nexts = begins.skip(1).chain([ended_at_ns]);
    gaps.iter()
        .zip(nexts)
        .map(|(gap, next_at_ns)| Pair {
            at_ns: gap.gap.began_at_ns,
            length_ns: gap.gap.length_ns,
            to_next_ns: next_at_ns.saturating_sub(gap.gap.ended_at_ns()),
            kernel_ns: gap.kernel_ns,
            cause: gap.cause.key(),
            by: culprit(gap.culprit, names).map(|(name, _)| name),
        })
        .collect()
}

fn verdict(causes: &GapCauses, lost_ns: u64, run_ns: u64) -> Verdict {
    let share_of_lost =
        |cause: &CauseGaps| 100.0 * units::ratio(cause.length.sum_ns.cast_unsigned(), lost_ns);
    let unexplained_pct = share_of_lost(&causes.unexplained);
    let mut reasons = Vec::new();
    if unexplained_pct >= UNEXPLAINED_PCT {
        reasons.push(format!(
            "{} gaps without an event for the most of them: the hypervisor, the firmware, or a task that the kernel hides",
            units::count(causes.unexplained.length.count)
        ));
    }
    if causes.throttled.length.count > 0 {
        let pct = 100.0 * units::ratio(causes.throttled.length.sum_ns.cast_unsigned(), run_ns);
        reasons.push(format!(
            "lower classes ran for {} of the time: the real-time limit, the deadline server, or a quota",
            units::percent(pct)
        ));
    }
    let verdict = if run_ns == 0 {
        "did not run".to_owned()
    } else if unexplained_pct >= UNEXPLAINED_PCT {
        format!("{unexplained_pct:.0} % of the lost time unexplained")
    } else {
        "explained".to_owned()
    };
    Verdict {
        verdict,
        reasons,
        is_breach: false,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "2^53 ns are 104 days, and beyond that only rounded"
)]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use latency_common::interrupt::InterruptKind;

    use super::*;
    use crate::{
        probe::busy::{Gap, Spin, Turn},
        report::fixture,
    };

    const TICK: GapCulprit = GapCulprit::Interrupt(Source::new(InterruptKind::Tick, 0).0);

    fn gap(at_ns: u64, length_ns: u64, cause: GapCause, culprit: GapCulprit) -> ExplainedGap {
        ExplainedGap {
            gap: Gap {
                began_at_ns: at_ns,
                length_ns,
            },
            cause,
            culprit,
            kernel_ns: length_ns / 2,
            has_tick: cause == GapCause::Tick,
            has_event: cause != GapCause::Unexplained,
        }
    }

    fn spun() -> Spun {
        Spun {
            turn: Turn {
                min_ns: 20,
                median_ns: 30,
            },
            threshold_ns: 600,
            spin: Spin {
                began_at_ns: 0,
                ended_at_ns: 1_000_000,
                n_turns: 30_000,
                n_dropped: 1,
                dropped_ns: 1_000,
            },
            ..Spun::default()
        }
    }

    fn of(gaps: Vec<ExplainedGap>, n_repicked_ticks: u64) -> BusySeries {
        let explanation = Explanation {
            gaps,
            n_repicked_ticks,
            ..Explanation::default()
        };
        let record = fixture::report();
        let facts = RunFacts {
            names: &Names::of(&record, &[]),
            row: record.rows.first(),
            has_pairs: true,
        };
        series(&spun(), &explanation, &facts)
    }

    #[test]
    fn every_gap_is_in_one_cause_and_all_of_them_are_lost() {
        let found = of(
            vec![
                gap(1_000, 9_000, GapCause::Tick, TICK),
                gap(500_000, 80_000, GapCause::Preempted, GapCulprit::Task(991)),
                gap(700_000, 10_000, GapCause::Unexplained, GapCulprit::Nobody),
            ],
            0,
        );
        assert_eq!(found.lost_ns, 100_000);
        assert!((found.lost_pct - 10.0).abs() < 1e-9);
        let causes = &found.causes;
        assert_eq!(causes.tick.length.sum_ns, 9_000);
        assert_eq!(causes.preempted.kernel_ns, 40_000);
        assert_eq!(causes.preempted.by[0].name, "pg_dump");
        assert_eq!(causes.preempted.by[0].tid, Some(991));
        assert!((causes.tick.per_second - 1_000.0).abs() < 1e-9);
        assert!(causes.unexplained.by.is_empty());
        assert_eq!(found.gaps_without_event, 1);
        assert_eq!(found.verdict.verdict, "10 % of the lost time unexplained");
    }

    #[test]
    fn pairs_are_lengths_and_the_time_to_the_next() {
        let gaps = vec![
            gap(1_000, 9_000, GapCause::Tick, TICK),
            gap(500_000, 1_000, GapCause::Unexplained, GapCulprit::Nobody),
        ];
        let found = of(gaps, 0).pairs.unwrap();
        assert_eq!((found[0].length_ns, found[0].to_next_ns), (9_000, 490_000));
        assert_eq!((found[1].length_ns, found[1].to_next_ns), (1_000, 499_000));
        assert_eq!(
            (found[0].cause, found[0].by.as_deref()),
            ("tick", Some("tick"))
        );
        assert_eq!(
            (found[1].cause, found[1].by.as_deref()),
            ("unexplained", None)
        );
    }

    #[test]
    fn throttling_is_a_reason_and_repicked_ticks_are_counted() {
        let throttled = GapCulprit::Task(991);
        let found = of(vec![gap(1_000, 50_000, GapCause::Throttled, throttled)], 3);
        assert_eq!(found.verdict.verdict, "explained");
        let expected = [
            "lower classes ran for 5.0 % of the time: the real-time limit, the deadline server, or a quota",
        ];
        assert_eq!(found.verdict.reasons, expected);
        assert_eq!(found.repicked_ticks, 3);
    }

    #[test]
    fn events_longer_than_their_gap_are_a_breach() {
        let mut long = gap(1_000, 9_000, GapCause::Tick, TICK);
        long.kernel_ns = 10_000;
        assert!(!of(vec![long], 0).verdict.is_breach);
        long.kernel_ns += 1;
        assert!(of(vec![long], 0).verdict.is_breach);
    }

    #[track_caller]
    fn check_hz(at_us: &[u64], expected: Option<u64>) {
        let ticks = at_us
            .iter()
            .map(|us| gap(us * 1_000, 500, GapCause::Tick, TICK));
        assert_eq!(hz(&ticks.collect::<Vec<_>>()), expected);
    }

    #[test]
    fn hz_is_the_distance_of_ticks_also_where_others_run_in_between() {
        let alone: Vec<_> = (0..9).map(|n| n * 4_000).collect();
        check_hz(&alone, Some(250));
        check_hz(&alone[..8], None);
        // One tick is late, and the next one on time.
        check_hz(
            &[0, 1_000, 2_300, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000],
            Some(1_000),
        );
        // Somebody else has most of the ticks.
        let slices = [0, 4, 12, 20, 28, 32, 40, 48, 56, 60].map(|ms| ms * 1_000);
        check_hz(&slices, Some(250));
    }
}
