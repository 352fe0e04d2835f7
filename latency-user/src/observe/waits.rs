//! Long waits: the longest of the recording, and those over a threshold until they are taken.

use std::cmp::Reverse;

use latency_common::{
    class::WaitClass,
    record::{N_LONGEST, WaitRecord},
};

use super::cgroups::CgroupNames;
use crate::model::WaitEvent;

/// What is kept of the records of long waits.
#[derive(Debug, Default)]
pub(super) struct LongWaits {
    start_at_ns: u64,
    over_ns: Option<u64>,
    longest: Vec<WaitEvent>,
    over: Vec<WaitEvent>,
}

impl LongWaits {
    /// Of waits that begin after `start_at_ns`, those of at least `over_ns` are kept to be taken.
    pub(super) fn new(start_at_ns: u64, over_ns: Option<u64>) -> Self {
        Self {
            start_at_ns,
            over_ns,
            ..Self::default()
        }
    }

    /// Keeps a wait. One that began before the recording has an unknown length.
    pub(super) fn add(&mut self, record: &WaitRecord, cgroups: &CgroupNames) {
        let is_cut = record.class == WaitClass::OpenAtStart as u32;
        if is_cut || record.since_ns < self.start_at_ns {
            return;
        }
        let event = WaitEvent {
            cgroup: cgroups.path(record.cgroup_id),
            record: *record,
        };
        if self.over_ns.is_some_and(|over| event.wait_ns() >= over) {
            self.over.push(event.clone());
        }
        self.longest.push(event);
        self.longest
            .sort_by_key(|event| (Reverse(event.wait_ns()), event.record.since_ns));
        self.longest.truncate(N_LONGEST);
    }

    /// The longest so far, the longest first.
    pub(super) fn longest(&self) -> &[WaitEvent] {
        &self.longest
    }

    /// Those over the threshold since the last call, as they ended.
    pub(super) fn take_over(&mut self) -> Vec<WaitEvent> {
        std::mem::take(&mut self.over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::wait_record;

    #[test]
    fn longest_are_kept_and_those_cut_by_the_start_are_not() {
        let mut waits = LongWaits::new(1_000, None);
        let cgroups = CgroupNames::default();
        for ns in 1..=20 {
            waits.add(&wait_record(1_000 + ns, 2_000 + 3 * ns), &cgroups);
        }
        waits.add(&wait_record(999, 9_999), &cgroups);
        let open = WaitRecord {
            class: WaitClass::OpenAtStart as u32,
            ..wait_record(1_000, 9_999)
        };
        waits.add(&open, &cgroups);
        let lengths: Vec<_> = waits.longest().iter().map(WaitEvent::wait_ns).collect();
        let expected: Vec<_> = (5..=20).rev().map(|ns| 1_000 + 2 * ns).collect();
        assert_eq!(lengths, expected);
        assert!(waits.take_over().is_empty());
    }

    #[test]
    fn waits_over_the_threshold_are_taken_once() {
        let mut waits = LongWaits::new(0, Some(50));
        let cgroups = CgroupNames::default();
        for until in [49, 50, 51] {
            waits.add(&wait_record(0, until), &cgroups);
        }
        let lengths: Vec<_> = waits.take_over().iter().map(WaitEvent::wait_ns).collect();
        assert_eq!(lengths, [50, 51]);
        assert!(waits.take_over().is_empty());
    }
}
