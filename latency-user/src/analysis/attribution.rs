//! What a tally says about what its waits were made of, who woke its tasks, and how.
//!
//! Rearrangement and names only. Named and unnamed time of other tasks are told apart here: the
//! kernel side adds up the first as a part, and says of how much it has dropped the name.

use std::collections::BTreeMap;

use latency_common::{
    attribution::{CulpritKind, N_PARTS, Part, Placement, WakeupCounters},
    class::WaitClass,
    counters::WaitCounters,
    interrupt::{Category, InterruptKind, Source},
};

use super::escape;
use crate::{
    model::{
        AttributionTally, BlameStats, CulpritIdent, CulpritTally, InterruptIdent, InterruptStats,
        InterruptTally, InterruptTotal, InterruptTotalStats, PartStats, Parts, PlacementStats,
        Placements, SchedClass, StageStats, StolenStats, SyncStats, Tally, WakePathStats,
        WakerIdent, WakerStats, WakerTally, WorkNames,
    },
    units,
};

/// Names of device interrupts by number.
pub(super) type IrqNames = BTreeMap<u32, String>;

/// Names of softirqs by vector, as in `/proc/softirqs`.
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// Names of `interrupt::Vector`.
const VECTORS: [&str; 5] = [
    "local timer",
    "reschedule",
    "call function",
    "call function single",
    "irq work",
];

/// Names of the scheduler's timers.
const TICKS: [&str; 2] = ["tick", "hrtick"];

/// The parts of the waits.
pub(super) fn parts(tally: &AttributionTally) -> Parts {
    parts_of(&tally.parts, tally.dropped_culprits_ns)
}

/// The same, with how much of the other tasks' has lost its name.
pub(super) fn parts_of(parts: &[u64; N_PARTS], dropped_culprits_ns: u64) -> Parts {
    let ns = |part: Part| parts[part as usize];
    let part = |ns| PartStats { sum_ns: ns };
    let unnamed_ns = dropped_culprits_ns.min(ns(Part::OtherTasks));
    Parts {
        other_tasks: part(ns(Part::OtherTasks) - unnamed_ns),
        hard_irq: part(ns(Part::HardIrq)),
        softirq: part(ns(Part::Softirq)),
        tick: part(ns(Part::Tick)),
        throttled: part(ns(Part::Throttled)),
        idle_exit: part(ns(Part::IdleExit)),
        moved: part(ns(Part::Moved)),
        unattributed: part(ns(Part::Unattributed) + unnamed_ns),
        unexplained: part(ns(Part::Unexplained)),
    }
}

/// Who was in the way; `works` names what workers of the kernel work on.
pub(super) fn blame(culprits: &[CulpritTally], works: &WorkNames) -> Vec<BlameStats> {
    let stats = |row: &CulpritTally| BlameStats {
        culprit: CulpritIdent {
            comm: escape::bytes(&row.comm),
            tid: row.tid,
            work: work(row.work, works),
            tgid: row.tgid,
            prio: row.prio,
            sched_class: SchedClass::of(row.prio),
            kind: kind(row.kind),
            cgroup: escape::text(&row.cgroup),
        },
        count: row.count,
        sum_ns: row.sum_ns,
        max_ns: row.max_ns,
    };
    culprits.iter().map(stats).collect()
}

/// The function of this number; none where it has no name.
pub(super) fn work(number: u32, works: &WorkNames) -> Option<String> {
    works.get(&number).map(|name| escape::text(name))
}

const fn kind(kind: CulpritKind) -> &'static str {
    match kind {
        CulpritKind::SameProcess => "same_process",
        CulpritKind::SameCgroup => "same_cgroup",
        CulpritKind::Foreign => "foreign",
        CulpritKind::KernelThread => "kernel_thread",
    }
}

/// Which interrupts ran within waits.
pub(super) fn interrupts(rows: &[InterruptTally], irqs: &IrqNames) -> Vec<InterruptStats> {
    let stats = |row: &InterruptTally| InterruptStats {
        ident: interrupt(row.source, irqs),
        count: row.count,
        sum_ns: row.sum_ns,
    };
    rows.iter().map(stats).collect()
}

/// All interrupts, largest sum first.
pub(super) fn interrupt_totals(
    rows: &[InterruptTotal],
    irqs: &IrqNames,
) -> Vec<InterruptTotalStats> {
    let stats = |row: &InterruptTotal| InterruptTotalStats {
        ident: interrupt(row.source, irqs),
        count: row.count,
        sum_ns: row.sum_ns,
        max_ns: row.max_ns,
    };
    let mut totals: Vec<_> = rows.iter().map(stats).collect();
    totals.sort_by_key(|row| std::cmp::Reverse(row.sum_ns));
    totals
}

