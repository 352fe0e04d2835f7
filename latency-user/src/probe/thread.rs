//! Threads of a probe: made and set up first, parked, and released together.
//!
//! So their ids can be given to the recorder before anything runs, and whatever forbids a policy or a
//! CPU is an error before anything is measured. Threads that are done stay until they are let go, since
//! one that is about to end can be found neither among those that live nor among those that ended.

use std::{
    io, panic,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::{Builder, JoinHandle},
};

use super::{conditions, policy::Policy};
use crate::{Error, cpus, model::probe::ThreadConditions, tasks::own_tid, units::Nanos};

/// Where and how a thread is to run.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its name, of at most 15 bytes.
    pub name: String,
    /// Its policy.
    pub policy: Policy,
    /// The CPU it is bound to; without, it may run anywhere.
    pub cpu: Option<u32>,
    /// Its timer slack; without, the one it inherits.
    pub slack: Option<Nanos>,
}

/// Asks threads to end soon; they look at it in their loops.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on.
    pub fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they were asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Asks them when it is dropped: whatever goes wrong meanwhile, none runs on unobserved.
#[derive(Debug)]
pub struct StopAtEnd(pub Stop);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.now();
    }
}

/// What released threads are told.
#[derive(Clone, Debug)]
pub struct Start {
    /// When to begin, the same for all: `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Whether to end.
    pub stop: Stop,
}

/// Threads that are set up and wait to be released.
#[derive(Debug)]
pub struct Crew<T> {
    gate: Arc<Gate>,
    stop: Stop,
    members: Vec<Member<T>>,
}

/// Threads that were released. They end when this is dropped, and not before.
#[derive(Debug)]
#[must_use]
pub struct Working<T> {
    crew: Crew<T>,
}

#[derive(Debug)]
struct Member<T> {
    conditions: ThreadConditions,
    result: Receiver<T>,
    thread: JoinHandle<()>,
}

impl<T: Send + 'static> Crew<T> {
    /// Nobody yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            gate: Arc::default(),
            stop: Stop::default(),
            members: Vec::new(),
        }
    }

    /// Makes a thread, sets it up, and parks it; `work` is what it does when it is released. Buffers
    /// are made before and moved into it. Returns its thread id.
    pub fn hire(
        &mut self,
        place: &Place,
        work: impl FnOnce(&Start) -> T + Send + 'static,
    ) -> Result<u32, Error> {
        let (sender, ready) = channel();
        let (found, result) = channel();
        let gate = Arc::clone(&self.gate);
        let stop = self.stop.clone();
        let own_place = place.clone();
        let body = move || {
            settle(&own_place, &sender);
            drop(sender);
            if let Some(at_ns) = gate.wait() {
                // Whoever released it may no longer want it.
                found.send(work(&Start { at_ns, stop })).unwrap_or_default();
                drop(found);
                gate.wait_to_leave();
            }
        };
        let thread = Builder::new()
            .name(place.name.clone())
            .spawn(body)
            .map_err(|source| Error::Thread { source })?;
        // SANITY: the thread always sends one before it parks.
        let conditions = ready.recv().unwrap_or_else(|_| Err(lost()))?;
        let tid = conditions.tid;
        self.members.push(Member {
            conditions,
            result,
            thread,
        });
        Ok(tid)
    }

    /// Their thread ids, in the order in which they were hired.
    #[must_use]
    pub fn tids(&self) -> Vec<u32> {
        let members = self.members.iter();
        members.map(|member| member.conditions.tid).collect()
    }

    /// What each runs under, as the kernel says.
    #[must_use]
    pub fn conditions(&self) -> Vec<ThreadConditions> {
        let members = self.members.iter();
        members.map(|member| member.conditions.clone()).collect()
    }

    /// How to end them early.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Releases them; they begin at `at_ns` of `CLOCK_MONOTONIC`.
    pub fn go(self, at_ns: u64) -> Working<T> {
        self.gate.open(Entry::Work(at_ns));
        Working { crew: self }
    }
}

impl<T: Send + 'static> Default for Crew<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Crew<T> {
    fn drop(&mut self) {
        // Of threads that were released the gate is open already.
        self.gate.open(Entry::Nothing);
        self.gate.let_go();
        for member in self.members.drain(..) {
            // One that panicked has nothing that is wanted.
            drop(member.thread.join());
        }
    }
}

impl<T> Working<T> {
    /// Waits until they are done, and takes what they found, in the order in which they were hired.
    #[must_use]
    pub fn results(&mut self) -> Vec<T> {
        let members = &mut self.crew.members;
        let results: Vec<_> = members.iter().map(|member| member.result.recv()).collect();
        if results.iter().any(Result::is_err) {
            // One that panicked has let go of its end; the others leave first.
            self.crew.gate.let_go();
            for member in members.drain(..) {
                if let Err(panicked) = member.thread.join() {
                    panic::resume_unwind(panicked);
                }
            }
        }
        results.into_iter().flatten().collect()
    }

