//! The flight recorder's rings: their size, and copies of them that leave out what was overwritten
//! or not yet complete while they were made.

use aya::Ebpf;
use latency_common::flight::{FlightHead, FlightRecord};

use super::mapped::Mapped;
use crate::{Error, model::FlightRing};

/// Places before the oldest that may hold a newer event already although the head does not say so:
/// where stores become visible out of order, they do so by far less than this.
const MARGIN: u64 = 16;

/// Events of one CPU in a second for which the rings have room unless a size is given: a busy CPU
/// makes some ten thousand, a ping-pong through a pipe half a million.
const EVENTS_PER_SECOND: u128 = 1 << 17;

/// What all rings together take at most unless a size is given.
const DEFAULT_BYTES: u64 = 1 << 28;

/// Fewest records of a ring.
const MIN_RECORDS: u32 = 64;
/// Most records of all rings, 4 GiB.
const MAX_RECORDS: u64 = 1 << 26;

/// The rings, one per possible CPU.
#[expect(missing_debug_implementations, reason = "aya's maps have none")]
pub struct FlightRings {
    records: Mapped<FlightRecord>,
    heads: Mapped<FlightHead>,
    records_per_cpu: usize,
}

/// How much the rings are to hold.
#[derive(Clone, Copy, Debug)]
pub struct FlightSize {
    /// The time that they are meant for.
    pub window_ns: u64,
    /// Bytes of all rings together, where they were asked for.
    pub bytes: Option<u64>,
}

impl FlightSize {
    /// Records of each of `n_cpus` rings, a power of two.
    pub(super) fn records_per_cpu(self, n_cpus: usize) -> u32 {
        if let Some(bytes) = self.bytes {
            return records_within(bytes, n_cpus);
        }
        let window_ns = u128::from(self.window_ns);
        let events = (window_ns * EVENTS_PER_SECOND).div_ceil(1_000_000_000);
        let most = records_within(DEFAULT_BYTES, n_cpus);
        let wanted = u32::try_from(events).unwrap_or(u32::MAX).min(most);
        // SANITY: `most` is a power of two far below the largest.
        wanted.next_power_of_two().max(MIN_RECORDS)
    }
}

/// Records of each of `n_cpus` rings that together fit into `bytes`.
fn records_within(bytes: u64, n_cpus: usize) -> u32 {
    let n_cpus = u64::try_from(n_cpus.max(1)).unwrap_or(u64::MAX);
    let fitting = bytes / size_of::<FlightRecord>() as u64 / n_cpus;
    let most = (MAX_RECORDS / n_cpus).max(MIN_RECORDS.into());
    1 << fitting.clamp(MIN_RECORDS.into(), most).ilog2()
}

impl FlightRings {
    /// Maps the rings of the object.
    pub(super) fn map(ebpf: &Ebpf, size: FlightSize, n_cpus: usize) -> Result<Self, Error> {
        let records_per_cpu = size.records_per_cpu(n_cpus) as usize;
        Ok(Self {
            records: Mapped::new(ebpf, "FLIGHT_RECORDS", records_per_cpu * n_cpus)?,
            heads: Mapped::new(ebpf, "FLIGHT_HEADS", n_cpus)?,
            records_per_cpu,
        })
    }

    /// Copies every ring.
    #[must_use]
    pub fn copy(&self) -> Vec<FlightRing> {
        (0..self.heads.n).filter_map(|cpu| self.ring(cpu)).collect()
    }

    fn ring(&self, cpu: usize) -> Option<FlightRing> {
        let n_events = self.heads.read(cpu)?.n_events;
        let first = n_events.saturating_sub(self.records_per_cpu as u64);
        let copies: Vec<_> = (first..n_events)
            .filter_map(|index| self.records.read(self.place(cpu, index)))
            .collect();
        let head = self.heads.read(cpu)?;
        let n_overwritten = (head.n_events + MARGIN).saturating_sub(self.records_per_cpu as u64);
        let (records, n_torn) = complete(&copies, first, n_overwritten);
        Some(FlightRing {
            cpu: u32::try_from(cpu).ok()?,
            records,
            is_overwritten: n_overwritten > 0,
            n_torn,
            n_refused: head.n_refused,
        })
    }

