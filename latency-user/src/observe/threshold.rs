//! From which length on waits are long enough to ask what is in their way.

use latency_common::hist::{N_BUCKETS, bucket_high_ns};

/// Before enough is known.
const FIRST_NS: u64 = 1_000_000;

/// Shorter waits are not worth a stack.
const LEAST_NS: u64 = 100_000;

/// Waits of which a percentile says something.
const MIN_WAITS: u64 = 100;

/// The threshold: as given, or that which one wait in a hundred exceeds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    ns: u64,
    is_given: bool,
    /// Waits of this length are told one by one, so that what was in their way is of interest.
    most_ns: u64,
}

impl Threshold {
    /// As given; without, it follows the waits, and stays below `over_ns`.
    pub(crate) fn new(given_ns: Option<u64>, over_ns: Option<u64>) -> Self {
        let most_ns = over_ns.unwrap_or(u64::MAX).max(LEAST_NS);
        Self {
            ns: given_ns.unwrap_or(FIRST_NS.min(most_ns)),
            is_given: given_ns.is_some(),
            most_ns,
        }
    }

    /// The threshold now.
    pub(crate) fn ns(self) -> u64 {
        self.ns
    }

    /// Follows the waits so far; true where it has moved.
    pub(crate) fn follow(&mut self, waits: impl FnOnce() -> [u64; N_BUCKETS]) -> bool {
        if self.is_given {
            return false;
        }
        let before = self.ns;
        if let Some(p99_ns) = p99_ns(&waits()) {
            self.ns = p99_ns.clamp(LEAST_NS, self.most_ns);
        }
        self.ns != before
    }
}

/// The upper bound of the bucket with the wait that a hundredth exceed.
fn p99_ns(waits: &[u64; N_BUCKETS]) -> Option<u64> {
    let n_waits: u64 = waits.iter().sum();
    if n_waits < MIN_WAITS {
        return None;
    }
    let mut n_longer = 0;
    let bucket = waits.iter().rposition(|count| {
        n_longer += count;
        n_longer > n_waits / 100
    });
    bucket.map(bucket_high_ns)
}

#[cfg(test)]
mod tests {
    use latency_common::hist::bucket_of;

    use super::*;

    fn waits(rows: &[(u64, u64)]) -> [u64; N_BUCKETS] {
        let mut waits = [0; N_BUCKETS];
        for (ns, count) in rows {
            waits[bucket_of(*ns).unwrap()] += count;
        }
        waits
    }

    #[track_caller]
    fn check(mut threshold: Threshold, rows: &[(u64, u64)], expected_ns: u64) {
        let before = threshold.ns();
        assert_eq!(threshold.follow(|| waits(rows)), expected_ns != before);
        let apart = threshold.ns().abs_diff(expected_ns);
        assert!(apart <= expected_ns / 32, "{threshold:?}");
    }

    #[test]
    fn it_follows_the_waits_that_one_in_a_hundred_exceeds() {
        let automatic = Threshold::new(None, None);
        check(automatic, &[(4_000_000, 99)], FIRST_NS);
        check(automatic, &[(4_000_000, 100)], 4_000_000);
        check(automatic, &[(500_000, 990), (9_000_000, 10)], 500_000);
        check(automatic, &[(500_000, 989), (9_000_000, 11)], 9_000_000);
        check(automatic, &[(5_000, 1_000)], LEAST_NS);
    }

    #[test]
    fn waits_that_are_told_one_by_one_are_above_it() {
        let over = Threshold::new(None, Some(2_000_000));
        check(over, &[(4_000_000, 100)], 2_000_000);
        assert_eq!(Threshold::new(None, Some(200_000)).ns(), 200_000);
        assert_eq!(Threshold::new(None, Some(1)).ns(), LEAST_NS);
    }

    #[test]
    fn given_threshold_stays() {
        let given = Threshold::new(Some(7), None);
        check(given, &[(4_000_000, 100)], 7);
    }
}
