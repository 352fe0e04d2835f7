//! The companion's side of a load: workers on CPUs until whoever started it is gone.

use std::{
    io::{self, Read as _, Write as _},
    process::ExitCode,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    signal::{SigHandler, Signal},
};

use super::{Done, Kind, Message, command, cpu, disk, fork, memory, net, pipe, serial};
use crate::cpus::{self, Affinity};

/// What a worker does until its meter says that it is over.
pub(super) type Job = Box<dyn FnOnce(&Meter) -> io::Result<()> + Send>;

/// What the workers of one CPU have done, and whether they are to go on.
#[derive(Debug, Default)]
pub(super) struct Meter {
    is_over: AtomicBool,
    n_iterations: AtomicU64,
    n_bytes: AtomicU64,
    failure: OnceLock<String>,
}

impl Meter {
    /// Whether there is more to do.
    pub(super) fn goes_on(&self) -> bool {
        !self.is_over.load(Relaxed)
    }

    /// Counts a turn, in which so many bytes were moved.
    pub(super) fn count(&self, n_bytes: usize) {
        self.n_iterations.fetch_add(1, Relaxed);
        self.n_bytes.fetch_add(n_bytes as u64, Relaxed);
    }
}

/// Runs a load in a companion, until its input ends.
#[must_use]
pub fn run(kind: &Kind, cpus: &[u32]) -> ExitCode {
    match kind {
        Kind::Command(words) => keep(|| command::start(words), command::Running::stop),
        built_in => keep(|| Workers::start(built_in, cpus), Workers::stop),
    }
}

/// Starts something, keeps it up until the input ends, and stops it; says what came of it.
pub fn keep<T>(start: impl FnOnce() -> io::Result<T>, stop: impl FnOnce(T) -> Done) -> ExitCode {
    let work = match start() {
        Ok(work) => work,
        Err(cause) => {
            say(&Message::Failed(cause.to_string()));
            return ExitCode::FAILURE;
        }
    };
    ignore_signals();
    say(&Message::Ready);
    // An input that cannot be read has ended too.
    io::copy(&mut io::stdin().by_ref(), &mut io::sink()).unwrap_or_default();
    say(&Message::Done(stop(work)));
    ExitCode::SUCCESS
}

/// Only the end of the input ends a companion: what it changed has to be put back by then.
fn ignore_signals() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        // SAFETY: ignoring runs no code of ours.
        unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) }
            .map(|_| ())
            .unwrap_or_default();
    }
}

fn say(message: &Message) {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    // Whoever started it may be gone, and then nobody listens.
    io::stdout().write_all(&line).unwrap_or_default();
}

/// CPU time of this process and of the children it has waited for.
pub(super) fn cpu_time_ns() -> u64 {
    let of = |who| {
        let usage = getrusage(who).ok()?;
        let used = [usage.user_time(), usage.system_time()].map(|time| {
            let micros = time.tv_sec() * 1_000_000 + time.tv_usec();
            Duration::from_micros(u64::try_from(micros).unwrap_or(0))
        });
        u64::try_from((used[0] + used[1]).as_nanos()).ok()
    };
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .filter_map(of)
        .sum()
}

/// The workers of a built-in load.
struct Workers {
    meters: Vec<Arc<Meter>>,
    workers: Vec<JoinHandle<()>>,
}

impl Workers {
    fn start(kind: &Kind, on: &[u32]) -> io::Result<Self> {
        let mut this = Self {
            meters: Vec::new(),
            workers: Vec::new(),
        };
        let name = format!("load-{kind}");
        let _home = Affinity::keep()?;
        for &cpu in on {
            // Workers inherit where they may run, so they never run elsewhere.
            cpus::pin(cpu).map_err(|cause| {
                io::Error::other(format!("it cannot run on CPU {cpu}: {cause}"))
            })?;
            let meter = Arc::new(Meter::default());
            for job in jobs(kind, on.len())? {
                this.workers.push(worker(&name, job, Arc::clone(&meter))?);
            }
            this.meters.push(meter);
        }
        Ok(this)
    }

    fn stop(self) -> Done {
        for meter in &self.meters {
            meter.is_over.store(true, Relaxed);
        }
        let n_panics = self
            .workers
            .into_iter()
            .filter_map(|worker| worker.join().err())
            .count();
        let sum = |field: fn(&Meter) -> &AtomicU64| {
            let values = self.meters.iter().map(|meter| field(meter).load(Relaxed));
            values.sum()
        };
        let mut failures = self.meters.iter().filter_map(|meter| meter.failure.get());
        Done {
            n_iterations: sum(|meter| &meter.n_iterations),
            n_bytes: sum(|meter| &meter.n_bytes),
            cpu_ns: cpu_time_ns(),
            failed: match failures.next() {
                Some(failure) => Some(failure.clone()),
                None => (n_panics > 0).then(|| "a worker panicked".into()),
            },
        }
    }
}

fn worker(name: &str, job: Job, meter: Arc<Meter>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(move || {
        if let Err(cause) = job(&meter) {
            meter.failure.get_or_init(|| cause.to_string());
        }
    })
}

/// The workers of one CPU out of `n_cpus`.
fn jobs(kind: &Kind, n_cpus: usize) -> io::Result<Vec<Job>> {
    match kind {
        Kind::Cpu => Ok(cpu::jobs()),
        Kind::Memory => memory::jobs(n_cpus),
        Kind::Disk => disk::jobs(),
        Kind::Serial(port) => serial::jobs(port.as_deref()),
        Kind::Pipe => pipe::jobs(),
        Kind::Fork => Ok(fork::jobs()),
        Kind::Net => net::jobs(),
        Kind::None | Kind::Command(_) => Ok(Vec::new()),
    }
}