    fn place(&self, cpu: usize, index: u64) -> usize {
        let within = index % self.records_per_cpu as u64;
        // SANITY: less than the length of a ring.
        cpu * self.records_per_cpu + usize::try_from(within).unwrap_or(0)
    }
}

/// Those copies, of which the first is of event `first`, that are whole; and how many were not yet
/// complete. Events below `n_overwritten` may have been overwritten while they were copied.
fn complete(copies: &[FlightRecord], first: u64, n_overwritten: u64) -> (Vec<FlightRecord>, u64) {
    let mut n_torn = 0;
    let mut records = Vec::with_capacity(copies.len());
    for (index, copy) in (first..)
        .zip(copies)
        .skip_while(|(index, _)| *index < n_overwritten)
    {
        // The serial is the low half of the number, plus one.
        if u64::from(copy.serial) == (index + 1) & u64::from(u32::MAX) {
            records.push(*copy);
        } else {
            n_torn += 1;
        }
    }
    (records, n_torn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(index: u64) -> FlightRecord {
        FlightRecord {
            at_ns: index,
            serial: u32::try_from((index + 1) & u64::from(u32::MAX)).unwrap(),
            ..FlightRecord::default()
        }
    }

    fn check_complete(
        copies: &[FlightRecord],
        first: u64,
        n_overwritten: u64,
        expected: (&[u64], u64),
    ) {
        let (records, n_torn) = complete(copies, first, n_overwritten);
        let kept: Vec<_> = records.iter().map(|record| record.at_ns).collect();
        assert_eq!((&kept[..], n_torn), expected);
    }

    #[test]
    fn whole_records_are_kept() {
        check_complete(&[written(4), written(5), written(6)], 4, 0, (&[4, 5, 6], 0));
        check_complete(&[], 0, 0, (&[], 0));
    }

    #[test]
    fn what_was_overwritten_while_it_was_copied_is_left_out() {
        check_complete(&[written(12), written(5), written(6)], 4, 5, (&[5, 6], 0));
    }

    #[test]
    fn record_that_is_being_written_is_torn_and_counted() {
        // Its place still holds the serial of the event before.
        check_complete(&[written(4), written(5), written(2)], 4, 0, (&[4, 5], 1));
        check_complete(&[FlightRecord::default()], 0, 0, (&[], 1));
    }

    #[test]
    fn serials_wrap() {
        let last = u64::from(u32::MAX) - 1;
        let copies = [written(last), written(last + 1), written(last + 2)];
        assert_eq!(copies[1].serial, 0);
        check_complete(&copies, last, 0, (&[last, last + 1, last + 2], 0));
    }

    #[test]
    fn rings_are_powers_of_two_that_fit() {
        let within = |bytes, n_cpus| {
            let size = FlightSize {
                window_ns: 1,
                bytes: Some(bytes),
            };
            size.records_per_cpu(n_cpus)
        };
        assert_eq!(within(256 << 20, 2), 1 << 21);
        assert_eq!(within((256 << 20) - 1, 2), 1 << 20);
        assert_eq!(within(256 << 20, 96), 1 << 15);
        assert_eq!(within(0, 2), 64);
        assert_eq!(within(u64::MAX, 1), 1 << 26);
        assert_eq!(within(u64::MAX, 4096), 1 << 14);
    }

    #[test]
    fn rings_have_room_for_the_time_within_the_usual_limit() {
        let lasting = |seconds: u64, n_cpus| {
            let size = FlightSize {
                window_ns: seconds * 1_000_000_000,
                bytes: None,
            };
            size.records_per_cpu(n_cpus)
        };
        assert_eq!(lasting(2, 2), 1 << 18);
        assert_eq!(lasting(3, 2), 1 << 19);
        assert_eq!(lasting(3600, 2), 1 << 21);
        assert_eq!(lasting(2, 128), 1 << 15);
        assert_eq!(lasting(u64::MAX / 1_000_000_000, 1), 1 << 22);
    }
}
