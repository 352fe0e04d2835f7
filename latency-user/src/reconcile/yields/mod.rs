//! Calls of `sched_yield` by what the kernel saw in them.
//!
//! A wait lies in the call that contains its middle: the clocks of both sides are one, but a reading may be
//! nanoseconds off, and no call is that short.

mod series;

use latency_common::class::WaitClass;

use crate::{model::TracedWait, probe::yields::Call};

pub use self::series::{CellFacts, End, REAL_SWITCH_PCT, series};

/// Lengths of calls by what happened in them, in the order of the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SortedCalls {
    /// Another task got the CPU because of the call.
    pub switched_ns: Vec<u64>,
    /// The call came back at once.
    pub unswitched_ns: Vec<u64>,
    /// The CPU was lost in the call, but not to it: to a wakeup, the tick, a higher class.
    pub lost_ns: Vec<u64>,
    /// Waits for a yield that are in no call.
    pub n_unmatched: u64,
    /// The most by which a wait was longer than the call that contains it.
    pub worst_disagreement_ns: u64,
}

/// Sorts `calls`, which are in order, by the waits of the same thread, which are in order too.
#[must_use]
pub fn sort_calls(calls: &[Call], waits: &[TracedWait]) -> SortedCalls {
    let mut sorted = SortedCalls::default();
    let mut left = waits;
    for call in calls {
        let n_before = left.partition_point(|wait| wait.middle_ns() < call.before_at_ns);
        let (before, rest) = left.split_at(n_before);
        let (within, after) =
            rest.split_at(rest.partition_point(|wait| wait.middle_ns() <= call.after_at_ns));
        sorted.n_unmatched += n_yields(before);
        sorted.add(call.length_ns(), within);
        left = after;
    }
    sorted.n_unmatched += n_yields(left);
    sorted
}

impl SortedCalls {
    fn add(&mut self, length_ns: u64, within: &[TracedWait]) {
        if within.is_empty() {
            self.unswitched_ns.push(length_ns);
            return;
        }
        let waited_ns: u64 = within.iter().map(TracedWait::length_ns).sum();
        let apart_ns = waited_ns.saturating_sub(length_ns);
        self.worst_disagreement_ns = self.worst_disagreement_ns.max(apart_ns);
        if n_yields(within) > 0 {
            self.switched_ns.push(length_ns);
        } else {
            self.lost_ns.push(length_ns);
        }
    }
}

fn n_yields(waits: &[TracedWait]) -> u64 {
    let yields = waits.iter().filter(|wait| wait.class == WaitClass::Yield);
    yields.map(|_| 1).sum()
}

#[cfg(test)]
mod tests {
    use latency_common::attribution::N_PARTS;

    use super::*;

    fn call(before_at_ns: u64, after_at_ns: u64) -> Call {
        Call {
            before_at_ns,
            after_at_ns,
        }
    }

    fn wait(class: WaitClass, queued_at_ns: u64, running_at_ns: u64) -> TracedWait {
        TracedWait {
            tid: 7,
            cpu: 1,
            class,
            waking_at_ns: None,
            queued_at_ns,
            running_at_ns,
            parts_ns: [0; N_PARTS],
            timer: None,
            previous_tid: 8,
        }
    }

    //       0    400 420        2420 2440   2840 2860      9860
    // calls [ none ] [  yield      ] [ none ]    [  tick    ]
    #[test]
    fn calls_are_sorted_by_the_wait_within() {
        let calls = [
            call(0, 400),
            call(420, 2420),
            call(2440, 2840),
            call(2860, 9860),
        ];
        let waits = [
            wait(WaitClass::Yield, 600, 2200),
            wait(WaitClass::Tick, 3000, 9500),
        ];
        let sorted = sort_calls(&calls, &waits);
        assert_eq!(sorted.unswitched_ns, [400, 400]);
        assert_eq!(sorted.switched_ns, [2000]);
        assert_eq!(sorted.lost_ns, [7000]);
        assert_eq!(sorted.n_unmatched, 0);
        assert_eq!(sorted.worst_disagreement_ns, 0);
    }

    #[test]
    fn a_call_that_also_loses_the_cpu_otherwise_has_switched() {
        let waits = [
            wait(WaitClass::Yield, 100, 1_000),
            wait(WaitClass::WakeupPreemption, 1_100, 1_900),
        ];
        let sorted = sort_calls(&[call(0, 2_000)], &waits);
        assert_eq!(sorted.switched_ns, [2_000]);
        assert!(sorted.lost_ns.is_empty());
    }

    #[test]
    fn readings_that_are_nanoseconds_off_do_not_part_a_wait_from_its_call() {
        let waits = [wait(WaitClass::Yield, 999, 3_005)];
        let sorted = sort_calls(&[call(1_000, 3_000)], &waits);
        assert_eq!(sorted.switched_ns, [2_000]);
        assert_eq!(sorted.worst_disagreement_ns, 6);
    }

    #[test]
    fn a_yield_outside_every_call_is_counted_and_other_waits_there_are_not() {
        let waits = [
            wait(WaitClass::Yield, 10, 20),
            wait(WaitClass::Tick, 150, 180),
            wait(WaitClass::Yield, 350, 380),
        ];
        let sorted = sort_calls(&[call(100, 140), call(200, 300)], &waits);
        assert_eq!(sorted.n_unmatched, 2);
        assert_eq!(sorted.unswitched_ns, [40, 100]);
    }
}
