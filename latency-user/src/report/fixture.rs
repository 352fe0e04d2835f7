//! One report for the tests of all formats, written out in full.

use std::collections::BTreeMap;

use latency_common::hist::HistKind;

use super::fixture_attribution as attribution;
use crate::model::{
    AllSwitchAudit, Audit, AuditClass, Buckets, CauseStats, Causes, Censored, Cost, DetailLevel,
    Finding, GroupBy, Host, Losses, PartStats, Parts, PreemptorStats, Report, Row, RowIdent, Stats,
    SwitchAudit, Switches, Tally, TickAudit, WaitStats, Waits, Window,
};

pub(crate) fn report() -> Report {
    Report {
        host: host(),
        window: Window {
            seconds: 10.0,
            start_at_ns: 5_000_000_000,
            end_at_ns: 15_000_000_000,
            start_wall_ns: 1_790_000_000_000_000_000,
            suspended_ns: 0,
        },
        target: "--comm 'postgres*'".into(),
        by: GroupBy::Tid,
        detail: DetailLevel::Full,
        totals: totals(),
        n_tasks: 2,
        n_processes: 1,
        rows: vec![busy_row(), waiting_row()],
        interrupts: attribution::interrupt_totals(),
        longest: attribution::longest(),
        stacks: attribution::stacks(),
        over: None,
        audit: audit(),
        censored: totals().censored,
        loss: Losses {
            missed_switches: 12,
            ..Losses::default()
        },
        cost: Cost {
            ns_per_switch: Some(131.4),
            cpu_pct: Some(0.42),
            ns_per_run: Some(65.7),
            sampled_ns: 500_000_000,
            recorder_cpu_pct: 0.3,
            attach_ns: 250_000_000,
        },
        steal_ns: 0,
        degraded: vec!["hrtick: this kernel has none".into()],
        flight: Vec::new(),
    }
}

fn host() -> Host {
    Host {
        kernel: "6.18.44".into(),
        arch: "x86_64".into(),
        n_cpus: 2,
        hz: Some(250),
        preemption: "none (dynamic)".into(),
        hypervisor: "KVM".into(),
        clocksource: "tsc".into(),
        cgroup_mode: "hybrid".into(),
        lockdown: "none".into(),
        boot_parameters: vec!["preempt=none".into()],
    }
}

fn wakeups() -> WaitStats {
    WaitStats {
        count: 100,
        sum_ns: 5_000_000,
        min_ns: 900,
        max_ns: 2_900_000,
        p50_ns: Some(4_100),
        p90_ns: Some(18_000),
        p99_ns: Some(312_000),
        p999_ns: Some(2_900_000),
    }
}

fn totals() -> Stats {
    let mut tally = Tally::default();
    tally.hists[HistKind::Wakeup as usize] = Buckets {
        counts: vec![(20, 90), (400, 9)],
        overflow: 1,
    };
    Stats {
        waits: Waits {
            wakeup: wakeups(),
            preemption: WaitStats {
                count: 12,
                sum_ns: 40_000_000,
                min_ns: 2_000,
                max_ns: 12_000_000,
                ..WaitStats::default()
            },
            new_task: WaitStats::default(),
        },
        wakeup_latency: wakeups(),
        causes: Causes {
            tick: CauseStats {
                count: 10,
                sum_ns: 39_900_000,
                max_ns: 12_000_000,
            },
            wakeup: CauseStats {
                count: 2,
                sum_ns: 100_000,
                max_ns: 98_000,
            },
            ..Causes::default()
        },
        preemptors: vec![
            preemptor("tick", "pg_dump", 991, 39_000_000),
            preemptor("wakeup", "(others)", 0, 100_000),
        ],
        switches: Switches {
            voluntary: 100,
            involuntary: 12,
            r#yield: 0,
        },
        migrations: 3,
        on_cpu_ns: 9_000_000_000,
        run_delay_ns: 45_000_000,
        run_delay_kernel_ns: 42_000_000,
        waited_ns: 1_245_000_000,
        parts: attribution::parts(1_200_000_000),
        blame: attribution::blame(),
        interrupts: attribution::interrupts(),
        stolen: attribution::stolen(),
        wakers: attribution::wakers(),
        wake_path: attribution::wake_path(),
        censored: Censored {
            open_at_end: 1,
            open_at_end_ns: 1_200_000_000,
            open_at_end_max_ns: 1_200_000_000,
            ..Censored::default()
        },
        wakeups_not_asleep: 4,
        tally,
    }
}

fn preemptor(cause: &'static str, comm: &str, tid: u32, sum_ns: u64) -> PreemptorStats {
    PreemptorStats {
        cause,
        comm: comm.into(),
        tid,
        count: 2,
        sum_ns,
    }
}

fn ident(tid: u32, comm: &str) -> RowIdent {
    RowIdent {
        tid: Some(tid),
        tgid: Some(4121),
        comm: Some(comm.into()),
        process_comm: Some("postgres".into()),
        cgroup: Some("/pg.slice".into()),
        start_time_ns: Some(77_000),
        exited: false,
        is_self: false,
        n_tasks: 1,
    }
}

fn busy_row() -> Row {
    let stats = Stats {
        censored: Censored::default(),
        waited_ns: 45_000_000,
        parts: attribution::parts(0),
        ..totals()
    };
    Row {
        ident: ident(4121, "postgres"),
        stats,
        audit: Audit {
            ok: true,
            ..Audit::default()
        },
    }
}

fn waiting_row() -> Row {
    let stats = Stats {
        censored: totals().censored,
        waited_ns: 1_200_000_000,
        parts: Parts {
            throttled: PartStats {
                sum_ns: 1_200_000_000,
            },
            ..Parts::default()
        },
        ..Stats::default()
    };
    let ident = RowIdent {
        exited: true,
        ..ident(4122, "pg\\x1b[31m")
    };
    Row {
        ident,
        stats,
        audit: Audit {
            ok: true,
            ..Audit::default()
        },
    }
}

fn audit() -> Audit {
    let account = |count, ours_ns, kernel_ns| AuditClass {
        count,
        ours_ns,
        kernel_ns,
    };
    Audit {
        by_cause: BTreeMap::from([
            ("after_wakeup", account(100, 5_000_000, 2_000_000)),
            ("tick", account(10, 39_900_000, 39_900_100)),
            ("wakeup", account(2, 100_000, 99_900)),
        ]),
        run_delay_ours_ns: 45_000_000,
        run_delay_kernel_ns: 42_000_000,
        switches: SwitchAudit {
            voluntary_ours: 100,
            voluntary_kernel: 100,
            involuntary_ours: 12,
            involuntary_kernel: 12,
            all: Some(AllSwitchAudit {
                all_ours: 349,
                missed: 12,
                all_kernel: 361,
                all_kernel_slack: 2,
            }),
        },
        on_cpu_ours_ns: 9_000_000_000,
        on_cpu_kernel_ns: 9_001_000_000,
        on_cpu_unseen_kernel_ns: 3_000_000,
        ticks: Some(TickAudit {
            ticks: 5_000,
            hrticks: 0,
            local_timer_interrupts: Some(5_020),
        }),
        ok: true,
        findings: vec![Finding {
            code: "kernel_misses_wakeup_waits",
            is_breach: false,
            text: "the kernel's own account misses 3.00 ms of wakeup waits here".into(),
        }],
    }
}
