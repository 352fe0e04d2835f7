//! The probe `wake`: a thread sleeps until a programmed time, reads the clock, and does so again.
//!
//! Times are absolute, so that a late sample does not shift those after it. Periods that are over when
//! the thread wakes are skipped, never made up for.

use std::os::fd::OwnedFd;

use rustix::{
    io::{Errno, read},
    thread::{ClockId, clock_nanosleep_absolute},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};

use super::{Buffer, Start};
use crate::{Error, host};

/// How to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// `clock_nanosleep` with an absolute time.
    Nanosleep,
    /// Reading from a periodic timer.
    Timerfd,
}

/// When to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After so many samples.
    Samples(u64),
    /// After so many periods, missed ones included.
    Periods(u64),
}

/// What a thread is to measure.
#[derive(Clone, Copy, Debug)]
pub struct WakePlan {
    /// How to sleep.
    pub via: Via,
    /// The period.
    pub interval_ns: u64,
    /// When to end.
    pub limit: Limit,
}

/// One activation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeSample {
    /// When the thread was to wake.
    pub programmed_ns: u64,
    /// When it had read the clock.
    pub woke_at_ns: u64,
}

/// A thread's sleeper and the room for its samples, made before it runs.
#[derive(Debug)]
pub struct WakeWorker {
    plan: WakePlan,
    timer: Option<OwnedFd>,
    samples: Buffer<WakeSample>,
}

/// What a thread measured.
#[derive(Debug)]
pub struct WakeResult {
    /// Its samples, in their order.
    pub samples: Vec<WakeSample>,
    /// They could not be paged out.
    pub is_locked: bool,
    /// Periods that were intended until it ended.
    pub n_periods: u64,
}

impl WakePlan {
    /// Samples at most.
    #[must_use]
    pub const fn n_samples(&self) -> u64 {
        match self.limit {
            Limit::Samples(n) | Limit::Periods(n) => n,
        }
    }
}

impl WakeWorker {
    /// Makes room.
    pub fn new(plan: WakePlan) -> Result<Self, Error> {
        let timer = (plan.via == Via::Timerfd).then(|| {
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).map_err(|error| {
                Error::Thread {
                    source: error.into(),
                }
            })
        });
        let n_samples = usize::try_from(plan.n_samples()).unwrap_or(usize::MAX);
        Ok(Self {
            plan,
            timer: timer.transpose()?,
            samples: Buffer::with_room(n_samples),
        })
    }

    /// Sleeps and wakes until the limit, or until it is asked to end.
    #[must_use]
    pub fn run(self, start: &Start) -> WakeResult {
        let Self {
            plan,
            timer,
            mut samples,
        } = self;
        let interval_ns = plan.interval_ns;
        // The first one warms up what is used, and is no sample.
        let mut programmed_ns = start.at_ns.max(host::monotonic_ns());
        sleep_until(programmed_ns);
        let begin_ns = programmed_ns;
        programmed_ns += interval_ns;
        if let Some(timer) = &timer {
            arm(timer, programmed_ns, interval_ns);
        }
        let mut n_periods = 0;
        while !samples.is_full() && !is_over(plan.limit, n_periods) && !start.stop.is_asked() {
            let n_expired = if let Some(timer) = &timer {
                expirations(timer)
            } else {
                sleep_until(programmed_ns);
                None
            };
            let woke_at_ns = host::monotonic_ns();
            samples.push(WakeSample {
                programmed_ns,
                woke_at_ns,
            });
            let n_passed = n_expired
                .unwrap_or_else(|| 1 + woke_at_ns.saturating_sub(programmed_ns) / interval_ns);
            programmed_ns += n_passed * interval_ns;
            n_periods = (programmed_ns - begin_ns) / interval_ns - 1;
        }
        let n_periods = match plan.limit {
            // What was missed beyond the end was not intended.
            Limit::Periods(n) => n_periods.min(n),
            Limit::Samples(_) => n_periods,
        };
        WakeResult {
            is_locked: samples.is_locked(),
            samples: samples.into_items(),
            n_periods,
        }
    }
}

fn is_over(limit: Limit, n_periods: u64) -> bool {
    matches!(limit, Limit::Periods(n) if n_periods >= n)
}

fn timespec(at_ns: u64) -> Timespec {
    const SECOND_NS: u64 = 1_000_000_000;
    Timespec {
        tv_sec: (at_ns / SECOND_NS).cast_signed(),
        tv_nsec: (at_ns % SECOND_NS).cast_signed(),
    }
}

/// Sleeps until a time; again, where a signal ends it before.
fn sleep_until(at_ns: u64) {
    let at = timespec(at_ns);
    while clock_nanosleep_absolute(ClockId::Monotonic, &at).is_err_and(|error| error == Errno::INTR)
    {
    }
}

fn arm(timer: &OwnedFd, first_ns: u64, interval_ns: u64) {
    let setting = Itimerspec {
        it_interval: timespec(interval_ns),
        it_value: timespec(first_ns),
    };
    // SANITY: the file is a timer and the times are in range, so that it cannot be refused; if it were,
    // no sample would be taken.
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &setting)
        .map(|_| ())
        .unwrap_or_default();
}

/// Sleeps until the timer has expired; how often it has since the last time.
fn expirations(timer: &OwnedFd) -> Option<u64> {
    let mut count = [0; 8];
    loop {
        match read(timer, &mut count) {
            Ok(_) => return Some(u64::from_ne_bytes(count)),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{Crew, Place, Policy};

    fn run(via: Via, limit: Limit) -> WakeResult {
        let plan = WakePlan {
            via,
            interval_ns: 2_000_000,
            limit,
        };
        let worker = WakeWorker::new(plan).unwrap();
        let place = Place {
            name: "wake".into(),
            policy: Policy::Other,
            cpu: None,
            slack: None,
        };
        let mut crew = Crew::new();
        crew.hire(&place, move |start| worker.run(start)).unwrap();
        let at_ns = host::monotonic_ns() + 1_000_000;
        crew.go(at_ns).join().remove(0)
    }

    #[track_caller]
    fn check(result: &WakeResult) {
        for sample in &result.samples {
            assert!(sample.woke_at_ns >= sample.programmed_ns, "{sample:?}");
        }
        for pair in result.samples.windows(2) {
            let step = pair[1].programmed_ns - pair[0].programmed_ns;
            let late = pair[0].woke_at_ns - pair[0].programmed_ns;
            assert_eq!(step % 2_000_000, 0);
            // Between the timer's own count and our reading of the clock a period may end.
            let n_missed = step / 2_000_000 - 1;
            assert!(n_missed.abs_diff(late / 2_000_000) <= 1, "{pair:?}");
        }
    }

    #[test]
    fn samples_are_taken_at_multiples_of_the_period() {
        for via in [Via::Nanosleep, Via::Timerfd] {
            let result = run(via, Limit::Samples(10));
            assert_eq!(result.samples.len(), 10, "{via:?}");
            assert!(result.n_periods >= 10, "{via:?}");
            check(&result);
        }
    }

    #[test]
    fn periods_are_counted_whether_they_were_missed_or_not() {
        let result = run(Via::Nanosleep, Limit::Periods(10));
        assert_eq!(result.n_periods, 10);
        let first = result.samples[0].programmed_ns;
        let last = result.samples[result.samples.len() - 1].programmed_ns;
        assert!((last - first) / 2_000_000 < 10);
        check(&result);
    }
}
