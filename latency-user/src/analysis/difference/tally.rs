//! The counters of one task in an interval: a later tally minus an earlier one.
//!
//! The longest and the shortest wait of an interval are exact where the cumulative one changed
//! within it, or where there was one wait; else they are the bounds of the outermost bucket of
//! that kind which grew, at most 1/32 off the kind's own extreme, and for a single cause an upper
//! (lower) bound.

use latency_common::class::{WaitClass, WaitKind};
use latency_common::hist::{HistKind, bucket_high_ns, bucket_low_ns};

use super::attribution;
use crate::analysis::rows;
use crate::model::{Buckets, ClassTally, Tally};

/// What was counted after `earlier` and up to `later`.
pub(super) fn minus(later: &Tally, earlier: &Tally) -> Tally {
    let mut hists: [Buckets; _] = Default::default();
    for (hist, (later, earlier)) in hists.iter_mut().zip(later.hists.iter().zip(&earlier.hists)) {
        *hist = buckets_minus(later, earlier);
    }
    let mut classes = [ClassTally::default(); _];
    for class in WaitClass::ALL {
        let bounds = hist_of(class).map(|kind| &hists[kind as usize]);
        classes[class as usize] = class_minus(later.class(class), earlier.class(class), bounds);
    }
    let latency_bounds = Some(&hists[HistKind::Latency as usize]);
    growth!(later, earlier, Tally {
        voluntary, involuntary, yields, cancelled_sleeps, kernel_voluntary, kernel_involuntary,
        on_cpu_ns, on_cpu_unaudited_ns, kernel_on_cpu_ns, migrations, wakeups_not_asleep,
        unseen_on_cpu_ns;
        classes,
        latency: class_minus(&later.latency, &earlier.latency, latency_bounds),
        hists,
        without_hist: later.without_hist,
        preemptors: rows::growth(&later.preemptors, &earlier.preemptors),
        attribution: attribution::minus(&later.attribution, &earlier.attribution),
        open: later.open.clone(),
        waited_earlier_ns: earlier.open.iter().map(|wait| wait.ns).sum(),
    })
}

/// The histogram that holds the samples of a class.
fn hist_of(class: WaitClass) -> Option<HistKind> {
    class.kind().map(|kind| match kind {
        WaitKind::Wakeup => HistKind::Wakeup,
        WaitKind::Preemption => HistKind::Preemption,
        WaitKind::NewTask => HistKind::NewTask,
    })
}

/// `grown` is the histogram of the interval that holds the samples of this class among others.
fn class_minus(later: &ClassTally, earlier: &ClassTally, grown: Option<&Buckets>) -> ClassTally {
    let count = later.count.saturating_sub(earlier.count);
    let sum_ns = later.sum_ns.saturating_sub(earlier.sum_ns);
    let kernel_ns = later.kernel_ns.saturating_sub(earlier.kernel_ns);
    let (min_ns, max_ns) = match count {
        0 => (0, 0),
        1 => (sum_ns, sum_ns),
        _ => {
            let is_first = earlier.count == 0;
            let shortest = if is_first || later.min_ns < earlier.min_ns {
                later.min_ns
            } else {
                lowest_ns(grown).max(later.min_ns)
            };
            let longest = if is_first || later.max_ns > earlier.max_ns {
                later.max_ns
            } else {
                highest_ns(grown).min(later.max_ns)
            };
            // Where the histogram was read before the counters or is missing, the mean still bounds.
            (
                shortest.min(sum_ns / count),
                longest.max(sum_ns.div_ceil(count)),
            )
        }
    };
    ClassTally {
        count,
        sum_ns,
        min_ns,
        max_ns,
        kernel_ns,
    }
}

/// Nothing shorter is in `buckets`.
fn lowest_ns(buckets: Option<&Buckets>) -> u64 {
    let first = buckets.and_then(|buckets| buckets.counts.first());
    first.map_or(0, |(bucket, _)| bucket_low_ns(usize::from(*bucket)))
}

/// Nothing longer is in `buckets`.
fn highest_ns(buckets: Option<&Buckets>) -> u64 {
    let within = buckets.filter(|buckets| buckets.overflow == 0);
    let last = within.and_then(|buckets| buckets.counts.last());
    last.map_or(u64::MAX, |(bucket, _)| bucket_high_ns(usize::from(*bucket)))
}

fn buckets_minus(later: &Buckets, earlier: &Buckets) -> Buckets {
    let mut before = earlier.counts.iter().peekable();
    let mut counts = Vec::new();
    for &(bucket, count) in &later.counts {
        // Buckets only grow, so every earlier one is met again.
        let shown = before
            .next_if(|(other, _)| *other == bucket)
            .map_or(0, |(_, shown)| *shown);
        if count > shown {
            counts.push((bucket, count - shown));
        }
    }
    Buckets {
        counts,
        overflow: later.overflow.saturating_sub(earlier.overflow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::tally_of;

    /// The shortest and the longest of `samples` as an interval that follows `before` has them.
    fn extremes(before: &[u64], samples: &[u64]) -> (u64, u64) {
        let earlier = tally_of(WaitClass::Tick, before);
        let later = tally_of(WaitClass::Tick, &[before, samples].concat());
        let interval = minus(&later, &earlier);
        let class = interval.class(WaitClass::Tick);
        (class.min_ns, class.max_ns)
    }

    #[test]
    fn extremes_are_exact_when_they_are_records() {
        assert_eq!(
            extremes(&[1_000_000], &[777_777, 5_000_001]),
            (777_777, 5_000_001)
        );
        assert_eq!(extremes(&[], &[777_777, 5_000_001]), (777_777, 5_000_001));
    }

    #[test]
    fn extremes_are_else_the_bounds_of_their_buckets() {
        let (shortest, longest) = extremes(&[100, 9_000_000], &[1_000_000, 2_000_000]);
        assert!((968_750..=1_000_000).contains(&shortest), "{shortest}");
        assert!((2_000_000..2_062_500).contains(&longest), "{longest}");
    }

    #[test]
    fn single_wait_is_exact() {
        assert_eq!(
            extremes(&[100, 9_000_000], &[1_234_567]),
            (1_234_567, 1_234_567)
        );
    }

    #[test]
    fn task_without_histogram_is_bounded_by_its_whole_recording() {
        let without = |samples: &[u64]| {
            let tally = tally_of(WaitClass::Tick, samples);
            Tally {
                hists: Default::default(),
                ..tally
            }
        };
        let interval = minus(&without(&[10, 90, 20, 30]), &without(&[10, 90]));
        let class = interval.class(WaitClass::Tick);
        assert_eq!((class.min_ns, class.max_ns), (10, 90));
    }
}
