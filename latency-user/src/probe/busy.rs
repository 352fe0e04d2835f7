//! The busy probe: a loop that reads the clock and notes each time the clock jumped.
//!
//! Owns the loop and its threshold. In the loop there is nothing but a reading of the clock, a look at a
//! flag and, after a jump, a store into memory that exists already. Who interrupted it is not known here:
//! `reconcile::busy` asks the kernel's account.

use std::time::Duration;

use super::{
    Buffer, Crew, Place, Policy, Start, Stop,
    watchdog::{self, Watched},
};
use crate::{Error, host::monotonic_ns, units::Nanos};

/// Name of the probe's threads.
pub const PROBE: &str = "busy-probe";

/// What the loop may take longer than it was asked to, until it is helped back.
const EXTRA: Duration = Duration::from_secs(2);

/// Gaps for which there is room, for each second: far more than a host that works has.
const ROOM_PER_SECOND: u64 = 20_000;

/// At least and at most so many, of 16 bytes each.
const ROOM: (u64, u64) = (1 << 16, 1 << 22);

/// Of all spinners together, which have their memory locked before the first one spins: 256 MiB.
const ROOM_OF_ALL: u64 = 1 << 24;

/// Turns by which the loop gets to know itself: a few milliseconds, so that an interrupt or two cannot
/// move the median.
const N_CALIBRATION: u32 = 100_000;

/// Turns longer than this many nanoseconds are counted as that long, which is beyond any median.
const LONGEST_TURN: usize = 4_096;

/// From how many median turns on a turn is a gap: a microsecond where reading the clock takes 20 ns.
/// Misses of caches and of translations take less, interrupts with the way back from them take more.
const GAP_TURNS: u64 = 50;

/// A jump of the clock: something else had the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The last reading before it.
    pub began_at_ns: u64,
    /// From there to the next reading.
    pub length_ns: u64,
}

impl Gap {
    /// The first reading after it.
    #[must_use]
    pub const fn ended_at_ns(self) -> u64 {
        self.began_at_ns + self.length_ns
    }
}

/// How long one turn of the loop takes where nothing interrupts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The shortest.
    pub min_ns: u64,
    /// The one in the middle.
    pub median_ns: u64,
}

impl Turn {
    /// Lets the loop run for a few milliseconds.
    #[must_use]
    pub fn measure() -> Self {
        let mut counts = [0_u32; LONGEST_TURN];
        let mut last_ns = monotonic_ns();
        for _ in 0..N_CALIBRATION {
            let now = monotonic_ns();
            let turn = usize::try_from(now - last_ns).unwrap_or(usize::MAX);
            counts[turn.min(LONGEST_TURN - 1)] += 1;
            last_ns = now;
        }
        Self::of_counts(&counts)
    }

    /// From how many turns took each number of nanoseconds.
    fn of_counts(counts: &[u32]) -> Self {
        let n_turns: u32 = counts.iter().sum();
        let mut seen = 0;
        let mut turn = Self::default();
        for (ns, count) in (0..).zip(counts).filter(|(_, count)| **count > 0) {
            if seen == 0 {
                turn.min_ns = ns;
            }
            seen += count;
            if seen > n_turns / 2 {
                turn.median_ns = ns;
                break;
            }
        }
        turn
    }

    /// The shortest jump that is called a gap. A clock coarser than its reading has turns of 0.
    #[must_use]
    pub fn threshold_ns(self) -> u64 {
        GAP_TURNS * self.median_ns.max(self.min_ns).max(1)
    }
}

/// When the loop ends, and what it notes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds<'a> {
    /// The shortest gap.
    pub threshold_ns: u64,
    /// How long it runs.
    pub length_ns: u64,
    /// Ends it at once.
    pub stop: &'a Stop,
}

