//! Whether the parts of waits are the waits: both are ours, so they may differ by nothing but the
//! moment at which a wait that goes on is looked at.

use latency_common::config::Detail;

use super::{Conditions, Tolerance, breach};
use crate::model::{Finding, Tally};
use crate::units;

const PARTS: Tolerance = Tolerance {
    ppm: 1_000,
    each_ns: 1_000,
};

/// The parts do not sum to the time waited.
pub(super) fn finding(tally: &Tally, conditions: Conditions) -> Option<Finding> {
    if conditions.detail != Detail::Full {
        return None;
    }
    let waited_ns = tally.waited_ns();
    let parts_ns = tally.attribution.parts.iter().sum::<u64>();
    let (less, more) = (waited_ns.min(parts_ns), waited_ns.max(parts_ns));
    PARTS.exceeded(more, less, 1).then(|| {
        let text = format!(
            "the parts of the waits sum to {}, the waits to {}",
            units::duration(parts_ns),
            units::duration(waited_ns)
        );
        breach("parts_differ", text)
    })
}

#[cfg(test)]
mod tests {
    use latency_common::{attribution::Part, class::WaitClass};

    use super::super::tests::{FULL, codes};
    use super::*;
    use crate::{analysis::fixture::tally_of, model::OpenWait};

    #[track_caller]
    fn check(parts_ns: u64, detail: Detail, expected: &[&str]) {
        let mut tally = tally_of(WaitClass::Tick, &[600_000]);
        tally.open.push(OpenWait {
            class: WaitClass::Wakeup,
            ns: 400_000,
        });
        tally.attribution.parts = [0; _];
        tally.attribution.parts[Part::Softirq as usize] = parts_ns / 2;
        tally.attribution.parts[Part::Unexplained as usize] = parts_ns - parts_ns / 2;
        let found = finding(&tally, Conditions { detail, ..FULL });
        assert_eq!(codes(found.as_slice()), expected);
    }

    #[test]
    fn parts_are_the_waits_that_ended_and_those_that_go_on() {
        check(1_000_000, Detail::Full, &[]);
        check(998_003, Detail::Full, &[]);
        check(998_001, Detail::Full, &["parts_differ!"]);
        check(1_002_000, Detail::Full, &[]);
        check(1_002_001, Detail::Full, &["parts_differ!"]);
        check(0, Detail::Causes, &[]);
    }
}
