//! From the samples of one thread to its figures and the verdict on them.

use super::{
    Seen, pair,
    phases::{PhaseTotals, Phases, span},
};
use crate::{
    analysis::Distribution,
    model::{
        TracedWait,
        probe::{Disagreement, Figures, Verdict, WakePhases, WakeSamples, WakeSeries},
    },
    probe::wake::{WakeResult, WakeSample},
    units,
};

/// Two accounts of a sample may be so far apart: both are readings of one clock.
const MAX_DISAGREEMENT_NS: u64 = 100;
/// Of all samples that could be seen, one in so many may be unmatched.
const SAMPLES_PER_UNMATCHED: u64 = 10_000;
/// Of the lateness, one in so many nanoseconds may be unaccounted for.
const LATENESS_PER_UNACCOUNTED: i64 = 50;
/// Slack up to this is none: it is the least that can be asked for.
const NO_SLACK_NS: u64 = 1;

/// What a series is of.
#[derive(Clone, Debug)]
pub struct Label {
    /// The policy it was given.
    pub policy: String,
    /// The CPU it was bound to.
    pub cpu: Option<u32>,
    /// What ran beside it.
    pub load: String,
    /// The preemption model, where it was switched.
    pub preemption: Option<String>,
    /// How it slept.
    pub via: &'static str,
    /// Its thread id.
    pub tid: u32,
    /// The period.
    pub interval_ns: u64,
    /// How late its timers may be on purpose.
    pub slack_ns: u64,
}

/// The figures of a thread; `waits` are its own in their order, and `n_unmeasured` of them were cut by
/// switches that fired no event.
#[must_use]
pub fn series(
    label: Label,
    result: &WakeResult,
    waits: &[TracedWait],
    n_unmeasured: u64,
) -> WakeSeries {
    let interval_ns = label.interval_ns.cast_signed();
    let mut tally = Tally::default();
    for (sample, seen) in result.samples.iter().zip(pair(&result.samples, waits)) {
        tally.add(sample, seen, label.slack_ns);
    }
    let n_missed = result.n_periods.saturating_sub(tally.samples.taken);
    tally.samples.kernel_saw = n_seen(&result.samples, waits);
    tally.samples.missed_periods = n_missed;
    tally.samples.missed_switch = tally.samples.unmatched.min(n_unmeasured);
    tally.samples.unmatched -= tally.samples.missed_switch;
    let (lateness, intended) = lateness(&tally.lateness_ns, interval_ns, n_missed);
    let (jitter, jitter_negative) = jitter(&result.samples, interval_ns);
    let (phases, disagreement) = tally.phases.figures();
    let worst = phases.list().map(|(_, figures)| figures.max_ns);
    WakeSeries {
        policy: label.policy,
        cpu: label.cpu,
        load: label.load,
        preemption: label.preemption,
        via: label.via,
        tid: label.tid,
        interval_ns: label.interval_ns,
        samples: tally.samples,
        late_by_a_period_pct: lateness.late_pct,
        lateness: lateness.figures,
        intended_late_by_a_period_pct: intended.late_pct,
        intended: intended.figures,
        slack: tally.slack.figures(),
        jitter,
        jitter_negative,
        composed_worst_ns: worst.into_iter().sum(),
        verdict: verdict(&tally, &phases, disagreement),
        phases,
        disagreement,
    }
}

/// What samples came to.
#[derive(Debug, Default)]
struct Tally {
    samples: WakeSamples,
    /// Of samples whose slack is known.
    lateness_ns: Vec<i64>,
    slack: Distribution,
    phases: PhaseTotals,
    /// The lateness of matched samples, without slack.
    matched_ns: i64,
    /// The longest that something else than its timer ended.
    other_waker_ns: i64,
}

impl Tally {
    fn add(&mut self, sample: &WakeSample, seen: Seen<'_>, slack_ns: u64) {
        self.samples.taken += 1;
        let late_ns = span(sample.programmed_ns, sample.woke_at_ns);
        let phases = match seen {
            Seen::Timer(wait, later) => Phases::of(sample, wait, later),
            Seen::OtherWaker | Seen::Awake | Seen::Nothing => None,
        };
        let slack_used_ns = match (seen, phases) {
            (_, Some(phases)) => {
                let lateness_ns = late_ns - phases.slack_ns;
                self.samples.matched += 1;
                self.matched_ns += lateness_ns;
                self.slack.record(phases.slack_ns);
                self.phases.add(&phases, lateness_ns);
                Some(phases.slack_ns)
            }
            (Seen::OtherWaker, None) => {
                self.samples.other_waker += 1;
                self.other_waker_ns = self.other_waker_ns.max(late_ns);
                // By then the timer was due, whatever its slack.
                Some(late_ns.min(slack_ns.cast_signed()))
            }
            (Seen::Awake, None) => {
                self.samples.awake += 1;
                Some(0)
            }
            _ => {
                self.samples.unmatched += 1;
                (slack_ns <= NO_SLACK_NS).then_some(0)
            }
        };
        let known = slack_used_ns.map(|slack_ns| late_ns - slack_ns);
        self.lateness_ns.extend(known);
    }
}