/// A run of the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spin {
    /// The first reading.
    pub began_at_ns: u64,
    /// The last one.
    pub ended_at_ns: u64,
    /// Turns.
    pub n_turns: u64,
    /// Gaps that found no room.
    pub n_dropped: u64,
    /// Their time.
    pub dropped_ns: u64,
}

/// One class on one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Spinner {
    /// Its policy.
    pub policy: Policy,
    /// Where it is.
    pub cpu: u32,
    /// How long it spins.
    pub length_ns: u64,
    /// The shortest gap; without, the loop finds it out.
    pub threshold_ns: Option<u64>,
    /// How many share the memory with it, itself included.
    pub n_spinners: usize,
}

/// What a spinner found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spun {
    /// What a turn takes.
    pub turn: Turn,
    /// The shortest gap.
    pub threshold_ns: u64,
    /// The run.
    pub spin: Spin,
    /// The gaps.
    pub gaps: Vec<Gap>,
    /// Their memory could be locked.
    pub is_locked: bool,
    /// What the watchdog had to do.
    pub watched: Watched,
}

impl Spinner {
    /// Its threads, parked: the spinner and a watchdog.
    pub fn crew(&self) -> Result<Crew<Spun>, Error> {
        let place = Place {
            name: PROBE.into(),
            policy: self.policy,
            cpu: Some(self.cpu),
            // What is fair has no timers that could be late.
            slack: Some(Nanos::from_ns(1)),
        };
        let Self {
            length_ns,
            threshold_ns,
            ..
        } = *self;
        let mut crew = Crew::new();
        let (at_work, watch) = watchdog::watch();
        let mut gaps = Buffer::with_room(self.room());
        crew.hire(&place, move |start: &Start| {
            let _at_work = at_work;
            let turn = Turn::measure();
            let threshold_ns = threshold_ns.unwrap_or_else(|| turn.threshold_ns());
            let bounds = Bounds {
                threshold_ns,
                length_ns,
                stop: &start.stop,
            };
            let spin = spin(&mut gaps, bounds);
            Spun {
                turn,
                threshold_ns,
                spin,
                is_locked: gaps.is_locked(),
                gaps: gaps.into_items(),
                watched: Watched::default(),
            }
        })?;
        let longest = Duration::from_nanos(length_ns).saturating_add(EXTRA);
        watchdog::hire(&mut crew, watch, self.policy, longest, |watched| Spun {
            watched,
            ..Spun::default()
        })?;
        Ok(crew)
    }

    fn room(&self) -> usize {
        let wanted = ROOM_PER_SECOND * (1 + self.length_ns / 1_000_000_000);
        let share = ROOM_OF_ALL / (self.n_spinners as u64).max(1);
        let most = share.clamp(ROOM.0, ROOM.1);
        usize::try_from(wanted.clamp(ROOM.0, most)).unwrap_or(0)
    }
}