/// Which interrupt a source is.
#[must_use]
pub fn interrupt(source: Source, irqs: &IrqNames) -> InterruptIdent {
    let Some(kind) = source.kind() else {
        return InterruptIdent {
            kind: "others",
            number: None,
            name: "(others)".to_owned(),
        };
    };
    let number = source.number();
    let one_of = |names: &[&str]| {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        names.get(index).map(|name| (*name).to_owned())
    };
    let (kind, name) = match kind {
        InterruptKind::HardIrq => ("hard_irq", irqs.get(&number).map(|name| escape::text(name))),
        InterruptKind::Vector => ("vector", one_of(&VECTORS)),
        InterruptKind::Softirq => ("softirq", one_of(&SOFTIRQS)),
        InterruptKind::Tick => ("tick", one_of(&TICKS)),
    };
    InterruptIdent {
        kind,
        number: Some(number),
        name: name.unwrap_or_else(|| format!("{} {number}", kind.replace('_', " "))),
    }
}

/// What interrupts took while the tasks had the CPU.
pub(super) fn stolen(tally: &AttributionTally) -> StolenStats {
    let stolen = &tally.stolen;
    let (irq, softirq, tick) = (
        Category::HardIrq as usize,
        Category::Softirq as usize,
        Category::Tick as usize,
    );
    StolenStats {
        irq_ns: stolen.ns[irq],
        softirq_ns: stolen.ns[softirq],
        tick_ns: stolen.ns[tick],
        irqs: stolen.counts[irq],
        softirqs: stolen.counts[softirq],
        ticks: stolen.counts[tick],
    }
}

/// Who woke the tasks.
pub(super) fn wakers(rows: &[WakerTally], irqs: &IrqNames) -> Vec<WakerStats> {
    rows.iter().map(|row| waker(row, irqs)).collect()
}

fn waker(row: &WakerTally, irqs: &IrqNames) -> WakerStats {
    WakerStats {
        ident: waker_ident(row.source, (row.tid, row.tgid), &row.comm, irqs),
        count: row.count,
        latency_sum_ns: row.latency_sum_ns,
    }
}

/// Who a waker is: a task by its thread and process id, or an interrupt.
pub(super) fn waker_ident(
    source: Source,
    (tid, process): (u32, u32),
    comm: &[u8],
    irqs: &IrqNames,
) -> WakerIdent {
    if source != Source::default() {
        let InterruptIdent { kind, name, .. } = interrupt(source, irqs);
        return WakerIdent {
            kind,
            name: Some(name),
            ..WakerIdent::default()
        };
    }
    WakerIdent {
        kind: "task",
        comm: Some(escape::bytes(comm)),
        tid: Some(tid),
        tgid: Some(process),
        name: None,
    }
}

/// The way from waking to running.
pub(super) fn wake_path(tally: &Tally) -> WakePathStats {
    let path = &tally.attribution.wake_path;
    let placement = |place: Placement| &path.placements[place as usize];
    let n_placed: u64 = path.placements.iter().map(|place| place.count).sum();
    let waits = tally.class(WaitClass::Wakeup);
    let [not_sync, sync] = &path.sampled;
    let sampled = not_sync.count + sync.count;
    let WaitCounters {
        count,
        sum_ns,
        max_ns,
        ..
    } = path.to_queued;
    WakePathStats {
        waking_to_queued: StageStats {
            count,
            sum_ns,
            max_ns,
        },
        queued_to_running: StageStats {
            count: waits.count,
            sum_ns: waits.sum_ns,
            max_ns: waits.max_ns,
        },
        same_cpu_pct: pct(placement(Placement::SameCpu).count, n_placed),
        same_cache_pct: pct(placement(Placement::SameCache).count, n_placed),
        moved_pct: pct(path.moved, n_placed),
        placements: Placements {
            same_cpu: placed(placement(Placement::SameCpu)),
            same_cache: placed(placement(Placement::SameCache)),
            other_cache: placed(placement(Placement::OtherCache)),
        },
        sampled,
        sync_pct: pct(sync.count, sampled),
        sync: sync_stats(sync),
        not_sync: sync_stats(not_sync),
    }
}

const fn placed(wakeups: &WakeupCounters) -> PlacementStats {
    PlacementStats {
        count: wakeups.count,
        latency_sum_ns: wakeups.latency_sum_ns,
        latency_max_ns: wakeups.latency_max_ns,
    }
}

