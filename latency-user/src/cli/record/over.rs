//! Waits over a threshold: how many there were, and which of them are printed as they happen.

use tokio::time::{Duration, Instant};

use crate::model::OverStats;

/// Waits printed in a second at most: more can neither be read nor be cheap.
const MAX_PER_SECOND: u32 = 10;

/// Counts waits and lets some through.
#[derive(Debug)]
pub(super) struct Over {
    stats: OverStats,
    second: Instant,
    n_in_second: u32,
    n_skipped: u64,
}

impl Over {
    /// For waits from `over_ns` on.
    pub(super) fn new(over_ns: u64) -> Self {
        Self {
            stats: OverStats {
                over_ns,
                ..OverStats::default()
            },
            second: Instant::now(),
            n_in_second: 0,
            n_skipped: 0,
        }
    }

    /// Whether the next wait is printed, and if so, how many before it were not.
    pub(super) fn admit(&mut self, now: Instant) -> Option<u64> {
        self.stats.count += 1;
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            self.second = now;
            self.n_in_second = 0;
        }
        if self.n_in_second == MAX_PER_SECOND {
            self.stats.not_shown += 1;
            self.n_skipped += 1;
            return None;
        }
        self.n_in_second += 1;
        Some(std::mem::take(&mut self.n_skipped))
    }

    /// All so far.
    pub(super) fn stats(&self) -> OverStats {
        self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_a_second_are_shown_and_the_others_counted() {
        let mut over = Over::new(1_000);
        let start = over.second;
        let later = |ms| start + Duration::from_millis(ms);
        let shown: Vec<_> = (0..12).filter_map(|ms| over.admit(later(ms))).collect();
        assert_eq!(shown, [0; 10]);
        assert_eq!(over.admit(later(999)), None);
        assert_eq!(over.admit(later(1_000)), Some(3));
        assert_eq!(over.admit(later(1_001)), Some(0));
        let expected = OverStats {
            over_ns: 1_000,
            count: 15,
            not_shown: 3,
        };
        assert_eq!(over.stats(), expected);
    }
}