/// Spins, and notes the gaps as far as there is room.
pub fn spin(gaps: &mut Buffer<Gap>, bounds: Bounds<'_>) -> Spin {
    let began_at_ns = monotonic_ns();
    let until_ns = began_at_ns.saturating_add(bounds.length_ns);
    let mut spin = Spin {
        began_at_ns,
        ..Spin::default()
    };
    let mut last_ns = began_at_ns;
    while last_ns < until_ns && !bounds.stop.is_asked() {
        let now = monotonic_ns();
        let length_ns = now - last_ns;
        if length_ns >= bounds.threshold_ns {
            if gaps.is_full() {
                spin.n_dropped += 1;
                spin.dropped_ns += length_ns;
            } else {
                gaps.push(Gap {
                    began_at_ns: last_ns,
                    length_ns,
                });
            }
        }
        spin.n_turns += 1;
        last_ns = now;
    }
    spin.ended_at_ns = last_ns;
    spin
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::cpus::CpuList;

    fn spin_for(capacity: usize, threshold_ns: u64, length_ns: u64) -> (Vec<Gap>, Spin) {
        let mut gaps = Buffer::with_room(capacity);
        let bounds = Bounds {
            threshold_ns,
            length_ns,
            stop: &Stop::default(),
        };
        let spin = spin(&mut gaps, bounds);
        (gaps.into_items(), spin)
    }

    #[test]
    fn median_and_minimum_are_those_of_the_turns() {
        let mut counts = [0; 100];
        counts[20] = 3;
        counts[30] = 5;
        counts[99] = 2;
        let turn = Turn::of_counts(&counts);
        assert_eq!((turn.min_ns, turn.median_ns), (20, 30));
        assert_eq!(turn.threshold_ns(), 1_500);
    }

    #[test]
    fn a_coarse_clock_has_a_threshold_too() {
        let mut counts = [0; 100];
        counts[0] = 99;
        counts[50] = 1;
        assert_eq!(Turn::of_counts(&counts).threshold_ns(), GAP_TURNS);
    }

    #[test]
    fn every_turn_is_a_gap_without_a_threshold_and_their_sum_is_the_time() {
        let (gaps, spin) = spin_for(1000, 0, 2_000_000);
        let noted: u64 = gaps.iter().map(|gap| gap.length_ns).sum();
        assert_eq!(gaps.len() as u64 + spin.n_dropped, spin.n_turns);
        assert_eq!(noted + spin.dropped_ns, spin.ended_at_ns - spin.began_at_ns);
        assert!(gaps.is_sorted_by(|a, b| a.ended_at_ns() <= b.began_at_ns));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (gaps, spin) = spin_for(3, 0, 1_000_000);
        assert_eq!(gaps.len(), 3);
        assert!(spin.n_dropped > 0);
    }

    #[test]
    fn measured_turn_is_shorter_than_its_threshold() {
        let turn = Turn::measure();
        assert!(turn.min_ns <= turn.median_ns);
        assert!(turn.threshold_ns() > turn.median_ns);
    }

    #[test]
    fn spinner_spins_for_its_time_and_finds_its_threshold() {
        let spinner = Spinner {
            policy: Policy::Other,
            cpu: CpuList::allowed().unwrap().as_slice()[0],
            length_ns: 5_000_000,
            threshold_ns: None,
            n_spinners: 1,
        };
        let spun = spinner.crew().unwrap().go(0).join().remove(0);
        assert!(spun.spin.ended_at_ns - spun.spin.began_at_ns >= 5_000_000);
        assert_eq!(spun.threshold_ns, spun.turn.threshold_ns());
        assert!(
            spun.gaps
                .iter()
                .all(|gap| gap.length_ns >= spun.threshold_ns)
        );
    }

    #[test]
    fn spinners_share_the_room_but_each_has_some() {
        let room = |seconds: u64, n_spinners| {
            let spinner = Spinner {
                policy: Policy::Other,
                cpu: 0,
                length_ns: seconds * 1_000_000_000,
                threshold_ns: None,
                n_spinners,
            };
            spinner.room() as u64
        };
        assert_eq!(room(9, 2), 10 * ROOM_PER_SECOND);
        assert_eq!(room(3600, 4), ROOM.1);
        assert_eq!(room(3600, 8) * 8, ROOM_OF_ALL);
        assert_eq!(room(3600, 1000), ROOM.0);
    }

    #[test]
    fn flag_ends_the_loop() {
        let stop = Stop::default();
        let spin = thread::scope(|scope| {
            let spinner = scope.spawn(|| {
                let bounds = Bounds {
                    threshold_ns: u64::MAX,
                    length_ns: u64::MAX,
                    stop: &stop,
                };
                spin(&mut Buffer::with_room(0), bounds)
            });
            thread::sleep(Duration::from_millis(2));
            stop.now();
            spinner.join().unwrap()
        });
        // It may have been stopped before its first turn.
        assert!(spin.ended_at_ns >= spin.began_at_ns);
    }
}
