//! One line for each interval, under a header that comes back before it scrolls away.

use super::{clock, waits::or_dash};
use crate::model::Report;
use crate::units;

/// Lines between two headers: fewer than a small terminal has.
const HEADER_EVERY: u64 = 20;

/// The line of one interval; the first is number 1. Every twentieth has the header above it.
#[must_use]
pub fn interval_line(report: &Report, index: u64) -> String {
    let totals = &report.totals;
    let switches = totals.switches;
    let line = columns([
        &clock::of_day(clock::end_wall_ns(&report.window)),
        &units::count(totals.waits.count()),
        &or_dash(totals.waits.wakeup.p50_ns),
        &or_dash(totals.waits.wakeup.p99_ns),
        &or_dash(totals.waits.preemption.p99_ns),
        &units::duration(totals.waits.max_ns()),
        &units::duration(totals.waited_ns),
        &units::count(switches.voluntary + switches.involuntary),
    ]);
    if index % HEADER_EVERY == 1 {
        header() + &line
    } else {
        line
    }
}

fn header() -> String {
    columns([
        "UTC",
        "waits",
        "wakeup p50",
        "wakeup p99",
        "lost p99",
        "longest",
        "waited",
        "switches",
    ])
}

fn columns(cells: [&str; 8]) -> String {
    let [time, rest @ ..] = cells;
    let rest: String = rest.map(|cell| format!("{cell:>12}")).concat();
    format!("{time:<8}{rest}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn interval_is_a_line_under_a_header() {
        insta::assert_snapshot!(interval_line(&fixture::report(), 1), @"
        UTC            waits  wakeup p50  wakeup p99    lost p99     longest      waited    switches
        14:13:30         112     4.10 µs      312 µs           –     12.0 ms      1.25 s         112
        ");
    }

    #[test]
    fn header_comes_back_every_twenty_lines() {
        let report = fixture::report();
        let with_header: Vec<_> = (1..=41)
            .filter(|index| interval_line(&report, *index).lines().count() == 2)
            .collect();
        assert_eq!(with_header, [1, 21, 41]);
    }
}
