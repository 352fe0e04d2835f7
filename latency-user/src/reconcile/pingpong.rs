//! Ping-pong: what the pairs measured beside what the recorder counted of their threads.

use crate::{
    model::{
        Row, Stats,
        probe::{PingpongSeries, RoundTrip, SwitchCheck, Verdict, WakeupMeans},
    },
    probe::pingpong::{Outcome, Plan, Run},
    units::{self, ratio},
};

/// Switches outside a thread's loop: it is released before, and ends after it.
const SWITCHES_OUTSIDE: u64 = 8;

/// Wakeups on one side from which on a place is said to be there, in percent.
const NEARLY_ALL_PCT: f64 = 95.0;

/// What was measured in one place.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    /// How.
    pub plan: Plan,
    /// What ran beside it.
    pub load: &'a str,
    /// The preemption model it was switched to.
    pub preemption: Option<String>,
    /// The threads that made round trips.
    pub tids: &'a [u32],
    /// Round trips.
    pub latency: &'a Outcome,
    /// Bytes passed, where the transport carries them.
    pub bandwidth: Option<&'a Outcome>,
}

/// A series, with the recorder's rows of the threads and the breaks that it saw in the chain of switches.
#[must_use]
pub fn series(measured: &Measured<'_>, rows: &[Row], missed_switches: u64) -> PingpongSeries {
    let (plan, latency) = (measured.plan, measured.latency);
    let of_pair = |row: &&Row| {
        row.ident
            .tid
            .is_some_and(|tid| measured.tids.contains(&tid))
    };
    let threads: Vec<_> = rows.iter().filter(of_pair).map(|row| &row.stats).collect();
    let sum = |field: fn(&Stats) -> u64| threads.iter().map(|stats| field(stats)).sum::<u64>();
    let n_round_trips: u64 = latency.runs.iter().map(|run| run.n_round_trips).sum();
    let per_round_trip = |count: u64| (n_round_trips > 0).then(|| ratio(count, n_round_trips));
    let switches = switches(latency, sum);
    let local = sum(|stats| stats.wake_path.placements.same_cpu.count);
    let remote = sum(|stats| {
        let placements = &stats.wake_path.placements;
        placements.same_cache.count + placements.other_cache.count
    });
    let share = |count| (local + remote > 0).then(|| 100.0 * ratio(count, local + remote));
    let mut series = PingpongSeries {
        transport: plan.transport.name(),
        placement: plan.spot.placement.name(),
        cpus: plan.spot.cpus,
        tids: measured.tids.to_vec(),
        policy: plan.policy.to_string(),
        preemption: measured.preemption.clone(),
        load: measured.load.to_owned(),
        round_trip: round_trip(latency),
        switches_per_round_trip: per_round_trip(switches.kernel_saw),
        switches,
        local_pct: share(local),
        remote_pct: share(remote),
        sync_pct: sync_pct(sum),
        ipis_per_round_trip: latency.n_ipis.and_then(per_round_trip),
        wakeups: wakeups(sum),
        migrations: sum(|stats| stats.migrations),
        ..PingpongSeries::default()
    };
    let rates = measured.bandwidth.map(|outcome| of_runs(outcome, mb_s));
    series.bandwidth_runs_mb_s = rates.unwrap_or_default();
    series.bandwidth_mb_s = median(&series.bandwidth_runs_mb_s);
    series.verdict = verdict(&series, n_round_trips, missed_switches);
    series
}

fn switches(latency: &Outcome, sum: impl Fn(fn(&Stats) -> u64) -> u64) -> SwitchCheck {
    let voluntary = sum(|stats| stats.switches.voluntary);
    let involuntary = sum(|stats| stats.switches.involuntary);
    let own = latency.switches.iter();
    SwitchCheck {
        kernel_saw: voluntary + involuntary,
        voluntary,
        involuntary,
        own: own.map(|own| own.voluntary + own.involuntary).sum(),
    }
}

fn round_trip(latency: &Outcome) -> RoundTrip {
    let runs_ns = of_runs(latency, |run| {
        (run.n_round_trips > 0).then(|| run.ns / run.n_round_trips)
    });
    RoundTrip {
        median_ns: median(&runs_ns),
        runs_ns,
        figures: latency.round_trips.figures(),
    }
}

