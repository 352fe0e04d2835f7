//! A verification of cyclictest that was stopped for 1.5 s.

use crate::model::{
    Agreement, Buckets, ClaimedLatency, ClaimedSeries, Claims, Reason, ReasonKind, RunConditions,
    SeenByKernel, SeenConditions, SeenInterruptions, SeenLatency, SeenThread, Verification,
    probe::{Clocksources, Warning},
};
use crate::report::fixture;

pub(super) fn verification() -> Verification {
    let report = fixture::report();
    Verification {
        tool: "cyclictest",
        command: ["cyclictest", "-q", "-D", "4"].map(str::to_owned).to_vec(),
        added: Some("--json=FILE was added to read its figures".into()),
        host: report.host,
        window: report.window,
        conditions: RunConditions {
            clocksource: Clocksources {
                at_start: "tsc".into(),
                at_end: "tsc".into(),
            },
            cpus_allowed: "0-1".into(),
            ..RunConditions::default()
        },
        warnings: vec![Warning::Stolen { ns: 10_000_000 }],
        claims: Claims {
            series: vec![series()],
            holds_cpu_latency: true,
            ..Claims::default()
        },
        kernel: SeenByKernel {
            elapsed_ns: 4_050_000_000,
            n_tasks: 2,
            wakeups: 2_540,
            switches: 2_560,
            on_cpu_ns: 81_000_000,
            waited_ns: 9_000_000,
            threads: vec![thread()],
        },
        verdict: Agreement::Omits,
        reasons: vec![
            Reason {
                code: "missed_periods",
                kind: ReasonKind::Omission,
                series: Some("thread 0".into()),
                claimed: Some(2_499),
                kernel: Some(4_020),
                allowed: Some(92),
                text: "1,521 of 4,020 periods passed without a sample".into(),
            },
            Reason {
                code: "cpu_latency_held",
                kind: ReasonKind::Note,
                series: None,
                claimed: None,
                kernel: None,
                allowed: None,
                text: "it held /dev/cpu_dma_latency at 0".into(),
            },
        ],
        audit: report.audit,
        loss: report.loss,
        exit_code: Some(0),
    }
}

fn series() -> ClaimedSeries {
    ClaimedSeries {
        name: "thread 0".into(),
        tid: Some(4844),
        cpu: Some(1),
        interval_ns: Some(1_000_000),
        taken: Some(2_499),
        latency: ClaimedLatency {
            count: Some(2_499),
            min_ns: Some(8_000),
            mean_ns: Some(615_470),
            max_ns: Some(1_501_229_000),
            ..ClaimedLatency::default()
        },
        resolution_ns: 1_000,
        ..ClaimedSeries::default()
    }
}

fn thread() -> SeenThread {
    SeenThread {
        name: "thread 0".into(),
        tid: 4844,
        tgid: 4842,
        comm: "cyclictest".into(),
        alive_ns: Some(4_020_000_000),
        wakeup_latency: SeenLatency {
            count: 2_504,
            min_ns: 2_900,
            mean_ns: 5_100,
            max_ns: 88_000,
            p50_ns: Some(4_800),
            p90_ns: Some(6_000),
            p99_ns: Some(21_000),
            p999_ns: Some(60_000),
        },
        interruptions: SeenInterruptions::default(),
        periods: Some(4_020),
        missed_periods: Some(1_521),
        conditions: Some(SeenConditions {
            policy: "fifo",
            priority: 80,
            cpus_allowed: "1".into(),
            timer_slack_ns: Some(0),
            stops: 1,
            stopped_ns: 1_490_000_000,
        }),
        latency_buckets: Buckets::default(),
        lost_cpu_buckets: Buckets::default(),
    }
}
