//! The yield probe: how long each call of `sched_yield` takes, with nobody, a yielder or a spinner beside it.
//!
//! Owns the loops of the probe and of its peer. In the probe's loop there is nothing but the call and two
//! readings of the clock. Whether a call switched is not known here: `reconcile::yields` asks the kernel's
//! account.

use std::{hint::spin_loop, sync::mpsc::channel, time::Duration};

use rustix::thread::sched_yield;

use super::{
    Buffer, Crew, Place, Policy, Start, Stop,
    watchdog::{self, Watched},
};
use crate::{Error, host::monotonic_ns, units::Nanos};

/// Name of the probe's threads.
pub const PROBE: &str = "yield-probe";

/// What stands beside the probe on its CPU, with the same policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Nothing of ours.
    Nobody,
    /// A thread that yields.
    Yielder,
    /// A thread that never gives the CPU away.
    Spinner,
}

impl Peer {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Nobody, Self::Yielder, Self::Spinner];

    /// The name of its thread.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nobody => "none",
            Self::Yielder => "yielder",
            Self::Spinner => "spinner",
        }
    }

    /// What it does until the flag is set.
    pub fn run(self, stop: &Stop) {
        match self {
            Self::Nobody => {}
            Self::Yielder => {
                while !stop.is_asked() {
                    sched_yield();
                }
            }
            Self::Spinner => {
                while !stop.is_asked() {
                    spin_loop();
                }
            }
        }
    }
}

/// One call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The clock just before.
    pub before_at_ns: u64,
    /// The clock just after.
    pub after_at_ns: u64,
}

impl Call {
    /// What it took, one reading of the clock included.
    #[must_use]
    pub const fn length_ns(self) -> u64 {
        self.after_at_ns - self.before_at_ns
    }
}

/// One class beside one peer.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Of the probe and of its peer.
    pub policy: Policy,
    /// Where both are.
    pub cpu: u32,
    /// Who is beside it.
    pub peer: Peer,
    /// The most calls.
    pub n_calls: usize,
    /// The longest it may take.
    pub longest: Duration,
}

/// What a thread of a cell found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Yielded {
    /// The probe's calls.
    pub calls: Vec<Call>,
    /// Their memory could be locked.
    pub is_locked: bool,
    /// What the watchdog had to do.
    pub watched: Watched,
}

impl Cell {
    /// Its threads, parked: the probe, its peer if there is one, and a watchdog.
    pub fn crew(&self) -> Result<Crew<Yielded>, Error> {
        let place = |name: &str| Place {
            name: name.into(),
            policy: self.policy,
            cpu: Some(self.cpu),
            // What is fair has no timers that could be late.
            slack: Some(Nanos::from_ns(1)),
        };
        let mut crew = Crew::new();
        let (at_work, watch) = watchdog::watch();
        // A real-time spinner that came first would never let the probe begin.
        let (release, released) = channel();
        let mut calls = Buffer::with_room(self.n_calls);
        // A call that begins just before the end has time to come back by itself.
        let longest = self.longest / 10 * 9;
        let longest_ns = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        let probe_at_work = at_work.clone();
        crew.hire(&place(PROBE), move |start: &Start| {
            let _at_work = probe_at_work;
            // Nobody listens where there is no peer.
            release.send(()).unwrap_or_default();
            yield_repeatedly(&mut calls, longest_ns, &start.stop);
            start.stop.now();
            Yielded {
                is_locked: calls.is_locked(),
                calls: calls.into_items(),
                ..Yielded::default()
            }
        })?;
        if self.peer != Peer::Nobody {
            let peer = self.peer;
            crew.hire(&place(peer.name()), move |start: &Start| {
                let _at_work = at_work;
                if released.recv().is_ok() {
                    peer.run(&start.stop);
                }
                Yielded::default()
            })?;
        }
        watchdog::hire(&mut crew, watch, self.policy, self.longest, |watched| {
            Yielded {
                watched,
                ..Yielded::default()
            }
        })?;
        Ok(crew)
    }
}

/// Yields until `calls` is full, `longest_ns` have passed or the flag is set.
///
/// A call that has begun is always noted, however late it comes back.
pub fn yield_repeatedly(calls: &mut Buffer<Call>, longest_ns: u64, stop: &Stop) {
    let until_ns = monotonic_ns().saturating_add(longest_ns);
    let mut number = 0;
    while !calls.is_full() && !stop.is_asked() {
        let before_at_ns = monotonic_ns();
        if before_at_ns >= until_ns {
            break;
        }
        number += 1;
        sched_yield_numbered(number);
        calls.push(Call {
            before_at_ns,
            after_at_ns: monotonic_ns(),
        });
    }
}

/// `sched_yield`, which has no argument, with one: the kernel ignores it, and the recorder tells calls
/// apart by it.
fn sched_yield_numbered(number: u64) {
    // SAFETY: the call concerns no memory.
    unsafe { libc::syscall(libc::SYS_sched_yield, number) };
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::cpus::CpuList;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn as_many_calls_as_there_is_room_for_one_after_the_other() {
        let mut calls = Buffer::with_room(500);
        yield_repeatedly(&mut calls, 60 * SECOND, &Stop::default());
        let calls = calls.into_items();
        assert_eq!(calls.len(), 500);
        assert!(
            calls
                .iter()
                .all(|call| call.after_at_ns > call.before_at_ns)
        );
        assert!(calls.is_sorted_by(|a, b| a.after_at_ns <= b.before_at_ns));
    }

    #[test]
    fn time_ends_it_before_the_room_does() {
        let mut calls = Buffer::with_room(1_000_000);
        let began = monotonic_ns();
        yield_repeatedly(&mut calls, SECOND / 500, &Stop::default());
        let calls = calls.into_items();
        assert!(calls.len() < 1_000_000);
        assert!(calls[calls.len() - 1].before_at_ns < began + SECOND / 2);
    }

    #[test]
    fn cell_comes_back_whatever_stands_beside_it() {
        let cpu = CpuList::allowed().unwrap().as_slice()[0];
        for peer in Peer::ALL {
            let cell = Cell {
                policy: Policy::Other,
                cpu,
                peer,
                n_calls: 50,
                // A tenth of it is what a call may take on a busy machine before the watchdog ends it.
                longest: Duration::from_secs(10),
            };
            let found = cell.crew().unwrap().go(0).join();
            let n_threads = if peer == Peer::Nobody { 2 } else { 3 };
            assert_eq!(found.len(), n_threads);
            assert!((1..=50).contains(&found[0].calls.len()), "{peer:?}");
            assert!(!found[n_threads - 1].watched.was_ended, "{peer:?}");
        }
    }

    #[test]
    fn flag_ends_the_probe_and_every_peer() {
        let stop = Stop::default();
        let stop = &stop;
        thread::scope(|scope| {
            for peer in Peer::ALL {
                scope.spawn(move || peer.run(stop));
            }
            let probe = scope.spawn(move || {
                let mut calls = Buffer::with_room(1_000_000);
                yield_repeatedly(&mut calls, 3600 * SECOND, stop);
                calls.into_items().len()
            });
            thread::sleep(Duration::from_millis(2));
            stop.now();
            assert!(probe.join().unwrap() < 1_000_000);
        });
    }
}