fn sync_stats(wakeups: &WakeupCounters) -> SyncStats {
    SyncStats {
        count: wakeups.count,
        same_cpu_pct: pct(wakeups.same_cpu, wakeups.count),
        latency_mean_ns: wakeups.latency_sum_ns.checked_div(wakeups.count),
    }
}

fn pct(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * units::ratio(part, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_whose_culprit_was_dropped_is_unattributed() {
        let mut tally = AttributionTally::default();
        tally.parts[Part::OtherTasks as usize] = 100;
        tally.parts[Part::Unattributed as usize] = 5;
        tally.dropped_culprits_ns = 30;
        let parts = parts(&tally);
        assert_eq!(parts.other_tasks.sum_ns, 70);
        assert_eq!(parts.unattributed.sum_ns, 35);
        assert_eq!(parts.sum_ns(), 105);
    }

    #[test]
    fn every_part_has_its_key() {
        let tally = AttributionTally {
            parts: std::array::from_fn(|part| part as u64 + 1),
            ..AttributionTally::default()
        };
        let expected = [
            ("other_tasks", 1),
            ("hard_irq", 2),
            ("softirq", 3),
            ("tick", 4),
            ("throttled", 5),
            ("idle_exit", 6),
            ("moved", 7),
            ("unattributed", 8),
            ("unexplained", 9),
        ];
        assert_eq!(parts(&tally).list(), expected);
    }

    #[test]
    fn interrupts_are_named() {
        let irqs = IrqNames::from([(38, "virtio0\x1b".to_owned())]);
        let named = |kind, number| {
            let ident = interrupt(Source::new(kind, number), &irqs);
            (ident.kind, ident.name)
        };
        let named_as = |kind, name: &str| (kind, name.to_owned());
        assert_eq!(
            named(InterruptKind::Softirq, 3),
            named_as("softirq", "NET_RX")
        );
        assert_eq!(
            named(InterruptKind::Softirq, 11),
            named_as("softirq", "softirq 11")
        );
        assert_eq!(
            named(InterruptKind::Vector, 4),
            named_as("vector", "irq work")
        );
        assert_eq!(named(InterruptKind::Tick, 1), named_as("tick", "hrtick"));
        assert_eq!(
            named(InterruptKind::HardIrq, 38),
            named_as("hard_irq", "virtio0\\x1b")
        );
        assert_eq!(
            named(InterruptKind::HardIrq, 9),
            named_as("hard_irq", "hard irq 9")
        );
        let several = interrupt(Source::SEVERAL, &irqs);
        assert_eq!((several.kind, several.number), ("others", None));
    }

    #[test]
    fn waker_is_a_task_or_an_interrupt() {
        let row = |source| WakerTally {
            source,
            tid: 7,
            tgid: 7,
            comm: *b"psql\0\0\0\0\0\0\0\0\0\0\0\0",
            count: 1,
            latency_sum_ns: 1,
        };
        let task = waker(&row(Source::default()), &IrqNames::new()).ident;
        assert_eq!(
            (task.kind, task.comm.as_deref(), task.name),
            ("task", Some("psql"), None)
        );
        let softirq = Source::new(InterruptKind::Softirq, 1);
        let interrupt = waker(&row(softirq), &IrqNames::new()).ident;
        assert_eq!(
            (interrupt.kind, interrupt.comm, interrupt.tid),
            ("softirq", None, None)
        );
        assert_eq!(interrupt.name.as_deref(), Some("TIMER"));
    }

    #[test]
    fn shares_of_the_wake_path_are_of_its_wakeups() {
        let mut tally = Tally::default();
        let path = &mut tally.attribution.wake_path;
        for (place, count) in [(0, 6), (1, 3), (2, 1)] {
            path.placements[place].count = count;
        }
        path.moved = 2;
        path.sampled[1] = WakeupCounters {
            count: 4,
            same_cpu: 1,
            latency_sum_ns: 80,
            latency_max_ns: 50,
        };
        let path = wake_path(&tally);
        let shares = [path.same_cpu_pct, path.same_cache_pct, path.moved_pct];
        assert_eq!(shares, [Some(60.0), Some(30.0), Some(20.0)]);
        assert_eq!((path.sampled, path.sync_pct), (4, Some(100.0)));
        assert_eq!(path.sync.same_cpu_pct, Some(25.0));
        assert_eq!(path.sync.latency_mean_ns, Some(20));
        assert_eq!(path.not_sync.same_cpu_pct, None);
    }
}