    /// The same, and lets them go.
    #[must_use]
    pub fn join(mut self) -> Vec<T> {
        self.results()
    }
}

/// What parked threads wait at before their work, and after it.
#[derive(Debug, Default)]
struct Gate {
    order: Mutex<Order>,
    has_changed: Condvar,
}

/// Shut, then opened once.
#[derive(Clone, Copy, Debug, Default)]
enum Entry {
    #[default]
    Shut,
    /// To work, from this time on.
    Work(u64),
    /// To leave without work.
    Nothing,
}

#[derive(Debug, Default)]
struct Order {
    start: Entry,
    may_leave: bool,
}

impl Gate {
    fn open(&self, entry: Entry) {
        let mut order = self.lock();
        if matches!(order.start, Entry::Shut) {
            order.start = entry;
        }
        drop(order);
        self.has_changed.notify_all();
    }

    fn wait(&self) -> Option<u64> {
        match self
            .wait_while(|order| matches!(order.start, Entry::Shut))
            .start
        {
            Entry::Work(at_ns) => Some(at_ns),
            Entry::Shut | Entry::Nothing => None,
        }
    }

    fn let_go(&self) {
        self.lock().may_leave = true;
        self.has_changed.notify_all();
    }

    fn wait_to_leave(&self) {
        drop(self.wait_while(|order| !order.may_leave));
    }

    fn lock(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_while(&self, is_shut: impl Fn(&mut Order) -> bool) -> MutexGuard<'_, Order> {
        let waited = self
            .has_changed
            .wait_while(self.lock(), |order| is_shut(order));
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets the calling thread up, and says what it has become.
fn settle(place: &Place, sender: &Sender<Result<ThreadConditions, Error>>) {
    let conditions = set_up(place).and_then(|()| {
        let tid = own_tid();
        conditions::of_thread(tid, place).map_err(|source| Error::Thread { source })
    });
    // Whoever hires waits for it.
    sender.send(conditions).unwrap_or_default();
}

fn set_up(place: &Place) -> Result<(), Error> {
    if let Some(cpu) = place.cpu {
        cpus::pin(cpu).map_err(|source| Error::Pin { cpu, source })?;
    }
    let policy = place.policy;
    policy.apply().map_err(|source| Error::Policy {
        policy: policy.to_string(),
        source,
    })?;
    // Last, because a change of policy resets it.
    if let Some(slack) = place.slack {
        conditions::set_slack(slack).map_err(|source| Error::Thread { source })?;
    }
    Ok(())
}

fn lost() -> Error {
    Error::Thread {
        source: io::ErrorKind::BrokenPipe.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anywhere() -> Place {
        Place {
            name: "probe".into(),
            policy: Policy::Other,
            cpu: None,
            slack: Some(Nanos::from_ns(3_000)),
        }
    }

    #[test]
    fn threads_begin_when_they_are_released_and_are_known_before() {
        let mut crew = Crew::new();
        for number in 0..3 {
            let tid = crew.hire(&anywhere(), move |start| (number, start.at_ns, own_tid()));
            assert_eq!(crew.tids().last(), Some(&tid.unwrap()));
        }
        let tids = crew.tids();
        let slacks: Vec<_> = crew
            .conditions()
            .iter()
            .map(|it| it.timer_slack_ns)
            .collect();
        assert_eq!(slacks, [3_000; 3]);
        let results = crew.go(77).join();
        let expected: Vec<_> = (0..3).map(|n| (n, 77, tids[n])).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn crew_that_is_dropped_ends_its_threads_without_work() {
        let (sender, receiver) = channel();
        let mut crew = Crew::new();
        crew.hire(&anywhere(), move |_| sender.send(())).unwrap();
        drop(crew);
        assert!(receiver.recv().is_err());
    }

    #[test]
    fn threads_that_are_done_stay_until_they_are_let_go() {
        let mut crew = Crew::new();
        let tid = crew.hire(&anywhere(), |_| 5).unwrap();
        let is_there = || std::path::Path::new(&format!("/proc/self/task/{tid}")).exists();
        let mut working = crew.go(0);
        assert_eq!(working.results(), [5]);
        assert!(is_there());
        drop(working);
        // The kernel may take a moment after the thread was joined.
        while is_there() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn threads_are_asked_to_end() {
        let mut crew = Crew::new();
        crew.hire(&anywhere(), |start| {
            while !start.stop.is_asked() {
                std::thread::yield_now();
            }
        })
        .unwrap();
        let stop = crew.stop();
        let working = crew.go(0);
        stop.now();
        assert_eq!(working.join().len(), 1);
    }

    #[test]
    fn cpu_that_does_not_exist_is_an_error_before_anything_runs() {
        let mut crew = Crew::new();
        let nowhere = Place {
            cpu: Some(1_000),
            ..anywhere()
        };
        let refused = crew.hire(&nowhere, |_| ());
        assert!(matches!(refused, Err(Error::Pin { cpu: 1_000, .. })));
        assert!(crew.tids().is_empty());
    }
}
