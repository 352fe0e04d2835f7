//! Crews that work one after the other, each bounded in time by a watchdog of a higher priority.
//!
//! A real-time yield beside an equal spinner never comes back by itself. So what a crew does has to be
//! something that its `Stop` ends. Where even that does not bring a thread back, because somebody else
//! keeps its CPU for good, the watchdog lends it its own policy.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

use super::{Crew, Place, Policy, Stop, clock::now_ns};
use crate::Error;

/// How long a crew may take to end once it was asked to, before it is helped.
const GRACE: Duration = Duration::from_millis(200);

/// A crew whose turn will come.
#[derive(Debug)]
pub struct Leg<T> {
    crew: Crew<T>,
    longest: Duration,
    ended: Receiver<()>,
}

/// Held by a member of a crew as long as it works.
#[derive(Clone, Debug)]
pub struct AtWork {
    _sender: Sender<()>,
}

/// What a leg gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<T> {
    /// What the members found, in the order in which they were hired.
    pub results: Vec<T>,
    /// When they were released.
    pub began_at_ns: u64,
    /// When all of them had ended.
    pub ended_at_ns: u64,
    /// Their time was over before they were done.
    pub was_ended: bool,
    /// They had to be helped to come back.
    pub was_helped: bool,
}

impl<T: Send + 'static> Leg<T> {
    /// A leg of at most `longest`. `hire` gets the crew, and what each member has to hold while it works.
    pub fn new(
        longest: Duration,
        hire: impl FnOnce(&mut Crew<T>, &AtWork) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let (sender, ended) = channel();
        let mut crew = Crew::new();
        hire(&mut crew, &AtWork { _sender: sender })?;
        Ok(Self {
            crew,
            longest,
            ended,
        })
    }

    /// Its crew.
    #[must_use]
    pub const fn crew(&self) -> &Crew<T> {
        &self.crew
    }

    fn run(self, lent: Policy) -> Run<T> {
        let (stop, tids) = (self.crew.stop(), self.crew.tids());
        let began_at_ns = now_ns();
        let working = self.crew.go(began_at_ns);
        let was_ended = is_at_work_after(&self.ended, self.longest);
        stop.now();
        let was_helped = was_ended && is_at_work_after(&self.ended, GRACE);
        if was_helped {
            for tid in tids {
                // One that has ended needs no help.
                lent.apply_to(tid).unwrap_or_default();
            }
        }
        Run {
            results: working.join(),
            began_at_ns,
            ended_at_ns: now_ns(),
            was_ended,
            was_helped,
        }
    }
}

/// A crew of one, the watchdog: it lets the legs run in order.
pub fn watchdog<T: Send + 'static>(
    policy: Policy,
    legs: Vec<Leg<T>>,
) -> Result<Crew<Vec<Run<T>>>, Error> {
    let mut crew = Crew::new();
    let place = Place {
        name: "watchdog".into(),
        policy,
        cpu: None,
        slack: None,
    };
    crew.hire(&place, move |_| {
        legs.into_iter().map(|leg| leg.run(policy)).collect()
    })?;
    Ok(crew)
}

/// The stops of all legs: together they end a relay early.
#[must_use]
pub fn stops<T: Send + 'static>(legs: &[Leg<T>]) -> Vec<Stop> {
    legs.iter().map(|leg| leg.crew.stop()).collect()
}

/// Waits for all who hold an [`AtWork`], at most so long; whether one is left.
fn is_at_work_after(ended: &Receiver<()>, longest: Duration) -> bool {
    ended.recv_timeout(longest) == Err(RecvTimeoutError::Timeout)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc::channel, thread::yield_now};

    use super::*;
    use crate::probe::Start;

    fn leg(longest_ms: u64, works: Vec<fn(&Start) -> u32>) -> Leg<u32> {
        let longest = Duration::from_millis(longest_ms);
        let place = Place {
            name: "probe".into(),
            policy: Policy::Other,
            cpu: None,
            slack: None,
        };
        Leg::new(longest, |crew, at_work| {
            works.into_iter().try_for_each(|work| {
                let at_work = at_work.clone();
                let body = move |start: &Start| {
                    let _at_work = at_work;
                    work(start)
                };
                crew.hire(&place, body).map(|_| ())
            })
        })
        .unwrap()
    }

    fn until_asked(start: &Start) -> u32 {
        while !start.stop.is_asked() {
            yield_now();
        }
        7
    }

    fn end_all(start: &Start) -> u32 {
        start.stop.now();
        1
    }

    fn run(legs: Vec<Leg<u32>>) -> Vec<Run<u32>> {
        let crew = watchdog(Policy::Other, legs).unwrap();
        crew.go(0).join().remove(0)
    }

    #[test]
    fn legs_run_one_after_the_other() {
        let done = |_: &Start| 5;
        let runs = run(vec![leg(60_000, vec![done]), leg(60_000, vec![done, done])]);
        assert_eq!(runs[0].results, [5]);
        assert_eq!(runs[1].results, [5, 5]);
        assert!(runs[0].ended_at_ns <= runs[1].began_at_ns);
        assert!(!runs.iter().any(|run| run.was_ended || run.was_helped));
    }

    #[test]
    fn leg_that_would_never_end_is_ended_by_the_watchdog() {
        let runs = run(vec![leg(20, vec![until_asked])]);
        assert_eq!(runs[0].results, [7]);
        assert!(runs[0].was_ended && !runs[0].was_helped);
        assert!(runs[0].ended_at_ns - runs[0].began_at_ns >= 20_000_000);
    }

    #[test]
    fn member_that_is_done_may_end_the_others() {
        let runs = run(vec![leg(60_000, vec![end_all, until_asked])]);
        assert_eq!(runs[0].results, [1, 7]);
        assert!(!runs[0].was_ended);
    }

    #[test]
    fn legs_that_were_stopped_before_their_turn_have_nothing_to_do() {
        let legs = vec![
            leg(60_000, vec![until_asked]),
            leg(60_000, vec![until_asked]),
        ];
        let stops = stops(&legs);
        let (sender, released) = channel();
        let ending = std::thread::spawn(move || {
            released.recv().unwrap();
            stops.iter().for_each(Stop::now);
        });
        let working = watchdog(Policy::Other, legs).unwrap().go(0);
        sender.send(()).unwrap();
        assert_eq!(working.join()[0].len(), 2);
        ending.join().unwrap();
    }
}