fn sync_pct(sum: impl Fn(fn(&Stats) -> u64) -> u64) -> Option<f64> {
    let sync = sum(|stats| stats.wake_path.sync.count);
    let sampled = sum(|stats| stats.wake_path.sampled);
    (sampled > 0).then(|| 100.0 * ratio(sync, sampled))
}

fn wakeups(sum: impl Fn(fn(&Stats) -> u64) -> u64) -> WakeupMeans {
    let count = sum(|stats| stats.wake_path.queued_to_running.count);
    let mean = |sum_ns: u64| sum_ns.checked_div(count);
    WakeupMeans {
        count,
        to_queue_ns: mean(sum(|stats| stats.wake_path.waking_to_queued.sum_ns)),
        queue_wait_ns: mean(sum(|stats| stats.wake_path.queued_to_running.sum_ns)),
        idle_exit_ns: mean(sum(|stats| stats.parts.idle_exit.sum_ns)),
    }
}

fn mb_s(run: Run) -> Option<f64> {
    // Bytes in a nanosecond are thousands of 10^6 bytes in a second.
    (run.ns > 0).then(|| 1000.0 * ratio(run.n_bytes, run.ns))
}

/// Something of each run that has it.
fn of_runs<T>(outcome: &Outcome, figure: impl Fn(Run) -> Option<T>) -> Vec<T> {
    outcome.runs.iter().copied().filter_map(figure).collect()
}

/// The middle one; of an even number the lower of two.
fn median<T: Copy + PartialOrd>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
    sorted.get(sorted.len().checked_sub(1)? / 2).copied()
}

fn verdict(series: &PingpongSeries, n_round_trips: u64, missed_switches: u64) -> Verdict {
    let SwitchCheck {
        kernel_saw, own, ..
    } = series.switches;
    if n_round_trips == 0 {
        return Verdict {
            verdict: "nothing measured".into(),
            ..Verdict::default()
        };
    }
    let allowed = SWITCHES_OUTSIDE + missed_switches;
    if kernel_saw.abs_diff(own) > allowed {
        return Verdict {
            verdict: "switches disagree".into(),
            reasons: vec![format!(
                "the recorder saw {kernel_saw} switches, the threads count {own}; {allowed} may differ"
            )],
            is_breach: true,
        };
    }
    let word = match (series.local_pct, series.remote_pct) {
        (Some(local), _) if local >= NEARLY_ALL_PCT => "on one CPU",
        (_, Some(remote)) if remote >= NEARLY_ALL_PCT => "across CPUs",
        _ => "on one CPU and across",
    };
    Verdict {
        verdict: word.into(),
        reasons: reasons(series),
        is_breach: false,
    }
}

