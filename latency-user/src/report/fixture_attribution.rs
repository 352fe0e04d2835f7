//! What the waits of the report of `fixture` were made of.

use crate::model::{
    Autopsy, BlameStats, CulpritIdent, InterruptIdent, InterruptStats, InterruptTotalStats,
    MainPath, PartStats, Parts, PathStats, PlacementStats, Placements, SchedClass, Span,
    StackStats, StageStats, StolenStats, SyncStats, USER_SPACE, Victim, WakePathStats, WakerIdent,
    WakerStats,
};

/// 45 ms of waits, and what was out of quota.
pub(super) fn parts(throttled_ns: u64) -> Parts {
    let part = |sum_ns| PartStats { sum_ns };
    Parts {
        other_tasks: part(39_000_000),
        hard_irq: part(1_000_000),
        softirq: part(3_000_000),
        tick: part(500_000),
        throttled: part(throttled_ns),
        idle_exit: part(900_000),
        moved: part(100_000),
        unattributed: part(300_000),
        unexplained: part(200_000),
    }
}

pub(super) fn blame() -> Vec<BlameStats> {
    vec![
        culprit("pg_dump", 991, "foreign", 37_000_000),
        work(culprit("kworker/1:1H", 77, "kernel_thread", 2_000_000)),
    ]
}

fn culprit(comm: &str, tid: u32, kind: &'static str, sum_ns: u64) -> BlameStats {
    BlameStats {
        culprit: CulpritIdent {
            comm: comm.into(),
            tid,
            work: None,
            tgid: tid,
            prio: 120,
            sched_class: SchedClass::Fair,
            kind,
            cgroup: "/backup.slice".into(),
        },
        count: 11,
        sum_ns,
        max_ns: sum_ns / 5,
    }
}

fn work(mut of: BlameStats) -> BlameStats {
    of.culprit.work = Some("blk_mq_run_work_fn".into());
    of.culprit.prio = 100;
    of
}

fn ident(kind: &'static str, number: Option<u32>, name: &str) -> InterruptIdent {
    InterruptIdent {
        kind,
        number,
        name: name.into(),
    }
}

pub(super) fn interrupts() -> Vec<InterruptStats> {
    let rows = [
        (ident("softirq", Some(3), "NET_RX"), 40, 3_000_000),
        (ident("hard_irq", Some(38), "virtio2-input.0"), 50, 900_000),
        (ident("tick", Some(0), "tick"), 5, 500_000),
        (ident("others", None, "(others)"), 2, 100_000),
    ];
    rows.map(|(ident, count, sum_ns)| InterruptStats {
        ident,
        count,
        sum_ns,
    })
    .to_vec()
}

pub(super) fn interrupt_totals() -> Vec<InterruptTotalStats> {
    let rows = [
        (ident("softirq", Some(3), "NET_RX"), 4_000, 30_000_000),
        (
            ident("vector", Some(3), "call function single"),
            900,
            800_000,
        ),
    ];
    rows.map(|(ident, count, sum_ns)| InterruptTotalStats {
        ident,
        count,
        sum_ns,
        max_ns: 61_000,
    })
    .to_vec()
}

pub(super) fn stolen() -> StolenStats {
    StolenStats {
        irq_ns: 2_000_000,
        softirq_ns: 7_000_000,
        tick_ns: 4_000_000,
        irqs: 80,
        softirqs: 70,
        ticks: 2_200,
    }
}

fn net_rx() -> WakerIdent {
    WakerIdent {
        kind: "softirq",
        name: Some("NET_RX".into()),
        ..WakerIdent::default()
    }
}

pub(super) fn wakers() -> Vec<WakerStats> {
    let task = WakerStats {
        ident: WakerIdent {
            kind: "task",
            comm: Some("psql".into()),
            tid: Some(77),
            tgid: Some(76),
            name: None,
        },
        count: 30,
        latency_sum_ns: 900_000,
    };
    let softirq = WakerStats {
        ident: net_rx(),
        count: 60,
        latency_sum_ns: 2_000_000,
    };
    vec![softirq, task]
}

