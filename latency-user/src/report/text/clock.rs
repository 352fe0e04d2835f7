//! The time of day, in UTC.

use std::time::Duration;

use crate::model::Window;

/// The wall clock at `at_ns`, a reading of `CLOCK_MONOTONIC` after the window began; where the
/// machine was suspended in between, it is off by that time.
pub(super) fn wall_ns(window: &Window, at_ns: u64) -> u64 {
    window.start_wall_ns + at_ns.saturating_sub(window.start_at_ns)
}

/// The wall clock when the window ended.
pub(super) fn end_wall_ns(window: &Window) -> u64 {
    wall_ns(window, window.end_at_ns) + window.suspended_ns
}

/// Hours, minutes and seconds.
pub(super) fn of_day(wall_ns: u64) -> String {
    let second = Duration::from_nanos(wall_ns).as_secs() % 86_400;
    format!(
        "{:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The same to a thousandth of a second.
pub(super) fn of_day_exact(wall_ns: u64) -> String {
    let fraction = Duration::from_nanos(wall_ns).subsec_millis();
    format!("{}.{fraction:03}", of_day(wall_ns))
}
