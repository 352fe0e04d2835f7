//! A single wait taken apart: what ran on its CPU, in order, and what would have helped.
//!
//! The kernel side sends the newest rows of the CPU's timeline as they are. Here they are cut to the
//! wait, and the time of interrupts is taken off the tasks that they interrupted.

use latency_common::{
    attribution::Part,
    class::WaitClass,
    interrupt::Source,
    record::{WaitRecord, WaitStint},
    timeline::{RecentInterrupt, Runner, TID_UNSEEN},
};

use super::attribution::{IrqNames, interrupt, parts_of, waker_ident, work};
use super::{escape, hint::hint, paths::path};
use crate::model::{Autopsy, KernelNames, SchedClass, Span, Victim, WaitEvent, WakerIdent};

/// Takes a wait apart; `irqs` names device interrupts, `names` what is the kernel's.
#[must_use]
pub fn autopsy(event: &WaitEvent, irqs: &IrqNames, names: &KernelNames) -> Autopsy {
    let record = &event.record;
    let (spans, hidden_spans) = spans(record, irqs, names);
    Autopsy {
        victim: Victim {
            comm: escape::bytes(&record.comm),
            tid: record.tid,
            tgid: record.tgid,
            process_comm: escape::bytes(&record.leader_comm),
            cgroup: escape::text(&event.cgroup),
        },
        cause: class(record).map_or("unknown", WaitClass::name),
        wait_ns: event.wait_ns(),
        at_ns: record.since_ns,
        cpu: record.cpu,
        here_at_ns: record.here_since_ns,
        parts: parts_of(&record.parts, 0),
        waker: waker(record, irqs),
        hint: hint(event, &spans),
        spans,
        hidden_spans,
    }
}

/// Why the wait began.
fn class(record: &WaitRecord) -> Option<WaitClass> {
    usize::try_from(record.class)
        .ok()
        .and_then(WaitClass::from_index)
}

fn waker(record: &WaitRecord, irqs: &IrqNames) -> Option<WakerIdent> {
    let is_known = record.waker_source != Source::default() || record.waker_comm != [0; 16];
    is_known.then(|| WakerIdent {
        tgid: None,
        ..waker_ident(
            record.waker_source,
            (record.waker_tid, 0),
            &record.waker_comm,
            irqs,
        )
    })
}

/// What had the CPU since the task came to its queue, and whether that is not all.
fn spans(record: &WaitRecord, irqs: &IrqNames, names: &KernelNames) -> (Vec<Span>, bool) {
    let mut from = record.here_since_ns;
    let mut spans = Vec::new();
    // Out of quota it waited for nobody, whoever ran. Which part that was of a wait that moved is
    // not known.
    let throttled_ns = record.parts[Part::Throttled as usize];
    if throttled_ns > 0 && record.since_ns == from {
        spans.push(Span {
            kind: "throttled",
            at_ns: from,
            ns: throttled_ns,
            ..Span::default()
        });
        from += throttled_ns;
    }
    let interrupts = interrupts_within(record, from);
    let oldest = used(&record.interrupts, record.n_interrupts).last();
    let has_all_interrupts = used(&record.interrupts, record.n_interrupts).len()
        < record.interrupts.len()
        || oldest.is_some_and(|oldest| oldest.until_ns <= from);
    let has_all_stints = used(&record.stints, record.n_stints)
        .last()
        .is_some_and(|oldest| oldest.since_ns <= from);
    spans.extend(stints_within(record, from, &interrupts, names));
    spans.extend(interrupts.iter().map(|recent| {
        let ident = interrupt(recent.source, irqs);
        Span {
            kind: ident.kind,
            name: Some(ident.name),
            count: Some(recent.count),
            at_ns: recent.since_ns,
            ns: recent.own_ns,
            ..Span::default()
        }
    }));
    spans.retain(|span| span.ns > 0);
    spans.sort_by_key(|span| span.at_ns);
    let is_all = has_all_stints && has_all_interrupts;
    (spans, !is_all)
}

fn used<T>(rows: &[T], n: u32) -> &[T] {
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    &rows[..n.min(rows.len())]
}