pub(super) fn wake_path() -> WakePathStats {
    let stage = |sum_ns, max_ns| StageStats {
        count: 100,
        sum_ns,
        max_ns,
    };
    let placement = |count, latency_sum_ns| PlacementStats {
        count,
        latency_sum_ns,
        latency_max_ns: 1_500_000,
    };
    let sync = |count, latency_mean_ns| SyncStats {
        count,
        same_cpu_pct: Some(75.0),
        latency_mean_ns: Some(latency_mean_ns),
    };
    WakePathStats {
        waking_to_queued: stage(120_000, 9_000),
        queued_to_running: stage(5_000_000, 2_900_000),
        same_cpu_pct: Some(70.0),
        same_cache_pct: Some(20.0),
        moved_pct: Some(12.0),
        placements: Placements {
            same_cpu: placement(70, 3_000_000),
            same_cache: placement(20, 1_500_000),
            other_cache: placement(10, 620_000),
        },
        sampled: 20,
        sync_pct: Some(40.0),
        sync: sync(8, 20_000),
        not_sync: sync(12, 60_000),
    }
}

/// Two waits: one after losing the CPU, one after a wakeup.
pub(super) fn longest() -> Vec<Autopsy> {
    let lost = Autopsy {
        victim: victim(),
        cause: "tick",
        wait_ns: 12_000_000,
        at_ns: 8_113_000_000,
        cpu: 1,
        here_at_ns: 8_113_000_000,
        parts: Parts {
            other_tasks: PartStats { sum_ns: 11_900_000 },
            hard_irq: PartStats { sum_ns: 100_000 },
            ..Parts::default()
        },
        waker: None,
        spans: vec![
            Span {
                syscall: Some("fsync".into()),
                stack: Some(frames()),
                ..task("pg_dump", 991, 8_113_000_000, 9_900_000)
            },
            interrupt("hard_irq", "virtio2-input.0", 8_114_000_000, 100_000),
            Span {
                work: Some("blk_mq_run_work_fn".into()),
                ..task("kworker/1:1H", 77, 8_123_000_000, 2_000_000)
            },
        ],
        hidden_spans: false,
        hint: Some("pinned to CPU 1".into()),
    };
    let woken = Autopsy {
        cause: "after_wakeup",
        wait_ns: 2_900_000,
        at_ns: 9_000_000_000,
        here_at_ns: 9_001_000_000,
        parts: Parts {
            softirq: PartStats { sum_ns: 900_000 },
            unattributed: PartStats { sum_ns: 2_000_000 },
            ..Parts::default()
        },
        waker: Some(net_rx()),
        spans: vec![interrupt("softirq", "NET_RX", 9_002_000_000, 900_000)],
        hidden_spans: true,
        hint: None,
        ..lost.clone()
    };
    vec![lost, woken]
}

fn frames() -> Vec<String> {
    ["ext4_writepages[ext4]", "do_writepages", "do_syscall_64"]
        .map(Into::into)
        .into()
}

/// A path through a system call, and user space.
pub(super) fn stacks() -> PathStats {
    let fsync = StackStats {
        comm: "pg_dump".into(),
        kernel_thread: false,
        syscall: Some("fsync".into()),
        frames: frames(),
        sum_ns: 20_000_000,
        count: 5,
    };
    let user = StackStats {
        syscall: None,
        frames: vec![USER_SPACE.into()],
        sum_ns: 8_000_000,
        count: 3,
        ..fsync.clone()
    };
    PathStats {
        main: vec![MainPath {
            comm: "pg_dump".into(),
            kernel_thread: false,
            function: "ext4_writepages[ext4]".into(),
            sum_ns: 20_000_000,
        }],
        stacks: vec![fsync, user],
        stacks_coverage_pct: Some(93.5),
        stacks_over_ns: Some(1_000_000),
    }
}

fn victim() -> Victim {
    Victim {
        comm: "postgres".into(),
        tid: 4121,
        tgid: 4121,
        process_comm: "postgres".into(),
        cgroup: "/pg.slice".into(),
    }
}

fn task(comm: &str, tid: u32, at_ns: u64, ns: u64) -> Span {
    Span {
        kind: "task",
        comm: Some(comm.into()),
        tid: Some(tid),
        tgid: Some(tid),
        prio: Some(120),
        sched_class: Some(SchedClass::Fair),
        at_ns,
        ns,
        ..Span::default()
    }
}

fn interrupt(kind: &'static str, name: &str, at_ns: u64, ns: u64) -> Span {
    Span {
        kind,
        name: Some(name.into()),
        count: Some(3),
        at_ns,
        ns,
        ..Span::default()
    }
}