/// What the time of a round trip went to, as far as the recorder counts it.
fn reasons(series: &PingpongSeries) -> Vec<String> {
    let WakeupMeans {
        to_queue_ns: Some(to_queue_ns),
        queue_wait_ns: Some(queue_wait_ns),
        idle_exit_ns: Some(idle_exit_ns),
        count,
    } = series.wakeups
    else {
        return vec!["no thread was woken: each found its token there".into()];
    };
    let whole_ns = series.round_trip.figures.sum_ns.cast_unsigned();
    let share = |mean_ns: u64| units::percent(100.0 * ratio(mean_ns * count, whole_ns));
    vec![format!(
        "of a round trip {} is the way to the queue and {} the wait there; in {} the CPU was leaving idle",
        share(to_queue_ns),
        share(queue_wait_ns),
        share(idle_exit_ns)
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::Distribution,
        model::RowIdent,
        probe::{
            Policy,
            pingpong::{Length, OwnSwitches, Placement, Quantity, Spot, Transport},
        },
    };

    fn plan(quantity: Quantity) -> Plan {
        Plan {
            transport: Transport::Pipe,
            spot: Spot {
                placement: Placement::Same,
                cpus: Some([1, 1]),
            },
            quantity,
            policy: Policy::Other,
            length: Length {
                n_runs: 3,
                run_ns: 1_000,
            },
        }
    }

    /// Three runs of 10, 20 and 90 ns for a round trip, ten of them in each.
    fn latency() -> Outcome {
        let run = |each_ns: u64| Run {
            ns: 10 * each_ns,
            n_round_trips: 10,
            n_bytes: 0,
        };
        let own = OwnSwitches {
            voluntary: 28,
            involuntary: 2,
        };
        Outcome {
            runs: vec![run(10), run(90), run(20)],
            round_trips: Distribution::from_iter([10; 30]),
            switches: [own, own],
            n_ipis: Some(15),
        }
    }

    fn row(tid: u32, [local, remote]: [u64; 2], voluntary: u64) -> Row {
        let mut stats = Stats::default();
        stats.switches.voluntary = voluntary;
        stats.switches.involuntary = 2;
        stats.wake_path.placements.same_cpu.count = local;
        stats.wake_path.placements.same_cache.count = remote;
        stats.wake_path.queued_to_running.count = local + remote;
        stats.wake_path.queued_to_running.sum_ns = 4 * (local + remote);
        stats.migrations = 1;
        Row {
            ident: RowIdent {
                tid: Some(tid),
                ..RowIdent::default()
            },
            stats,
            ..Row::default()
        }
    }

    fn series_of(rows: &[Row], bandwidth: Option<&Outcome>, n_missed: u64) -> PingpongSeries {
        let measured = Measured {
            plan: plan(Quantity::Latency),
            load: "none",
            preemption: None,
            tids: &[7, 8],
            latency: &latency(),
            bandwidth,
        };
        series(&measured, rows, n_missed)
    }

    #[test]
    fn columns_are_those_of_the_two_threads_for_each_round_trip() {
        let rows = [
            row(7, [20, 0], 28),
            row(9, [0, 500], 900),
            row(8, [10, 10], 30),
        ];
        let series = series_of(&rows, None, 0);
        assert_eq!(series.round_trip.runs_ns, [10, 90, 20]);
        assert_eq!(series.round_trip.median_ns, Some(20));
        assert_eq!((series.switches.kernel_saw, series.switches.own), (62, 60));
        assert_eq!(series.switches_per_round_trip, Some(62.0 / 30.0));
        assert_eq!(series.local_pct, Some(75.0));
        assert_eq!(series.remote_pct, Some(25.0));
        assert_eq!(series.ipis_per_round_trip, Some(0.5));
        assert_eq!(series.wakeups.queue_wait_ns, Some(4));
        assert_eq!((series.migrations, series.bandwidth_mb_s), (2, None));
        assert_eq!(series.verdict.verdict, "on one CPU and across");
    }

    #[test]
    fn verdict_says_where_the_wakeups_went() {
        let verdict = |counts: [u64; 2]| {
            let rows = [row(7, counts, 28), row(8, counts, 28)];
            series_of(&rows, None, 0).verdict.verdict
        };
        assert_eq!(verdict([100, 5]), "on one CPU");
        assert_eq!(verdict([1, 99]), "across CPUs");
    }

    #[test]
    fn switches_that_are_missing_are_a_breach_but_for_breaks_in_the_chain() {
        let rows = [row(7, [1, 0], 28), row(8, [1, 0], 18)];
        let breach = series_of(&rows, None, 1).verdict;
        assert!(breach.is_breach && breach.verdict == "switches disagree");
        assert!(breach.reasons[0].contains("50 switches") && breach.reasons[0].contains("60"));
        assert!(!series_of(&rows, None, 2).verdict.is_breach);
    }

    #[test]
    fn bandwidth_is_that_of_the_middle_run() {
        let run = |n_bytes| Run {
            ns: 1_000_000,
            n_round_trips: 0,
            n_bytes,
        };
        let bandwidth = Outcome {
            runs: [500_000, 3_000_000, 1_000_000, 2_000_000].map(run).to_vec(),
            ..Outcome::default()
        };
        let series = series_of(&[], Some(&bandwidth), 100);
        assert_eq!(series.bandwidth_runs_mb_s, [500.0, 3000.0, 1000.0, 2000.0]);
        assert_eq!(series.bandwidth_mb_s, Some(1000.0));
    }
}
