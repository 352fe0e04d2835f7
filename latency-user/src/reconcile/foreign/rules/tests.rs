//! What a tool may say of a thread whose wakeup latencies are known.

use super::*;
use crate::{
    analysis::fixture::buckets_of,
    model::{ClaimedLatency, SeenConditions, SeenInterruptions, SeenLatency},
};

const MS: u64 = 1_000_000;

/// A thread of 1 kHz that ran for `periods` and was woken once for each of `latencies`.
fn thread(periods: u64, latencies: &[u64]) -> SeenThread {
    let count = latencies.len() as u64;
    SeenThread {
        name: "thread 0".into(),
        tid: 7,
        wakeup_latency: SeenLatency {
            count,
            min_ns: latencies.iter().copied().min().unwrap_or(0),
            mean_ns: latencies.iter().sum::<u64>() / count.max(1),
            max_ns: latencies.iter().copied().max().unwrap_or(0),
            ..SeenLatency::default()
        },
        alive_ns: Some(periods * MS),
        periods: Some(periods),
        conditions: Some(SeenConditions {
            policy: "fifo",
            priority: 80,
            timer_slack_ns: Some(0),
            ..SeenConditions::default()
        }),
        latency_buckets: buckets_of(latencies),
        ..SeenThread::default()
    }
}

/// A tool that took `taken` samples, each 10 µs longer than what `latency` says in µs.
fn series(taken: u64, (min, mean, max): (u64, u64, u64)) -> ClaimedSeries {
    let us = |us: u64| Some((us + 10) * 1_000);
    ClaimedSeries {
        name: "thread 0".into(),
        interval_ns: Some(MS),
        taken: Some(taken),
        latency: ClaimedLatency {
            count: Some(taken),
            min_ns: us(min),
            mean_ns: us(mean),
            max_ns: us(max),
            ..ClaimedLatency::default()
        },
        resolution_ns: 1_000,
        ..ClaimedSeries::default()
    }
}

/// Wakeups between 5 and 20 µs, and one of 90 µs.
fn latencies(n: u64) -> Vec<u64> {
    (0..n - 1)
        .map(|index| 5_000 + index % 16 * 1_000)
        .chain([90_000])
        .collect()
}

/// The verdict on a cyclictest, and the codes of what made it.
fn judged(series: ClaimedSeries, mut thread: SeenThread) -> (Agreement, Vec<&'static str>) {
    thread.missed_periods = thread
        .periods
        .zip(series.taken)
        .map(|(periods, taken)| periods.saturating_sub(taken));
    let claims = Claims {
        series: vec![series],
        ..Claims::default()
    };
    let seen = SeenByKernel {
        threads: vec![thread],
        ..SeenByKernel::default()
    };
    let reasons = judge(Tool::Cyclictest, &claims, &seen, 0);
    let grave = reasons
        .iter()
        .filter(|reason| reason.kind > ReasonKind::Note);
    (verdict(&reasons), grave.map(|reason| reason.code).collect())
}

#[test]
fn figures_that_lie_above_the_kernels_agree() {
    let honest = series(2000, (5, 13, 90));
    assert_eq!(
        judged(honest, thread(2001, &latencies(2003))),
        (Agreement::Agrees, vec![])
    );
}

#[test]
fn periods_that_passed_while_it_was_stopped_are_omitted() {
    let mut stopped = thread(6000, &latencies(4502));
    if let Some(conditions) = &mut stopped.conditions {
        conditions.stopped_ns = 1500 * MS;
    }
    let claims = series(4500, (5, 400, 1_500_000));
    assert_eq!(
        judged(claims, stopped),
        (Agreement::Omits, vec!["missed_periods"])
    );
}

#[test]
fn a_long_wait_of_its_start_is_no_sample() {
    // Eight samples were not seen, so there are fewer wakeups than samples.
    let mut started_late = latencies(1992);
    started_late[0] = 700 * MS;
    assert_eq!(
        judged(series(2000, (5, 13, 90)), thread(2001, &started_late)),
        (Agreement::Agrees, vec![])
    );
}

#[test]
fn figures_below_the_kernels_cannot_be_true() {
    let seen = || thread(2001, &latencies(2003));
    let min = ClaimedLatency {
        min_ns: Some(3_000),
        ..series(2000, (5, 13, 90)).latency
    };
    let with = |latency| ClaimedSeries {
        latency,
        ..series(2000, (5, 13, 90))
    };
    let refuted = |latency| judged(with(latency), seen()).1;
    assert_eq!(refuted(min), ["min_below_kernel"]);
    let mean_ns = Some(8_000);
    let mean = ClaimedLatency {
        mean_ns,
        ..series(2000, (5, 13, 90)).latency
    };
    assert_eq!(refuted(mean), ["mean_below_kernel"]);
    let max_ns = Some(15_000);
    let max = ClaimedLatency {
        max_ns,
        ..series(2000, (5, 13, 90)).latency
    };
    assert_eq!(refuted(max), ["max_below_kernel"]);
    let p50_ns = Some(7_000);
    let median = ClaimedLatency {
        p50_ns,
        ..series(2000, (5, 13, 90)).latency
    };
    assert_eq!(refuted(median), ["percentile_below_kernel"]);
}