/// How often the kernel saw the thread come to run after a wakeup while samples were taken.
fn n_seen(samples: &[WakeSample], waits: &[TracedWait]) -> u64 {
    let Some((first, last)) = samples.first().zip(samples.last()) else {
        return 0;
    };
    let window = first.programmed_ns..=last.woke_at_ns;
    let seen = waits
        .iter()
        .filter(|wait| wait.waking_at_ns.is_some() && window.contains(&wait.running_at_ns));
    seen.count() as u64
}

/// A view of the lateness.
struct View {
    figures: Figures,
    /// Share that is later than a whole period.
    late_pct: f64,
}

impl View {
    fn of(samples: &Distribution, n_late: u64) -> Self {
        Self {
            figures: samples.figures(),
            late_pct: 100.0 * units::ratio(n_late, samples.count()),
        }
    }
}

/// The lateness as measured, and for each period that was intended: those that were missed are as late
/// as what was left of the lateness when they were due. That is all the correction there is.
fn lateness(lateness_ns: &[i64], interval_ns: i64, n_missed: u64) -> (View, View) {
    let (mut raw, mut intended) = (Distribution::default(), Distribution::default());
    let (mut n_late, mut n_late_intended) = (0, 0);
    let mut n_left = n_missed;
    for &ns in lateness_ns {
        raw.record(ns);
        n_late += u64::from(ns > interval_ns);
        let mut left_ns = ns;
        loop {
            intended.record(left_ns);
            n_late_intended += u64::from(left_ns > interval_ns);
            left_ns -= interval_ns;
            if left_ns < 0 || n_left == 0 {
                break;
            }
            n_left -= 1;
        }
    }
    (View::of(&raw, n_late), View::of(&intended, n_late_intended))
}

/// Distances of successive activations minus the period, and those of them that are negative.
fn jitter(samples: &[WakeSample], interval_ns: i64) -> (Figures, Figures) {
    let distances = samples
        .windows(2)
        .map(|pair| span(pair[0].woke_at_ns, pair[1].woke_at_ns) - interval_ns);
    let all: Distribution = distances.clone().collect();
    let negative: Distribution = distances.filter(|ns| *ns < 0).collect();
    (all.figures(), negative.figures())
}