/// Interrupts that ran and ended after `from`, cut to what is after it.
fn interrupts_within(record: &WaitRecord, from: u64) -> Vec<RecentInterrupt> {
    let recent = used(&record.interrupts, record.n_interrupts).iter();
    let within = recent.filter(|recent| recent.count > 0 && recent.until_ns > from);
    within
        .map(|recent| RecentInterrupt {
            since_ns: recent.since_ns.max(from),
            ..recent.since(from)
        })
        .collect()
}

/// Stints that ended after `from`: each without the time of interrupts, by the CPU's totals. For the
/// one in which the wait began there is no total, so that the interrupts themselves are asked.
fn stints_within(
    record: &WaitRecord,
    from: u64,
    interrupts: &[RecentInterrupt],
    names: &KernelNames,
) -> Vec<Span> {
    let (mut until, mut interrupted_ns) = (record.until_ns, record.interrupted_ns);
    let mut spans = Vec::new();
    for stint in used(&record.stints, record.n_stints) {
        if until <= from {
            break;
        }
        let at_ns = stint.since_ns.max(from);
        let taken_ns = if stint.since_ns < from {
            let within = interrupts
                .iter()
                .filter(|recent| (at_ns..until).contains(&recent.since_ns));
            within.map(|recent| recent.own_ns).sum()
        } else {
            interrupted_ns.saturating_sub(stint.interrupted_before_ns)
        };
        let ns = until.saturating_sub(at_ns).saturating_sub(taken_ns);
        spans.push(Span {
            at_ns,
            ns,
            ..who(stint, record.tid, names)
        });
        (until, interrupted_ns) = (stint.since_ns, stint.interrupted_before_ns);
    }
    spans
}

