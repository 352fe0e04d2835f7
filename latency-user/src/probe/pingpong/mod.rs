//! The probe `pingpong`: how long two threads take to hand a token to and fro, and how much one can
//! pass to the other, by transport and by where they run.
//!
//! Each measurement has a pair of threads of its own, so that the recorder's rows of the two are its
//! kernel columns. What it measured is paired with them in `reconcile`.

mod exchange;
mod placement;
mod transport;

use std::{fs, io};

pub use placement::{Placement, Spot};
pub use transport::Transport;

use super::{Crew, Place, Policy};
use crate::{Error, analysis::Distribution, units::Nanos};

/// What a pair measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Round trips of one token.
    Latency,
    /// Bytes in one direction.
    Bandwidth,
}

/// How long a pair measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Runs, one after the other.
    pub n_runs: u32,
    /// Of each.
    pub run_ns: u64,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Through what.
    pub transport: Transport,
    /// Where.
    pub spot: Spot,
    /// Of what.
    pub quantity: Quantity,
    /// Under which policy.
    pub policy: Policy,
    /// For how long.
    pub length: Length,
}

/// One run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// How long it took.
    pub ns: u64,
    /// Round trips in it.
    pub n_round_trips: u64,
    /// Bytes passed in it.
    pub n_bytes: u64,
}

/// The kernel's count of a thread's switches, read by the thread itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnSwitches {
    /// It blocked.
    pub voluntary: u64,
    /// It stayed runnable.
    pub involuntary: u64,
}

impl OwnSwitches {
    const fn since(self, earlier: Self) -> Self {
        Self {
            voluntary: self.voluntary - earlier.voluntary,
            involuntary: self.involuntary - earlier.involuntary,
        }
    }
}

/// What one end found.
#[derive(Debug, Default)]
pub struct Side {
    runs: Vec<Run>,
    round_trips: Distribution,
    switches: OwnSwitches,
    n_ipis: Option<u64>,
}

/// What a pair found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Its runs.
    pub runs: Vec<Run>,
    /// All its round trips.
    pub round_trips: Distribution,
    /// Switches of both threads.
    pub switches: [OwnSwitches; 2],
    /// Interrupts by which CPUs asked each other for something meanwhile, of the whole machine.
    pub n_ipis: Option<u64>,
}

/// Two threads that are set up, connected, and wait for their turn.
pub fn pair(plan: Plan) -> Result<Crew<io::Result<Side>>, Error> {
    let connected = plan.transport.connect();
    let [here, there] = connected.map_err(|source| plan.transport.failed(source))?;
    let mut crew = Crew::new();
    let place = |name: &str, index: usize| Place {
        name: name.to_owned(),
        policy: plan.policy,
        cpu: plan.spot.cpus.map(|cpus| cpus[index]),
        // They set no timers, whose lateness would be a doubt.
        slack: Some(Nanos::from_ns(1)),
    };
    let length = plan.length;
    match plan.quantity {
        Quantity::Latency => {
            crew.hire(&place("ping", 0), move |start| {
                counting_ipis(|| exchange::ask(&here, length, &start.stop))
            })?;
            crew.hire(&place("pong", 1), move |_| exchange::answer(&there))?;
        }
        Quantity::Bandwidth => {
            crew.hire(&place("pour", 0), move |start| {
                exchange::pour(&here, length, &start.stop)
            })?;
            crew.hire(&place("drain", 1), move |_| exchange::drain(&there))?;
        }
    }
    Ok(crew)
}

impl Outcome {
    /// What the two threads of a pair found together; nothing where they were never released.
    pub fn of(transport: Transport, sides: &[io::Result<Side>]) -> Result<Self, Error> {
        let failed =
            |cause: &io::Error| transport.failed(io::Error::new(cause.kind(), cause.to_string()));
        let [first, other] = sides else {
            return Ok(Self::default());
        };
        let first = first.as_ref().map_err(failed)?;
        let other = other.as_ref().map_err(failed)?;
        Ok(Self {
            runs: first.runs.clone(),
            round_trips: first.round_trips.clone(),
            switches: [first.switches, other.switches],
            n_ipis: first.n_ipis,
        })
    }
}

