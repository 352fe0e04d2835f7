//! Adds tallies up: tasks to groups, groups to totals.
//!
//! Counts, sums and buckets add; minima and maxima stay exact. Nothing is rounded, so that a sum
//! does not depend on the order or on the grouping.

use std::mem::take;

use latency_common::attribution::{Stolen, WakePath, WakeupCounters};
use latency_common::class::WaitClass;
use latency_common::counters::WaitCounters;
use latency_common::hist::{HistKind, bucket_of};

use super::rows;
use crate::model::{AttributionTally, Buckets, ClassTally, Tally};

/// The sum of all `tallies`.
pub(crate) fn sum<'a>(tallies: impl IntoIterator<Item = &'a Tally>) -> Tally {
    let mut total = Tally::default();
    for tally in tallies {
        add(&mut total, tally);
    }
    merge_rows(&mut total);
    total
}

/// Makes one of equal rows, in each table.
pub(super) fn merge_rows(tally: &mut Tally) {
    let attribution = &mut tally.attribution;
    tally.preemptors = rows::merged(take(&mut tally.preemptors));
    attribution.culprits = rows::merged(take(&mut attribution.culprits));
    attribution.interrupts = rows::merged(take(&mut attribution.interrupts));
    attribution.wakers = rows::merged(take(&mut attribution.wakers));
}

/// Adds everything but leaves equal rows of tables side by side: merging them once at the end keeps
/// the sum over many tasks linear.
fn add(into: &mut Tally, from: &Tally) {
    // Naming each field makes a new one an error here.
    let Tally {
        classes,
        latency,
        hists,
        without_hist,
        voluntary,
        involuntary,
        yields,
        cancelled_sleeps,
        kernel_voluntary,
        kernel_involuntary,
        on_cpu_ns,
        on_cpu_unaudited_ns,
        kernel_on_cpu_ns,
        migrations,
        wakeups_not_asleep,
        unseen_on_cpu_ns,
        preemptors,
        attribution,
        open,
        waited_earlier_ns,
    } = from;
    for (into, from) in into.classes.iter_mut().zip(classes) {
        add_class(into, from);
    }
    add_class(&mut into.latency, latency);
    for (into, from) in into.hists.iter_mut().zip(hists) {
        add_buckets(into, from);
    }
    add_first_wait(into, from);
    for (into, from) in into.without_hist.iter_mut().zip(without_hist) {
        *into += from;
    }
    into.voluntary += voluntary;
    into.involuntary += involuntary;
    into.yields += yields;
    into.cancelled_sleeps += cancelled_sleeps;
    into.kernel_voluntary += kernel_voluntary;
    into.kernel_involuntary += kernel_involuntary;
    into.on_cpu_ns += on_cpu_ns;
    into.on_cpu_unaudited_ns += on_cpu_unaudited_ns;
    into.kernel_on_cpu_ns += kernel_on_cpu_ns;
    into.migrations += migrations;
    into.wakeups_not_asleep += wakeups_not_asleep;
    into.unseen_on_cpu_ns += unseen_on_cpu_ns;
    into.preemptors.extend_from_slice(preemptors);
    add_attribution(&mut into.attribution, attribution);
    into.open.extend_from_slice(open);
    into.waited_earlier_ns += waited_earlier_ns;
}

/// Adds the waits of one class to another.
pub(super) fn add_class(into: &mut ClassTally, from: &ClassTally) {
    if from.count > 0 {
        into.min_ns = if into.count == 0 {
            from.min_ns
        } else {
            into.min_ns.min(from.min_ns)
        };
        into.max_ns = into.max_ns.max(from.max_ns);
    }
    into.count += from.count;
    into.sum_ns += from.sum_ns;
    into.kernel_ns += from.kernel_ns;
}

