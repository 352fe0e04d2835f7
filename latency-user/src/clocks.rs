//! How far other clocks are ahead of `CLOCK_MONOTONIC`, the clock of all figures.
//!
//! Leaves the readings themselves to [`crate::host`].

use rustix::time::ClockId;

use crate::host::{clock_ns, monotonic_ns};

/// Enough for one pair of readings that nothing came between.
const N_READINGS: usize = 8;

/// How far a clock is ahead of `CLOCK_MONOTONIC`, which is read after it: the largest difference is the
/// nearest to the truth, and exactly 0 for one that is not ahead.
pub fn ahead_ns(clock: impl Fn() -> u64) -> u64 {
    let difference = |_| clock().saturating_sub(monotonic_ns());
    (0..N_READINGS).map(difference).max().unwrap_or(0)
}

/// For how long the machine has been suspended since it was booted.
#[must_use]
pub fn suspended_ns() -> u64 {
    ahead_ns(|| clock_ns(ClockId::Boottime))
}

#[cfg(test)]
mod tests {
    use super::ahead_ns;
    use crate::host::monotonic_ns;

    #[test]
    fn a_clock_is_ahead_by_what_it_shows_more() {
        let ahead = ahead_ns(|| monotonic_ns() + 7_000_000_000);
        // Something may have come between every pair of readings.
        assert!((6_000_000_000..=7_000_000_000).contains(&ahead), "{ahead}");
        assert_eq!(ahead_ns(|| monotonic_ns().saturating_sub(1)), 0);
    }
}
