//! The yield probe: how long each call of `sched_yield` takes, with nobody, a yielder or a spinner beside it.
//!
//! Owns the loops of the probe and of its peer. In the probe's loop there is nothing but the call and two
//! readings of the clock. Whether a call switched is not known here: `reconcile::yields` asks the kernel's
//! account.

use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use rustix::thread::sched_yield;

use super::clock::now_ns;

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

    /// What it does until the flag is set.
    pub fn run(self, stop: &AtomicBool) {
        match self {
            Self::Nobody => {}
            Self::Yielder => {
                while !stop.load(Relaxed) {
                    sched_yield();
                }
            }
            Self::Spinner => {
                while !stop.load(Relaxed) {
                    spin_loop();
                }
            }
        }
    }
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Yields until `calls` is full, `longest_ns` have passed or the flag is set.
///
/// A call that has begun is always noted, however late it comes back.
pub fn yield_repeatedly(calls: &mut Vec<Call>, longest_ns: u64, stop: &AtomicBool) {
    let until_ns = now_ns().saturating_add(longest_ns);
    while calls.len() < calls.capacity() && !stop.load(Relaxed) {
        let before_at_ns = now_ns();
        if before_at_ns >= until_ns {
            break;
        }
        sched_yield();
        calls.push(Call {
            before_at_ns,
            after_at_ns: now_ns(),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn as_many_calls_as_there_is_room_for_one_after_the_other() {
        let mut calls = Vec::with_capacity(500);
        let room = calls.capacity();
        yield_repeatedly(&mut calls, 60 * SECOND, &AtomicBool::new(false));
        assert_eq!(calls.len(), room);
        assert!(
            calls
                .iter()
                .all(|call| call.after_at_ns > call.before_at_ns)
        );
        assert!(calls.is_sorted_by(|a, b| a.after_at_ns <= b.before_at_ns));
    }

    #[test]
    fn time_ends_it_before_the_room_does() {
        let mut calls = Vec::with_capacity(10_000_000);
        let began = now_ns();
        yield_repeatedly(&mut calls, SECOND / 500, &AtomicBool::new(false));
        assert!(calls.len() < calls.capacity());
        let last = calls.last().unwrap();
        assert!(last.before_at_ns < began + SECOND / 2);
    }

    #[test]
    fn flag_ends_the_probe_and_every_peer() {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for peer in Peer::ALL {
                let stop = &stop;
                scope.spawn(move || peer.run(stop));
            }
            let probe = scope.spawn(|| {
                let mut calls = Vec::with_capacity(1 << 24);
                yield_repeatedly(&mut calls, 3600 * SECOND, &stop);
                calls.len() < calls.capacity()
            });
            thread::sleep(Duration::from_millis(2));
            stop.store(true, Relaxed);
            assert!(probe.join().unwrap());
        });
    }
}