fn verdict(tally: &Tally, phases: &WakePhases, disagreement: Disagreement) -> Verdict {
    let WakeSamples {
        taken,
        matched,
        other_waker,
        missed_switch,
        unmatched,
        ..
    } = tally.samples;
    let mut breaches = Vec::new();
    if unmatched > (taken - missed_switch) / SAMPLES_PER_UNMATCHED {
        breaches.push(format!(
            "the kernel saw nothing of {} of {} samples",
            units::count(unmatched),
            units::count(taken)
        ));
    }
    if matched == 0 && taken > missed_switch {
        breaches.push(format!(
            "of {} samples none is matched with its timer",
            units::count(taken)
        ));
    }
    if disagreement.max_ns > MAX_DISAGREEMENT_NS {
        breaches.push(format!(
            "the phases of a sample are {} apart from its lateness",
            units::duration(disagreement.max_ns)
        ));
    }
    let unaccounted_ns = phases.unaccounted.sum_ns;
    if unaccounted_ns > tally.matched_ns / LATENESS_PER_UNACCOUNTED {
        breaches.push(format!(
            "{} of the lateness is unaccounted for",
            units::duration(unaccounted_ns.unsigned_abs())
        ));
    }
    let is_breach = !breaches.is_empty();
    let notes = (other_waker > 0).then(|| {
        format!(
            "{} samples, the longest of {}, were ended by something else than their timer, such as SIGCONT; \
             they have no phases",
            units::count(other_waker),
            units::duration(tally.other_waker_ns.unsigned_abs())
        )
    });
    let verdict = match taken {
        0 => "no samples",
        _ if is_breach => "disagrees",
        _ => "agrees",
    };
    Verdict {
        verdict: verdict.to_owned(),
        reasons: breaches.into_iter().chain(notes).collect(),
        is_breach: is_breach || taken == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{signalled, timer_wait};
    use super::*;

    const INTERVAL_NS: u64 = 1_000_000;

    fn label(slack_ns: u64) -> Label {
        Label {
            policy: "fifo:80".into(),
            cpu: Some(1),
            load: "none".into(),
            preemption: None,
            via: "nanosleep",
            tid: 7,
            interval_ns: INTERVAL_NS,
            slack_ns,
        }
    }

    /// Samples at these periods, each so late.
    fn result(samples: &[(u64, u64)], n_periods: u64) -> WakeResult {
        let samples = samples.iter().map(|(period, late_ns)| WakeSample {
            programmed_ns: period * INTERVAL_NS,
            woke_at_ns: period * INTERVAL_NS + late_ns,
        });
        WakeResult {
            samples: samples.collect(),
            is_locked: true,
            n_periods,
        }
    }

    fn waits(periods: &[u64]) -> Vec<TracedWait> {
        let at = periods.iter().map(|period| period * INTERVAL_NS);
        at.map(timer_wait).collect()
    }

    #[test]
    fn plain_samples_agree_and_their_phases_are_the_lateness() {
        let result = result(&[(1, 1_250), (2, 1_350), (3, 1_150)], 3);
        let series = series(label(0), &result, &waits(&[1, 2, 3]), 0);
        let samples = series.samples;
        assert_eq!(
            (samples.taken, samples.kernel_saw, samples.matched),
            (3, 3, 3)
        );
        assert_eq!(
            (series.lateness.sum_ns, series.disagreement.max_ns),
            (3_750, 0)
        );
        let phases = series.phases.list().map(|(_, phase)| phase.sum_ns);
        assert_eq!(phases.iter().sum::<i64>(), 3_750);
        assert_eq!(series.composed_worst_ns, Some(1_350));
        assert_eq!((series.jitter.sum_ns, series.jitter.count), (-100, 2));
        assert_eq!(series.jitter_negative.min_ns, Some(-200));
        assert_eq!(series.verdict.verdict, "agrees");
    }

    /// C097: a stop hides the periods within it; they are counted once, and the raw figures are kept.
    #[test]
    fn missed_periods_are_late_by_what_was_left_of_the_stop() {
        let result = result(&[(1, 1_250), (2, 3_500_000), (6, 1_250)], 6);
        let mut waits = waits(&[1, 6]);
        waits.insert(1, signalled(2 * INTERVAL_NS + 3_400_000));
        let series = series(label(0), &result, &waits, 0);
        assert_eq!(series.samples.missed_periods, 3);
        assert_eq!(series.samples.other_waker, 1);
        assert_eq!((series.lateness.count, series.intended.count), (3, 6));
        assert_eq!(series.lateness.max_ns, Some(3_500_000));
        let expected = 1_250 + 3_500_000 + 2_500_000 + 1_500_000 + 500_000 + 1_250;
        assert_eq!(series.intended.sum_ns, expected);
        assert!((series.late_by_a_period_pct - 100.0 / 3.0).abs() < 1e-9);
        assert!((series.intended_late_by_a_period_pct - 50.0).abs() < 1e-9);
        assert_eq!(series.verdict.verdict, "agrees");
        assert!(series.verdict.reasons[0].contains("SIGCONT"));
    }

    #[test]
    fn missed_switches_excuse_as_many_samples_as_the_kernel_side_knows_of() {
        let result = result(&[(1, 1_250), (2, 1_250), (3, 1_250)], 3);
        let series = |n_unmeasured| series(label(0), &result, &waits(&[2]), n_unmeasured);
        let excused = series(2);
        assert_eq!(excused.samples.missed_switch, 2);
        assert_eq!(
            (excused.samples.unmatched, excused.verdict.is_breach),
            (0, false)
        );
        let one = series(1);
        assert_eq!((one.samples.missed_switch, one.samples.unmatched), (1, 1));
        assert_eq!(one.verdict.verdict, "disagrees");
    }

    #[test]
    fn slack_is_no_lateness_and_unknown_slack_is_not_guessed() {
        let result = result(&[(1, 51_250), (2, 51_250)], 2);
        let mut waits = waits(&[1]);
        waits[0].queued_at_ns += 50_000;
        waits[0].running_at_ns += 50_000;
        waits[0].waking_at_ns = waits[0].waking_at_ns.map(|ns| ns + 50_000);
        let timer = waits[0].timer.as_mut().unwrap();
        timer.expires_ns += 50_000;
        timer.fired_at_ns += 50_000;
        let series = series(label(50_000), &result, &waits, 1);
        assert_eq!((series.slack.count, series.slack.max_ns), (1, Some(50_000)));
        assert_eq!(
            (series.lateness.count, series.lateness.max_ns),
            (1, Some(1_250))
        );
    }

    #[test]
    fn tolerances_are_those_that_are_stated() {
        let result = result(&[(1, 1_250)], 1);
        let verdict = |change: &dyn Fn(&mut TracedWait)| {
            let mut waits = waits(&[1]);
            change(&mut waits[0]);
            series(label(0), &result, &waits, 0).verdict
        };
        let idle_exit = latency_common::attribution::Part::IdleExit as usize;
        assert!(!verdict(&|wait| wait.parts_ns[idle_exit] -= 100).is_breach);
        assert!(verdict(&|wait| wait.parts_ns[idle_exit] -= 101).is_breach);
        let unexplained = latency_common::attribution::Part::Unexplained as usize;
        let shift = |ns| {
            move |wait: &mut TracedWait| {
                wait.parts_ns[idle_exit] -= ns;
                wait.parts_ns[unexplained] += ns;
            }
        };
        assert!(!verdict(&shift(25)).is_breach);
        assert!(verdict(&shift(26)).is_breach);
        assert_eq!(
            series(label(0), &self::result(&[], 0), &[], 0)
                .verdict
                .verdict,
            "no samples"
        );
    }
}