fn counting_ipis(work: impl FnOnce() -> io::Result<Side>) -> io::Result<Side> {
    let before = n_ipis();
    let side = work()?;
    Ok(Side {
        n_ipis: before
            .zip(n_ipis())
            .map(|(before, after)| after.saturating_sub(before)),
        ..side
    })
}

/// Interrupts by which CPUs ask each other for a reschedule or a function call, of all CPUs.
fn n_ipis() -> Option<u64> {
    n_ipis_in(&fs::read_to_string("/proc/interrupts").ok()?)
}

fn n_ipis_in(interrupts: &str) -> Option<u64> {
    let counts = interrupts.lines().filter_map(|line| {
        let is_ipi = ["Rescheduling interrupts", "Function call interrupts"]
            .iter()
            .any(|name| line.ends_with(name));
        let (_, columns) = line.split_once(':').filter(|_| is_ipi)?;
        let counts = columns
            .split_whitespace()
            .map_while(|word| word.parse::<u64>().ok());
        Some(counts.sum::<u64>())
    });
    // A machine that counts none has no such lines.
    counts.reduce(|sum, count| sum + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Length = Length {
        n_runs: 3,
        run_ns: 5_000_000,
    };

    fn outcome(transport: Transport, quantity: Quantity) -> Outcome {
        let spot = Spot {
            placement: Placement::Auto,
            cpus: None,
        };
        let plan = Plan {
            transport,
            spot,
            quantity,
            policy: Policy::Other,
            length: LENGTH,
        };
        Outcome::of(plan.transport, &pair(plan).unwrap().go(0).join()).unwrap()
    }

    #[test]
    fn every_round_trip_is_timed_and_in_a_run() {
        for name in ["pipe", "unix", "eventfd", "futex"] {
            let outcome = outcome(name.parse().unwrap(), Quantity::Latency);
            let in_runs: u64 = outcome.runs.iter().map(|run| run.n_round_trips).sum();
            let figures = outcome.round_trips.figures();
            assert_eq!((outcome.runs.len(), figures.count), (3, in_runs), "{name}");
            let ns: u64 = outcome.runs.iter().map(|run| run.ns).sum();
            assert_eq!(figures.sum_ns.cast_unsigned(), ns, "{name}");
            assert!(outcome.runs.iter().all(|run| run.ns >= LENGTH.run_ns));
        }
    }

    #[test]
    fn bytes_are_passed_in_whole_blocks() {
        for transport in [Transport::Pipe, Transport::Unix] {
            let outcome = outcome(transport, Quantity::Bandwidth);
            assert_eq!(outcome.runs.len(), 3);
            for run in outcome.runs {
                let n_blocks = run.n_bytes / exchange::BLOCK as u64;
                assert!(n_blocks > 1 && run.n_bytes.is_multiple_of(exchange::BLOCK as u64));
            }
        }
    }

    #[test]
    fn a_pair_that_is_stopped_ends() {
        let plan = Plan {
            transport: Transport::Futex,
            spot: Placement::Auto.on(&[]).unwrap(),
            quantity: Quantity::Latency,
            policy: Policy::Other,
            length: Length {
                n_runs: 1,
                run_ns: u64::MAX,
            },
        };
        let crew = pair(plan).unwrap();
        let stop = crew.stop();
        let working = crew.go(0);
        stop.now();
        assert!(
            Outcome::of(plan.transport, &working.join())
                .unwrap()
                .runs
                .len()
                <= 1
        );
    }

    #[test]
    fn ipis_are_found_by_their_names() {
        let x86 = "            CPU0       CPU1\n\
                   \x20 4:         10          0   IO-APIC   4-edge      ttyS0\n\
                   RES:          7          5   Rescheduling interrupts\n\
                   CAL:        100         20   Function call interrupts\n\
                   TLB:          3          3   TLB shootdowns\n";
        assert_eq!(n_ipis_in(x86), Some(132));
        let arm = "IPI0:   1   2   Rescheduling interrupts\nIPI1:  3 4  Function call interrupts\n";
        assert_eq!(n_ipis_in(arm), Some(10));
        assert_eq!(n_ipis_in("NMI: 0 0 Non-maskable interrupts\n"), None);
    }
}
