//! From copies of the flight recorder's rings to what a dump shows: the time asked for, by time, and
//! who occurs in it.

use std::collections::BTreeMap;

use latency_common::flight::{FlightKind, FlightRecord};

use crate::model::{Flight, FlightCpu, FlightDump, FlightDumpCpu, FlightRing, FlightThread};

/// Bits of `task_struct.__state`; they have not moved since 5.15.
mod state {
    /// What is shown to user space: running to parked.
    pub(super) const REPORT: u32 = 0x7f;
    pub(super) const UNINTERRUPTIBLE: u32 = 0x02;
    /// As shown: `X`.
    pub(super) const EXIT_DEAD: u32 = 0x10;
    pub(super) const DEAD: u32 = 0x80;
    /// `TASK_UNINTERRUPTIBLE | TASK_NOLOAD`.
    pub(super) const IDLE: u32 = 0x402;
    /// `TASK_RTLOCK_WAIT | TASK_FROZEN`: both are shown as uninterruptible.
    pub(super) const LIKE_UNINTERRUPTIBLE: u32 = 0x9000;
    /// As shown: an idle kernel thread.
    pub(super) const REPORT_IDLE: u32 = 0x80;
    /// As shown: preempted.
    pub(super) const REPORT_MAX: u32 = 0x100;
}

/// The part of a ring between two times, by time.
#[must_use]
pub fn cut(ring: FlightRing, from_ns: u64, at_ns: u64) -> FlightCpu {
    let FlightRing {
        cpu,
        mut records,
        is_overwritten,
        n_torn,
        n_refused,
    } = ring;
    // An interrupt's event may have an earlier place than the softirq's that it came into.
    records.sort_by_key(|record| record.at_ns);
    let oldest_ns = if is_overwritten {
        records.first().map_or(at_ns, |oldest| oldest.at_ns)
    } else {
        from_ns
    };
    records.retain(|record| (from_ns..=at_ns).contains(&record.at_ns));
    FlightCpu {
        cpu,
        events: records,
        from_ns: oldest_ns.clamp(from_ns, at_ns),
        n_torn,
        n_refused,
    }
}

/// The threads that occur, with their last names, and their processes where a switch told them.
#[must_use]
pub fn threads(cpus: &[FlightCpu]) -> BTreeMap<u32, FlightThread> {
    let mut named: BTreeMap<u32, (u64, FlightThread)> = BTreeMap::new();
    for record in cpus.iter().flat_map(|cpu| &cpu.events) {
        let Some(kind) = FlightKind::of(record.kind) else {
            continue;
        };
        let is_named = matches!(
            kind,
            FlightKind::Switch
                | FlightKind::Waking
                | FlightKind::Wakeup
                | FlightKind::WakeupNew
                | FlightKind::Migrate
        );
        if is_named {
            let thread = FlightThread {
                tgid: Some(record.tgid),
                comm: record.comm,
            };
            note(&mut named, record.tid, record.at_ns, thread);
        }
        if kind == FlightKind::Switch {
            let thread = FlightThread {
                tgid: None,
                comm: record.other_comm,
            };
            note(&mut named, record.other_tid, record.at_ns, thread);
        }
    }
    let threads = named.into_iter().map(|(tid, (_, thread))| (tid, thread));
    threads.collect()
}

/// The later name wins; a process once known stays.
fn note(
    named: &mut BTreeMap<u32, (u64, FlightThread)>,
    tid: u32,
    at_ns: u64,
    thread: FlightThread,
) {
    let (known_at_ns, known) = named.entry(tid).or_insert((at_ns, thread));
    let process = thread.tgid.or(known.tgid);
    if at_ns >= *known_at_ns {
        (*known_at_ns, *known) = (at_ns, thread);
    }
    known.tgid = process;
}

/// The state of the task that leaves as the tracepoint `sched_switch` tells it to user space.
///
/// A task that ends is shown as dead: whether its parent has seen it already is not recorded.
#[must_use]
pub fn left_state(record: &FlightRecord) -> u32 {
    if record.is_preempt != 0 {
        return state::REPORT_MAX;
    }
    let bits = record.value;
    if bits & state::DEAD != 0 {
        return state::EXIT_DEAD;
    }
    if bits & state::LIKE_UNINTERRUPTIBLE != 0 {
        return state::UNINTERRUPTIBLE;
    }
    if bits & state::IDLE == state::IDLE {
        return state::REPORT_IDLE;
    }
    // Only the highest bit is told.
    match bits & state::REPORT {
        0 => 0,
        shown => 1 << shown.ilog2(),
    }
}

