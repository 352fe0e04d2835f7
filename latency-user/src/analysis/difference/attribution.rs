//! What the waits of an interval were made of: a later tally minus an earlier one.
//!
//! The parts of a wait that goes on may be told apart otherwise later: who ran long ago is forgotten
//! by then, and named time becomes unattributed. A part that shrank is 0 in the interval, and what
//! it lacks is taken off the others, so that the parts are the time waited in the interval.

use latency_common::{
    attribution::{N_PARTS, Part, Stolen, WakePath, WakeupCounters},
    counters::WaitCounters,
};

use crate::{analysis::rows, model::AttributionTally};

/// What was added after `earlier` and up to `later`.
pub(super) fn minus(later: &AttributionTally, earlier: &AttributionTally) -> AttributionTally {
    growth!(later, earlier, AttributionTally {
        dropped_culprits_ns;
        parts: parts_minus(&later.parts, &earlier.parts),
        stolen: stolen_minus(&later.stolen, &earlier.stolen),
        culprits: rows::growth(&later.culprits, &earlier.culprits),
        interrupts: rows::growth(&later.interrupts, &earlier.interrupts),
        wake_path: wake_path_minus(&later.wake_path, &earlier.wake_path),
        wakers: rows::growth(&later.wakers, &earlier.wakers),
    })
}

fn parts_minus(later: &[u64; N_PARTS], earlier: &[u64; N_PARTS]) -> [u64; N_PARTS] {
    let mut grown = [0; N_PARTS];
    let mut lacking = 0;
    for ((grown, later), earlier) in grown.iter_mut().zip(later).zip(earlier) {
        *grown = later.saturating_sub(*earlier);
        lacking += earlier.saturating_sub(*later);
    }
    // Unattributed first: that is what named time turns into.
    for part in [Part::Unattributed].into_iter().chain(Part::ALL) {
        let taken = lacking.min(grown[part as usize]);
        grown[part as usize] -= taken;
        lacking -= taken;
    }
    grown
}

fn stolen_minus(later: &Stolen, earlier: &Stolen) -> Stolen {
    let difference = |later: &[u64; _], earlier: &[u64; _]| {
        std::array::from_fn(|index| later[index].saturating_sub(earlier[index]))
    };
    Stolen {
        ns: difference(&later.ns, &earlier.ns),
        counts: difference(&later.counts, &earlier.counts),
    }
}

fn wake_path_minus(later: &WakePath, earlier: &WakePath) -> WakePath {
    let wakeups = |later: &[WakeupCounters], earlier: &[WakeupCounters], index: usize| {
        wakeups_minus(&later[index], &earlier[index])
    };
    growth!(later, earlier, WakePath {
        moved;
        to_queued: stage_minus(&later.to_queued, &earlier.to_queued),
        placements: std::array::from_fn(|place| {
            wakeups(&later.placements, &earlier.placements, place)
        }),
        sampled: std::array::from_fn(|kind| wakeups(&later.sampled, &earlier.sampled, kind)),
    })
}

fn stage_minus(later: &WaitCounters, earlier: &WaitCounters) -> WaitCounters {
    let grown =
        growth!(later, earlier, WaitCounters { count, sum_ns; min_ns: later.min_ns, max_ns: 0, });
    if grown.count == 0 {
        return WaitCounters::default();
    }
    WaitCounters {
        max_ns: longest(later.max_ns, earlier.max_ns, grown.sum_ns),
        ..grown
    }
}

fn wakeups_minus(later: &WakeupCounters, earlier: &WakeupCounters) -> WakeupCounters {
    let grown = growth!(later, earlier, WakeupCounters {
        count, same_cpu, latency_sum_ns;
        latency_max_ns: 0,
    });
    if grown.count == 0 {
        return WakeupCounters::default();
    }
    WakeupCounters {
        latency_max_ns: longest(
            later.latency_max_ns,
            earlier.latency_max_ns,
            grown.latency_sum_ns,
        ),
        ..grown
    }
}

/// The longest of an interval: exact where it is the longest of all so far, else an upper bound.
pub(super) fn longest(later_ns: u64, earlier_ns: u64, sum_ns: u64) -> u64 {
    if later_ns > earlier_ns {
        later_ns
    } else {
        later_ns.min(sum_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::Random;

    #[test]
    fn parts_of_an_interval_are_the_time_waited_in_it() {
        let seed = 0x5eed_0006;
        let mut random = Random::new(seed);
        let mut n_shrunk = 0;
        for round in 0..200 {
            let earlier: [u64; N_PARTS] = std::array::from_fn(|_| random.below(1000) as u64);
            let mut later = earlier.map(|ns| ns + random.below(100) as u64);
            // Named time is told apart otherwise later.
            let renamed = later[Part::OtherTasks as usize].min(random.below(300) as u64);
            later[Part::OtherTasks as usize] -= renamed;
            later[Part::Unattributed as usize] += renamed;
            n_shrunk += u64::from(later[0] < earlier[0]);
            let grown = parts_minus(&later, &earlier);
            let waited = later.iter().sum::<u64>() - earlier.iter().sum::<u64>();
            assert_eq!(
                grown.iter().sum::<u64>(),
                waited,
                "seed {seed:#x}, round {round}"
            );
        }
        assert!(n_shrunk > 20, "{n_shrunk}");
    }

    #[test]
    fn nothing_of_a_path_that_nobody_took() {
        let mut later = AttributionTally::default();
        later.wake_path.to_queued = WaitCounters {
            count: 3,
            sum_ns: 60,
            min_ns: 10,
            max_ns: 30,
        };
        later.wake_path.placements[1] = WakeupCounters {
            count: 2,
            same_cpu: 1,
            latency_sum_ns: 90,
            latency_max_ns: 80,
        };
        assert_eq!(minus(&later, &later), AttributionTally::default());
        let mut last = later.clone();
        last.wake_path.placements[1].count = 3;
        last.wake_path.placements[1].latency_sum_ns = 95;
        let place = minus(&last, &later).wake_path.placements[1];
        assert_eq!((place.count, place.latency_max_ns), (1, 5));
    }
}