#[test]
fn samples_need_wakeups_and_wakeups_samples() {
    let invented = series(3000, (5, 13, 90));
    assert_eq!(
        judged(invented, thread(3000, &latencies(2000))).1,
        ["samples_exceed_wakeups"]
    );
    let dropped = series(1500, (5, 13, 90));
    assert_eq!(
        judged(dropped, thread(1500, &latencies(2000))),
        (Agreement::Omits, vec!["wakeups_not_sampled"])
    );
}

#[test]
fn figures_of_the_first_samples_are_not_those_of_all() {
    let mut claims = series(16_000, (5, 13, 20));
    claims.latency.count = Some(10_000);
    claims.interval_ns = None;
    let seen = thread(16_000, &latencies(16_003));
    assert_eq!(
        judged(claims, seen),
        (Agreement::Omits, vec!["first_samples_only"])
    );
}

#[test]
fn thread_that_nobody_saw_is_a_contradiction() {
    let claims = Claims {
        series: vec![series(10, (1, 2, 3))],
        ..Claims::default()
    };
    let reasons = judge(Tool::Cyclictest, &claims, &SeenByKernel::default(), 0);
    assert_eq!(verdict(&reasons), Agreement::Disagrees);
    assert_eq!(reasons[0].code, "threads_not_seen");
}

/// An oslat whose turns are in these buckets, and the times without the CPU that the kernel saw.
fn busy(turns: &[(u64, u64)], max_ns: u64, lost: &[u64]) -> (Agreement, &'static str) {
    let claims = Claims {
        series: vec![ClaimedSeries {
            histogram: turns.to_vec(),
            ..series(0, (0, 0, max_ns / 1000 - 10))
        }],
        ..Claims::default()
    };
    let seen = SeenByKernel {
        threads: vec![SeenThread {
            interruptions: SeenInterruptions {
                lost_cpu: lost.len() as u64,
                lost_cpu_max_ns: lost.iter().copied().max().unwrap_or(0),
                ..SeenInterruptions::default()
            },
            lost_cpu_buckets: buckets_of(lost),
            ..thread(0, &[])
        }],
        ..SeenByKernel::default()
    };
    let reasons = judge(Tool::Oslat, &claims, &seen, 0);
    (verdict(&reasons), reasons[0].code)
}

#[test]
fn time_without_the_cpu_is_a_long_turn() {
    let lost = [4 * MS; 100];
    let turns = [(1_000, 1_000_000), (32_000, 101)];
    assert_eq!(busy(&turns, 5 * MS, &lost).0, Agreement::Agrees);
    let short = [(1_000, 1_000_000), (32_000, 50)];
    assert_eq!(
        busy(&short, 5 * MS, &lost),
        (Agreement::Disagrees, "losses_not_seen")
    );
    assert_eq!(
        busy(&turns, 3 * MS, &lost),
        (Agreement::Disagrees, "max_below_kernel")
    );
}

#[test]
fn totals_fit_the_life_of_the_tool() {
    let total = |duration_ns: u64, tasks: u64, ns_per_operation: u64| {
        let claims = Claims {
            duration_ns: Some(duration_ns),
            tasks: Some(tasks),
            operations: Some(20_000),
            ns_per_operation: Some(ns_per_operation),
            ..Claims::default()
        };
        let seen = SeenByKernel {
            elapsed_ns: 120 * MS,
            n_tasks: 81,
            ..SeenByKernel::default()
        };
        let reasons = judge(Tool::Hackbench, &claims, &seen, 0);
        (verdict(&reasons), reasons[0].code)
    };
    assert_eq!(total(103 * MS, 80, 5_183), (Agreement::Agrees, "total"));
    assert_eq!(
        total(130 * MS, 80, 6_500),
        (Agreement::Disagrees, "longer_than_it_ran")
    );
    assert_eq!(
        total(103 * MS, 90, 5_183),
        (Agreement::Disagrees, "tasks_not_seen")
    );
    assert_eq!(
        total(103 * MS, 80, 4_000),
        (Agreement::Disagrees, "own_arithmetic")
    );
}

#[test]
fn every_reason_of_a_series_names_it() {
    let (claims, seen) = (series(10, (5, 13, 90)), thread(10, &latencies(10)));
    let claims = Claims {
        series: vec![claims],
        holds_cpu_latency: true,
        ..Claims::default()
    };
    let seen = SeenByKernel {
        threads: vec![seen],
        ..SeenByKernel::default()
    };
    for reason in judge(Tool::Cyclictest, &claims, &seen, 0) {
        let is_of_all = reason.code == "cpu_latency_held";
        assert_eq!(reason.series.is_none(), is_of_all, "{reason:?}");
    }
}