/// A task cannot wait for itself: then its switch-out was not seen.
fn who(stint: &WaitStint, victim_tid: u32, names: &KernelNames) -> Span {
    let runner = Runner(stint.tid);
    match stint.tid {
        0 => Span {
            kind: "idle",
            ..Span::default()
        },
        tid if tid == TID_UNSEEN || runner.tid() == victim_tid => Span {
            kind: "unseen",
            ..Span::default()
        },
        _ => {
            let (syscall, stack) = path(stint.stack, &names.paths).unzip();
            let prio = (stint.comm != [0; 16]).then_some(stint.prio);
            Span {
                kind: "task",
                comm: Some(escape::bytes(&stint.comm)),
                tid: Some(runner.tid()),
                tgid: Some(stint.tgid),
                prio,
                sched_class: prio.map(SchedClass::of),
                work: work(runner.work(), &names.works),
                syscall: syscall.flatten(),
                stack,
                ..Span::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use latency_common::interrupt::InterruptKind;

    use super::*;
    use crate::analysis::fixture::{comm, wait_record};

    fn stint(tid: u32, since_ns: u64, interrupted_before_ns: u64) -> WaitStint {
        WaitStint {
            since_ns,
            interrupted_before_ns,
            tid,
            tgid: tid,
            comm: comm("other"),
            ..WaitStint::default()
        }
    }

    fn softirq(since_ns: u64, until_ns: u64, own_ns: u64) -> RecentInterrupt {
        RecentInterrupt {
            since_ns,
            until_ns,
            own_ns,
            source: Source::new(InterruptKind::Softirq, 3),
            count: 1,
        }
    }

    /// A wait from 1000 to 2000 with these rows, the newest first.
    fn record(
        stints: &[WaitStint],
        interrupts: &[RecentInterrupt],
        interrupted_ns: u64,
    ) -> WaitRecord {
        let mut record = wait_record(1_000, 2_000);
        record.stints[..stints.len()].copy_from_slice(stints);
        record.interrupts[..interrupts.len()].copy_from_slice(interrupts);
        record.n_stints = u32::try_from(stints.len()).unwrap();
        record.n_interrupts = u32::try_from(interrupts.len()).unwrap();
        record.interrupted_ns = interrupted_ns;
        record
    }

    fn shown(record: &WaitRecord) -> (Vec<(&'static str, u64, u64)>, bool) {
        let (spans, hidden) = spans(record, &IrqNames::new(), &KernelNames::default());
        let spans = spans.iter().map(|span| (span.kind, span.at_ns, span.ns));
        (spans.collect(), hidden)
    }

    #[test]
    fn spans_are_cut_to_the_wait_and_sum_to_it() {
        let stints = [
            stint(0, 1_900, 500),
            stint(9, 1_500, 480),
            stint(8, 400, 300),
        ];
        // The first interrupt woke the task: it began before the wait.
        let interrupts = [softirq(1_600, 1_620, 20), softirq(970, 1_030, 50)];
        let expected = vec![
            ("softirq", 1_000, 30),
            ("task", 1_000, 470),
            ("task", 1_500, 380),
            ("softirq", 1_600, 20),
            ("idle", 1_900, 100),
        ];
        let mut found = shown(&record(&stints, &interrupts, 500));
        found.0.sort_by_key(|(kind, at_ns, _)| (*at_ns, *kind));
        assert_eq!(found.0.iter().map(|(_, _, ns)| ns).sum::<u64>(), 1_000);
        assert_eq!(found, (expected, false));
    }

    #[test]
    fn what_the_rows_do_not_reach_back_to_is_hidden() {
        let recent = [stint(9, 1_500, 0)];
        assert_eq!(
            shown(&record(&recent, &[], 0)),
            (vec![("task", 1_500, 500)], true)
        );
        let mut flooded = record(&[stint(9, 900, 0)], &[], 16);
        for (index, row) in (0..).zip(&mut flooded.interrupts) {
            *row = softirq(1_900 - index, 1_901 - index, 1);
        }
        flooded.n_interrupts = 16;
        assert!(shown(&flooded).1);
        flooded.interrupts[15].until_ns = 1_000;
        assert!(!shown(&flooded).1);
    }

    #[test]
    fn task_out_of_quota_waited_for_nobody() {
        let mut throttled = record(&[stint(9, 100, 0)], &[], 0);
        throttled.parts[Part::Throttled as usize] = 700;
        let expected = vec![("throttled", 1_000, 700), ("task", 1_700, 300)];
        assert_eq!(shown(&throttled), (expected, false));
    }

    #[test]
    fn worker_is_one_thread_whatever_it_works_on() {
        let mut worker = stint(Runner::new(9, 2).0, 1_200, 0);
        worker.prio = 100;
        let gone = WaitStint {
            comm: [0; 16],
            ..stint(8, 900, 0)
        };
        let names = KernelNames {
            works: [(2, "blk_mq_run_work_fn".into())].into(),
            ..KernelNames::default()
        };
        let record = record(
            &[stint(Runner::new(7, 2).0, 1_900, 0), worker, gone],
            &[],
            0,
        );
        let (spans, _) = spans(&record, &IrqNames::new(), &names);
        let shown = spans
            .iter()
            .map(|span| (span.kind, span.tid, span.prio, span.work.as_deref()));
        let expected = [
            ("task", Some(8), None, None),
            ("task", Some(9), Some(100), Some("blk_mq_run_work_fn")),
            ("unseen", None, None, None),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn wait_knows_who_woke_the_task_and_who_waited() {
        let mut record = record(&[stint(TID_UNSEEN, 900, 0)], &[], 0);
        let of = |record: WaitRecord| {
            let cgroup = "/a".into();
            let event = WaitEvent { record, cgroup };
            autopsy(&event, &IrqNames::new(), &KernelNames::default())
        };
        let lost = of(record);
        assert_eq!(
            (lost.cause, lost.wait_ns, lost.at_ns),
            ("tick", 1_000, 1_000)
        );
        assert_eq!((&*lost.victim.comm, &*lost.victim.cgroup), ("victim", "/a"));
        assert_eq!((lost.waker, lost.spans[0].kind), (None, "unseen"));
        record.class = WaitClass::Wakeup as u32;
        record.waker_source = Source::new(InterruptKind::Tick, 0);
        let woken = of(record).waker.unwrap();
        assert_eq!((woken.kind, woken.name.as_deref()), ("tick", Some("tick")));
        (record.waker_source, record.waker_tid) = (Source::default(), 5);
        record.waker_comm = comm("psql");
        let woken = of(record).waker.unwrap();
        assert_eq!((woken.kind, woken.tid, woken.tgid), ("task", Some(5), None));
    }
}
