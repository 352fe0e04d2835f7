//! A thread that bounds the time of a crew, from above it.
//!
//! A real-time yield beside an equal spinner never comes back by itself. So what a crew does has to be
//! something that its `Stop` ends. Where even that does not bring a thread back, because somebody else
//! keeps its CPU for good, the watchdog lends it its own policy.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

use super::{Crew, Place, Policy};
use crate::{Error, units::Nanos};

/// How long a crew may take to end once it was asked to, before it is helped.
const GRACE: Duration = Duration::from_millis(200);

/// The highest priority of a crew that can have a watchdog above it.
pub const HIGHEST_WATCHED: u32 = 98;

/// Held by a member of the crew as long as it works.
#[derive(Clone, Debug)]
pub struct AtWork {
    _sender: Sender<()>,
}

/// Tells when nobody is at work any more.
#[derive(Debug)]
pub struct Watch(Receiver<()>);

/// What a watchdog had to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Time was over before the crew was done.
    pub was_ended: bool,
    /// Its threads had to be helped to come back.
    pub was_helped: bool,
}

/// A watch, and what those who are watched hold.
#[must_use]
pub fn watch() -> (AtWork, Watch) {
    let (sender, receiver) = channel();
    (AtWork { _sender: sender }, Watch(receiver))
}

/// Hires a watchdog for those who were hired already, all under `policy`: after `longest` it ends them.
/// Its own result is what `tell` makes of what it had to do.
pub fn hire<T: Send + 'static>(
    crew: &mut Crew<T>,
    watch: Watch,
    policy: Policy,
    longest: Duration,
    tell: impl FnOnce(Watched) -> T + Send + 'static,
) -> Result<(), Error> {
    let lent = above(policy);
    let place = Place {
        name: "watchdog".into(),
        policy: lent,
        cpu: None,
        slack: Some(Nanos::from_ns(1)),
    };
    let tids = crew.tids();
    crew.hire(&place, move |start| {
        let was_ended = watch.has_work_after(longest);
        start.stop.now();
        let was_helped = was_ended && watch.has_work_after(GRACE);
        if was_helped {
            for tid in tids {
                // One that has ended meanwhile needs no help.
                lent.apply_to(tid).unwrap_or_default();
            }
        }
        tell(Watched {
            was_ended,
            was_helped,
        })
    })
    .map(|_| ())
}

/// A policy whose threads run before those of `policy`. A fair thread always gets its turn: there it need
/// not be above, and takes no privilege.
fn above(policy: Policy) -> Policy {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
            Policy::Fifo((priority + 1).min(HIGHEST_WATCHED + 1))
        }
        policy => policy,
    }
}

impl Watch {
    /// Waits until nobody is at work, at most so long; whether somebody still is.
    fn has_work_after(&self, longest: Duration) -> bool {
        self.0.recv_timeout(longest) == Err(RecvTimeoutError::Timeout)
    }
}

#[cfg(test)]
mod tests {
    use std::{thread::yield_now, time::Instant};

    use super::*;
    use crate::probe::Start;

    /// Runs threads under a watchdog; what it had to do, and how long that took.
    fn run(longest_ms: u64, works: Vec<fn(&Start)>) -> (Watched, Duration) {
        let place = Place {
            name: "probe".into(),
            policy: Policy::Other,
            cpu: None,
            slack: None,
        };
        let mut crew = Crew::new();
        let (at_work, watch) = watch();
        for work in works {
            let at_work = at_work.clone();
            let body = move |start: &Start| {
                let _at_work = at_work;
                work(start);
                Watched::default()
            };
            crew.hire(&place, body).unwrap();
        }
        drop(at_work);
        let longest = Duration::from_millis(longest_ms);
        hire(&mut crew, watch, Policy::Other, longest, |watched| watched).unwrap();
        let began = Instant::now();
        let watched = crew.go(0).join().pop().unwrap();
        (watched, began.elapsed())
    }

    fn until_asked(start: &Start) {
        while !start.stop.is_asked() {
            yield_now();
        }
    }

    #[test]
    fn crew_that_ends_by_itself_is_left_alone() {
        let (watched, _) = run(60_000, vec![|_| (), |_| ()]);
        assert_eq!(watched, Watched::default());
    }

    #[test]
    fn crew_that_would_never_end_is_ended() {
        let (watched, took) = run(20, vec![until_asked]);
        assert!(watched.was_ended && !watched.was_helped);
        assert!(took >= Duration::from_millis(20));
    }

    #[test]
    fn member_that_is_done_may_end_the_others() {
        let (watched, _) = run(60_000, vec![|start| start.stop.now(), until_asked]);
        assert!(!watched.was_ended);
    }

    #[test]
    fn watchdog_is_above_whoever_keeps_the_cpu() {
        assert_eq!(above(Policy::Fifo(50)), Policy::Fifo(51));
        assert_eq!(above(Policy::RoundRobin(98)), Policy::Fifo(99));
        assert_eq!(above(Policy::Other), Policy::Other);
    }
}