/// What the report says of a dump in this file.
#[must_use]
pub fn dump(flight: &Flight, file: String) -> FlightDump {
    let cpus = flight.cpus.iter().map(|cpu| FlightDumpCpu {
        cpu: cpu.cpu,
        n_events: cpu.events.len() as u64,
        reaches_back_ns: flight.at_ns - cpu.from_ns,
        is_cut: cpu.from_ns > flight.from_ns,
        n_torn: cpu.n_torn,
        n_refused: cpu.n_refused,
    });
    FlightDump {
        file,
        reason: flight.reason,
        from_ns: flight.from_ns,
        at_ns: flight.at_ns,
        n_marked: flight.marked.len() as u64,
        cpus: cpus.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_ns: u64) -> FlightRecord {
        FlightRecord {
            at_ns,
            kind: FlightKind::IrqEntry as u8,
            ..FlightRecord::default()
        }
    }

    fn check_cut(times: &[u64], is_overwritten: bool, expected: (&[u64], u64)) {
        let ring = FlightRing {
            records: times.iter().copied().map(at).collect(),
            is_overwritten,
            ..FlightRing::default()
        };
        let cpu = cut(ring, 100, 200);
        let kept: Vec<_> = cpu.events.iter().map(|event| event.at_ns).collect();
        assert_eq!((&kept[..], cpu.from_ns), expected);
    }

    #[test]
    fn events_outside_the_time_asked_for_are_left_out_and_the_rest_is_in_order() {
        check_cut(&[90, 120, 110, 200, 201], false, (&[110, 120, 200], 100));
    }

    #[test]
    fn history_that_was_overwritten_says_how_far_it_reaches() {
        check_cut(&[150, 160], true, (&[150, 160], 150));
        check_cut(&[90, 160], true, (&[160], 100));
    }

    #[test]
    fn ring_without_events_reaches_back_unless_it_was_overwritten() {
        check_cut(&[], false, (&[], 100));
        check_cut(&[], true, (&[], 200));
    }

    fn switch(at_ns: u64, prev: (u32, u32, u8), next: (u32, u8)) -> FlightRecord {
        FlightRecord {
            at_ns,
            kind: FlightKind::Switch as u8,
            tid: prev.0,
            tgid: prev.1,
            comm: [prev.2; 16],
            other_tid: next.0,
            other_comm: [next.1; 16],
            ..FlightRecord::default()
        }
    }

    #[test]
    fn last_name_wins_and_the_process_comes_from_any_switch_out() {
        let cpu = |events| FlightCpu {
            events,
            ..FlightCpu::default()
        };
        let threads = threads(&[
            cpu(vec![switch(10, (7, 5, b'a'), (8, b'x'))]),
            cpu(vec![switch(5, (9, 9, b'n'), (7, b'o'))]),
            cpu(vec![switch(20, (9, 9, b'n'), (7, b'b'))]),
        ]);
        let expected = FlightThread {
            tgid: Some(5),
            comm: [b'b'; 16],
        };
        assert_eq!(threads[&7], expected);
        assert_eq!(threads[&8].tgid, None);
        assert_eq!(threads[&9].tgid, Some(9));
    }

    #[test]
    fn states_are_told_as_the_kernel_tells_them() {
        let told = |value, is_preempt| {
            left_state(&FlightRecord {
                value,
                is_preempt,
                ..FlightRecord::default()
            })
        };
        for (bits, expected) in [
            (0, 0),
            (0x1, 0x1),
            (0x2, 0x2),
            (0x102, 0x2),
            (0x2001, 0x1),
            (0x402, 0x80),
            (0x1000, 0x2),
            (0x4, 0x4),
            (0x8, 0x8),
            (0x40, 0x40),
            (0x80, 0x10),
        ] {
            assert_eq!(told(bits, 0), expected, "{bits:#x}");
        }
        assert_eq!(told(0x1, 1), 0x100);
    }
}
