//! `cargo xtask overhead`: what observing costs, in one series of measurements or another.
//!
//! Promises: every point of a series in every round, so that a drift of the machine meets each alike; a
//! table that can be kept as it is; fails when schedlat exceeds a budget.
//! Leaves to others: the series ([`observers`], [`tasks`], [`cpus`], [`resources`], [`loss`]), the
//! arithmetic ([`pairs`]) and the table ([`outcome`]).

use std::fs;
use std::path::PathBuf;
use std::thread;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};

use crate::debian::install::{Program, ensure_installed};
use crate::{release, shell};

mod cpus;
mod load;
mod loss;
mod observers;
mod outcome;
mod pairs;
mod ping_pong;
mod recorder;
mod recording;
mod resources;
mod tasks;

const PROGRAMS: [Program; 4] = [
    Program::of("perf", "linux-perf"),
    Program::of("runqlat", "libbpf-tools"),
    Program::of("bpftool", "bpftool"),
    Program::of("trace-cmd", "trace-cmd"),
];

/// How to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// What to measure
    #[arg(value_enum, default_value_t = Series::Observers)]
    series: Series,
    /// Rounds, each with every point once
    #[arg(short = 'n', long, value_name = "N", default_value_t = 9)]
    rounds: usize,
    /// Pipe round trips per measurement
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    loops: u32,
    /// CPU on which a single ping-pong runs (default: the last one)
    #[arg(long)]
    cpu: Option<usize>,
    /// The `runqlat` to compare with (default: that of libbpf-tools)
    #[arg(long, value_name = "PATH")]
    runqlat: Option<PathBuf>,
    /// Writes the measurements there as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is measured.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Series {
    /// What schedlat and other observers add to a ping-pong
    Observers,
    /// What schedlat adds beside 10 to 20,000 tasks that sleep, and with one other task selected
    Tasks,
    /// What schedlat adds to a ping-pong on one CPU, and on each of several
    Cpus,
    /// What the recorder takes for itself: CPU, memory, time to attach; and whether anything was lost
    Resources,
    /// At how many waits told one by one the first is lost
    Loss,
}

/// What every series needs to know.
#[derive(Debug)]
struct Setting {
    rounds: usize,
    loops: u32,
    /// Where a single ping-pong runs.
    cpu: usize,
    n_cpus: usize,
    runqlat: Option<PathBuf>,
    programs: release::Programs,
}

/// Measures a series, prints its table, and fails where a budget is exceeded.
pub(crate) fn overhead(arguments: &Arguments) -> Result<()> {
    if !shell::is_root() {
        bail!("cannot attach observers: not root\nhelp: sudo cargo xtask overhead");
    }
    ensure_installed(&PROGRAMS)?;
    let setting = Setting::of(arguments)?;
    let outcome = match arguments.series {
        Series::Observers => observers::measure(&setting),
        Series::Tasks => tasks::measure(&setting),
        Series::Cpus => cpus::measure(&setting),
        Series::Resources => resources::measure(&setting),
        Series::Loss => loss::measure(&setting),
    }?;
    print!("{}", outcome.markdown());
    if let Some(path) = &arguments.json {
        let name = arguments.series.to_possible_value();
        let name = name.as_ref().map_or("", |value| value.get_name());
        fs::write(path, outcome.json(name).to_string() + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    outcome.judge()
}

impl Setting {
    fn of(arguments: &Arguments) -> Result<Self> {
        let n_cpus = thread::available_parallelism().map_or(1, usize::from);
        let cpu = arguments.cpu.unwrap_or(n_cpus - 1);
        if arguments.rounds == 0 || arguments.loops == 0 || cpu >= n_cpus {
            bail!("cannot measure: it takes a round, a round trip, and one of {n_cpus} CPUs");
        }
        if let Some(path) = arguments.runqlat.as_ref().filter(|path| !path.is_file()) {
            bail!(
                "cannot compare with {}: there is no such file",
                path.display()
            );
        }
        Ok(Self {
            rounds: arguments.rounds,
            loops: arguments.loops,
            cpu,
            n_cpus,
            runqlat: arguments.runqlat.clone(),
            programs: release::build()?,
        })
    }

    /// The command that observes with schedlat.
    fn record(&self, options: &[&str]) -> Vec<String> {
        let program = self.programs.schedlat.display().to_string();
        let options = options.iter().map(|&option| option.to_owned());
        [program, "record".to_owned()]
            .into_iter()
            .chain(options)
            .collect()
    }

    /// Calls `measure` for every point of every round, and says how far it is.
    fn every_round<P>(
        &self,
        points: &mut [P],
        mut measure: impl FnMut(&mut P) -> Result<()>,
    ) -> Result<()> {
        for round in 1..=self.rounds {
            eprintln!("round {round} of {}", self.rounds);
            points.iter_mut().try_for_each(&mut measure)?;
        }
        Ok(())
    }
}