pub(crate) fn add_buckets(into: &mut Buckets, from: &Buckets) {
    into.overflow += from.overflow;
    if from.counts.is_empty() {
        return;
    }
    let mut merged = Vec::with_capacity(into.counts.len() + from.counts.len());
    let (mut ours, mut theirs) = (into.counts.iter().peekable(), from.counts.iter().peekable());
    while let (Some(&&(our_bucket, our_count)), Some(&&(their_bucket, their_count))) =
        (ours.peek(), theirs.peek())
    {
        let bucket = our_bucket.min(their_bucket);
        let mut count = 0;
        if our_bucket == bucket {
            count += our_count;
            ours.next();
        }
        if their_bucket == bucket {
            count += their_count;
            theirs.next();
        }
        merged.push((bucket, count));
    }
    merged.extend(ours);
    merged.extend(theirs);
    into.counts = merged;
}

/// A task waits at most once before its first run and keeps no histogram of that: the sum of a
/// single wait is its one sample.
fn add_first_wait(into: &mut Tally, from: &Tally) {
    let class = from.class(WaitClass::NewTask);
    let kind = HistKind::NewTask as usize;
    if class.count != 1 || from.hists[kind] != Buckets::default() {
        return;
    }
    let bucket = bucket_of(class.sum_ns).and_then(|bucket| u16::try_from(bucket).ok());
    let sample = match bucket {
        Some(bucket) => Buckets {
            counts: vec![(bucket, 1)],
            overflow: 0,
        },
        None => Buckets {
            counts: Vec::new(),
            overflow: 1,
        },
    };
    add_buckets(&mut into.hists[kind], &sample);
}

fn add_attribution(into: &mut AttributionTally, from: &AttributionTally) {
    let AttributionTally {
        parts,
        dropped_culprits_ns,
        stolen,
        culprits,
        interrupts,
        wake_path,
        wakers,
    } = from;
    add_each(&mut into.parts, parts);
    into.dropped_culprits_ns += dropped_culprits_ns;
    let Stolen { ns, counts } = stolen;
    add_each(&mut into.stolen.ns, ns);
    add_each(&mut into.stolen.counts, counts);
    into.culprits.extend_from_slice(culprits);
    into.interrupts.extend_from_slice(interrupts);
    add_wake_path(&mut into.wake_path, wake_path);
    into.wakers.extend_from_slice(wakers);
}

fn add_each(into: &mut [u64], from: &[u64]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into += from;
    }
}

fn add_wake_path(into: &mut WakePath, from: &WakePath) {
    let WakePath {
        to_queued,
        placements,
        sampled,
        moved,
    } = from;
    add_samples(&mut into.to_queued, to_queued);
    let kinds = into.placements.iter_mut().chain(&mut into.sampled);
    for (into, from) in kinds.zip(placements.iter().chain(sampled)) {
        add_wakeups(into, from);
    }
    into.moved += moved;
}

fn add_samples(into: &mut WaitCounters, from: &WaitCounters) {
    if from.count > 0 {
        into.min_ns = if into.count == 0 {
            from.min_ns
        } else {
            into.min_ns.min(from.min_ns)
        };
        into.max_ns = into.max_ns.max(from.max_ns);
    }
    into.count += from.count;
    into.sum_ns += from.sum_ns;
}

