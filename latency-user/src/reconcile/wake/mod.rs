//! Samples of `probe wake` beside the waits that the kernel saw of the same thread.
//!
//! A sample and a wait belong together when the timer that ended the wait was programmed for the very
//! time of the sample. Times are added up signed: nothing is clamped, so that what does not fit shows as
//! disagreement.

mod phases;
mod series;

pub use self::series::{Label, series};

use crate::{model::TracedWait, probe::wake::WakeSample};

/// What the kernel saw of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen<'a> {
    /// Its timer, the wait that it ended, and the waits after that until the clock was read.
    Timer(&'a TracedWait, &'a [TracedWait]),
    /// Something else woke the thread after the programmed time.
    OtherWaker,
    /// The thread was not asleep at the programmed time: it still ran, or waited for the CPU, after the
    /// sample before.
    Awake,
    /// Nothing.
    Nothing,
}

/// From reading the clock to being asleep a thread takes no longer, interrupts included.
const FALLING_ASLEEP_NS: u64 = 20_000;

/// What the kernel saw of each sample; `waits` are those of the same thread in their order.
fn pair<'a>(samples: &[WakeSample], waits: &'a [TracedWait]) -> Vec<Seen<'a>> {
    let mut rest = waits;
    let mut from_ns = 0;
    let seen = samples.iter().map(|sample| {
        // Waits that ended before the sample before had read the clock are its own, or nobody's.
        let n_before = rest.partition_point(|wait| wait.running_at_ns <= from_ns);
        let n_until = rest.partition_point(|wait| wait.running_at_ns <= sample.woke_at_ns);
        let window = &rest[n_before..n_until];
        let seen = in_window(sample, window, from_ns);
        rest = &rest[n_until..];
        from_ns = sample.woke_at_ns;
        seen
    });
    seen.collect()
}

/// A sample and the waits since the one before, which had the clock at `from_ns`.
fn in_window<'a>(sample: &WakeSample, window: &'a [TracedWait], from_ns: u64) -> Seen<'a> {
    let is_own = |wait: &TracedWait| {
        let timer = wait.timer.as_ref();
        timer.is_some_and(|timer| timer.programmed_ns == sample.programmed_ns)
    };
    if let Some(index) = window.iter().rposition(is_own) {
        return Seen::Timer(&window[index], &window[index + 1..]);
    }
    let was_woken = |wait: &TracedWait| {
        wait.waking_at_ns
            .is_some_and(|waking_at_ns| waking_at_ns >= sample.programmed_ns)
    };
    let last_ran_at_ns = window.last().map_or(from_ns, |wait| wait.running_at_ns);
    if window.iter().any(was_woken) {
        Seen::OtherWaker
    } else if last_ran_at_ns > 0 && last_ran_at_ns + FALLING_ASLEEP_NS >= sample.programmed_ns {
        Seen::Awake
    } else {
        Seen::Nothing
    }
}

#[cfg(test)]
pub(super) mod fixture {
    //! Waits as the kernel side hands them out.

    use latency_common::{attribution::N_PARTS, class::WaitClass};

    use crate::model::{TimerFiring, TracedWait};

    /// A wait that a timer ended: programmed, fired 100 ns after, woken at 300, queued at 400, running at
    /// 1,000 ns; the wait was idle exit for 500 of its 600 ns.
    pub(in super::super) fn timer_wait(programmed_ns: u64) -> TracedWait {
        let mut parts_ns = [0; N_PARTS];
        parts_ns[latency_common::attribution::Part::IdleExit as usize] = 500;
        parts_ns[latency_common::attribution::Part::OtherTasks as usize] = 100;
        TracedWait {
            tid: 7,
            cpu: 1,
            class: WaitClass::Wakeup,
            waking_at_ns: Some(programmed_ns + 300),
            queued_at_ns: programmed_ns + 400,
            running_at_ns: programmed_ns + 1_000,
            parts_ns,
            timer: Some(TimerFiring {
                programmed_ns,
                expires_ns: programmed_ns,
                fired_at_ns: programmed_ns + 100,
            }),
            previous_tid: 0,
        }
    }

    /// A wait after losing the CPU to others.
    pub(in super::super) fn preemption(queued_at_ns: u64, wait_ns: u64) -> TracedWait {
        let mut parts_ns = [0; N_PARTS];
        parts_ns[latency_common::attribution::Part::OtherTasks as usize] = wait_ns;
        TracedWait {
            class: WaitClass::HigherClass,
            waking_at_ns: None,
            queued_at_ns,
            running_at_ns: queued_at_ns + wait_ns,
            parts_ns,
            timer: None,
            ..timer_wait(0)
        }
    }

    /// A wait that a signal ended.
    pub(in super::super) fn signalled(at_ns: u64) -> TracedWait {
        TracedWait {
            timer: None,
            ..timer_wait(at_ns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{fixture::*, *};

    fn sample(programmed_ns: u64, lateness_ns: u64) -> WakeSample {
        WakeSample {
            programmed_ns,
            woke_at_ns: programmed_ns + lateness_ns,
        }
    }

    /// ```text
    /// programmed  100,000     200,000         300,000      400,000
    /// waits       t           t p             s            -
    /// samples        1,200         5,000          3,000       900
    /// ```
    #[test]
    fn sample_belongs_to_the_wait_that_its_own_timer_ended() {
        let samples = [
            sample(100_000, 1_200),
            sample(200_000, 5_000),
            sample(300_000, 3_000),
            sample(400_000, 900),
        ];
        let waits = [
            timer_wait(100_000),
            timer_wait(200_000),
            preemption(202_000, 2_000),
            signalled(301_000),
        ];
        let expected = [
            Seen::Timer(&waits[0], &[]),
            Seen::Timer(&waits[1], &waits[2..3]),
            Seen::OtherWaker,
            Seen::Nothing,
        ];
        assert_eq!(pair(&samples, &waits), expected);
    }

    #[test]
    fn thread_that_was_late_for_its_sleep_was_awake() {
        let samples = [sample(100_000, 95_000), sample(200_000, 1_000)];
        let waits = [timer_wait(100_000)];
        assert_eq!(pair(&samples, &waits)[1], Seen::Awake);
        // It lost the CPU before it could sleep, and had it again when it was due.
        let samples = [sample(100_000, 1_200), sample(200_000, 9_000)];
        let waits = [timer_wait(100_000), preemption(110_000, 98_000)];
        assert_eq!(pair(&samples, &waits)[1], Seen::Awake);
        let waits = [timer_wait(100_000), preemption(110_000, 50_000)];
        assert_eq!(pair(&samples, &waits)[1], Seen::Nothing);
    }

    #[test]
    fn missing_wait_does_not_shift_those_after_it() {
        let samples = [sample(100_000, 1_200), sample(200_000, 1_200)];
        let waits = [timer_wait(200_000)];
        let expected = [Seen::Nothing, Seen::Timer(&waits[0], &[])];
        assert_eq!(pair(&samples, &waits), expected);
        // The timer of another time is no proof, nor is a wait from before.
        let strange = [timer_wait(100_001)];
        assert_eq!(pair(&samples[..1], &strange), [Seen::OtherWaker]);
        assert_eq!(pair(&samples[..1], &[timer_wait(50_000)]), [Seen::Nothing]);
    }
}