fn add_wakeups(into: &mut WakeupCounters, from: &WakeupCounters) {
    into.count += from.count;
    into.same_cpu += from.same_cpu;
    into.latency_sum_ns += from.latency_sum_ns;
    into.latency_max_ns = into.latency_max_ns.max(from.latency_max_ns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::{Random, comm, tally_of};
    use crate::model::{OpenWait, PreemptorTally};

    #[test]
    fn sum_of_parts_equals_tally_of_all_samples() {
        let seed = 0x5eed_0001;
        let mut random = Random::new(seed);
        for round in 0..50 {
            let samples = random.durations(200);
            let (left, right) = samples.split_at(random.below(201));
            let whole = tally_of(WaitClass::Wakeup, &samples);
            let parts = [
                tally_of(WaitClass::Wakeup, left),
                tally_of(WaitClass::Wakeup, right),
            ];
            assert_eq!(sum(&parts), whole, "seed {seed:#x}, round {round}");
        }
    }

    #[test]
    fn sum_of_nothing_is_empty() {
        assert_eq!(sum([]), Tally::default());
        assert_eq!(sum(&[Tally::default(), Tally::default()]), Tally::default());
    }

    #[test]
    fn tally_without_waits_does_not_lower_the_minimum() {
        let tally = sum(&[tally_of(WaitClass::Tick, &[7, 9]), Tally::default()]);
        assert_eq!(tally.class(WaitClass::Tick).min_ns, 7);
    }

    #[test]
    fn first_waits_of_tasks_become_a_distribution() {
        let first_wait = |ns| {
            let mut tally = tally_of(WaitClass::NewTask, &[ns]);
            tally.hists[HistKind::NewTask as usize] = Buckets::default();
            tally
        };
        let total = sum(&[first_wait(5), first_wait(7), first_wait(1 << 40)]);
        let expected = Buckets {
            counts: vec![(5, 1), (7, 1)],
            overflow: 1,
        };
        assert_eq!(total.hists[HistKind::NewTask as usize], expected);
        assert_eq!(sum([&total]), total);
    }

    #[test]
    fn attribution_is_summed_up() {
        let attribution = AttributionTally {
            parts: std::array::from_fn(|part| part as u64),
            dropped_culprits_ns: 3,
            stolen: Stolen {
                ns: [1, 2, 3],
                counts: [4, 5, 6],
            },
            ..AttributionTally::default()
        };
        let mut tally = Tally {
            attribution,
            ..Tally::default()
        };
        let path = &mut tally.attribution.wake_path;
        (path.to_queued.count, path.to_queued.min_ns, path.moved) = (1, 7, 2);
        path.sampled[1].latency_max_ns = 9;
        let total = sum([&tally, &Tally::default(), &tally]).attribution;
        assert_eq!((total.parts[8], total.dropped_culprits_ns), (16, 6));
        assert_eq!(
            (total.stolen.ns, total.stolen.counts),
            ([2, 4, 6], [8, 10, 12])
        );
        let path = total.wake_path;
        let queued = path.to_queued;
        assert_eq!((queued.count, queued.min_ns, path.moved), (2, 7, 4));
        assert_eq!(path.sampled[1].latency_max_ns, 9);
    }

    #[test]
    fn equal_preemptors_become_one_and_the_largest_comes_first() {
        let row = |class, name, tid, sum_ns| PreemptorTally {
            class,
            comm: comm(name),
            tid,
            count: 1,
            sum_ns,
        };
        let (tick, wakeup) = (WaitClass::Tick, WaitClass::WakeupPreemption);
        let first = Tally {
            preemptors: vec![row(Some(tick), "a", 1, 10), row(Some(wakeup), "a", 1, 5)],
            ..Tally::default()
        };
        let second = Tally {
            preemptors: vec![row(Some(wakeup), "a", 1, 20), row(Some(tick), "b", 2, 10)],
            ..Tally::default()
        };
        let merged: Vec<_> = sum(&[first, second])
            .preemptors
            .iter()
            .map(|row| (row.class, row.tid, row.count, row.sum_ns))
            .collect();
        assert_eq!(
            merged,
            [
                (Some(wakeup), 1, 2, 25),
                (Some(tick), 1, 1, 10),
                (Some(tick), 2, 1, 10)
            ]
        );
    }

    #[test]
    fn open_waits_are_kept_apart() {
        let open = |ns| Tally {
            open: vec![OpenWait {
                class: WaitClass::Tick,
                ns,
            }],
            ..Tally::default()
        };
        let total = sum(&[open(3), open(4)]);
        assert_eq!(total.open.len(), 2);
        assert_eq!(total.waited_ns(), 7);
    }
}
