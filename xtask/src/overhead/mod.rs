//! `cargo xtask overhead`: what an observer adds to a pipe ping-pong on one CPU.
//!
//! Promises: all variants in every round, so that a drift of the machine meets each alike; medians
//! of the differences to the bare run of the same round; fails when schedlat exceeds its budget.
//! Leaves to others: running observers ([`recorder`]), and the arithmetic and its table
//! ([`verdict`]), and the cost beside many tasks ([`crowd`]).

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::debian::install::{Program, ensure_installed};
use crate::{project, release, shell};
use recorder::Recorder;
use verdict::Comparison;

mod crowd;
mod recorder;
mod verdict;

const PROGRAMS: [Program; 3] = [
    Program::of("perf", "linux-perf"),
    Program::of("runqlat", "libbpf-tools"),
    Program::of("bpftool", "bpftool"),
];

/// How to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Rounds, each with every variant once
    #[arg(short = 'n', long, value_name = "N", default_value_t = 9)]
    rounds: usize,
    /// Pipe round trips per measurement
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    loops: u32,
    /// Only schedlat's default, beside 10 to 15,000 tasks that sleep, and with one of them selected
    #[arg(long)]
    crowd: bool,
    /// CPU on which the ping-pong runs (default: the last one)
    #[arg(long)]
    cpu: Option<usize>,
    /// Writes the measurements and the verdict there
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One way to be observed.
#[derive(Debug)]
struct Variant {
    name: &'static str,
    command: Vec<String>,
    /// How much of what `runqlat` adds it may add.
    budget: Option<f64>,
    /// Whether the comparison goes on without it where it does not run.
    optional: bool,
}

impl Variant {
    fn new(name: &'static str, command: Vec<String>) -> Self {
        Self {
            name,
            command,
            budget: None,
            optional: false,
        }
    }

    fn within(self, budget: f64) -> Self {
        Self {
            budget: Some(budget),
            ..self
        }
    }

    fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }

    /// Starts and stops it once, which also shows that it can.
    fn warm_up(&self) -> Result<()> {
        Recorder::start(&self.command)
            .and_then(Recorder::stop)
            .with_context(|| format!("cannot observe with {}", self.name))
    }
}

/// Measures all variants and judges schedlat's.
pub(crate) fn overhead(arguments: &Arguments) -> Result<()> {
    if !shell::is_root() {
        bail!("cannot attach observers: not root\nhelp: sudo cargo xtask overhead");
    }
    ensure_installed(&PROGRAMS)?;
    let n_cpus = thread::available_parallelism().map_or(1, usize::from);
    let cpu = arguments.cpu.unwrap_or(n_cpus - 1);
    if arguments.crowd {
        return crowd::measure(arguments, cpu);
    }
    let variants = that_run(variants()?)?;

    let mut comparison = Comparison::new(&variants);
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        let bare = ping_pong(cpu, arguments.loops)?;
        let mut observed = Vec::new();
        for variant in &variants {
            let recorder = Recorder::start(&variant.command)
                .with_context(|| format!("cannot observe with {}", variant.name))?;
            let micros = ping_pong(cpu, arguments.loops)?;
            recorder
                .stop()
                .with_context(|| format!("cannot stop {}", variant.name))?;
            observed.push(micros);
        }
        comparison.add_round(bare, observed);
    }

    // What perf recorded is hundreds of megabytes that nobody reads.
    fs::remove_dir_all(project::target("overhead")).context("cannot remove target/overhead")?;
    print!("{}", comparison.table());
    if let Some(path) = &arguments.json {
        fs::write(path, comparison.json().to_string() + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    comparison.judge()
}

fn variants() -> Result<Vec<Variant>> {
    let schedlat = release::build()?.schedlat.display().to_string();
    let record = |detail: &str| {
        [&schedlat, "record", "--detail", detail]
            .map(str::to_owned)
            .to_vec()
    };
    let folder = project::target("overhead");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let data = folder.join("perf.data").display().to_string();
    let mut perf = program("perf")?;
    perf.extend(["sched", "record", "--output", &data].map(str::to_owned));

    let mut variants = vec![
        Variant::new("schedlat, empty programs", record("empty")),
        Variant::new("schedlat, basic", record("basic")).within(0.35),
        Variant::new("schedlat, causes", record("causes")).within(0.6),
        Variant::new("schedlat, default", record("full")).within(0.75),
        Variant::new(verdict::REFERENCE, program("runqlat")?),
        Variant::new("perf sched record", perf).optional(),
    ];
    if let (Ok(bpftrace), Ok(script)) = (program("bpftrace"), program("runqlat.bt")) {
        let command = [bpftrace, script].concat();
        variants.push(Variant::new("bpftrace runqlat.bt", command).optional());
    }
    Ok(variants)
}

/// Those that run here; one that must and does not is an error.
fn that_run(variants: Vec<Variant>) -> Result<Vec<Variant>> {
    let mut running = Vec::new();
    for variant in variants {
        match variant.warm_up() {
            Ok(()) => running.push(variant),
            Err(error) if variant.optional => eprintln!("left out: {error:#}"),
            Err(error) => return Err(error),
        }
    }
    Ok(running)
}

fn program(name: &str) -> Result<Vec<String>> {
    let path = shell::find_program(name).with_context(|| format!("{name} is not installed"))?;
    Ok(vec![path.display().to_string()])
}

/// Microseconds per round trip of two processes on `cpu`.
fn ping_pong(cpu: usize, loops: u32) -> Result<f64> {
    let mut taskset = Command::new("taskset");
    taskset.args(["-c", &cpu.to_string(), "perf", "bench"]);
    taskset.args(["sched", "pipe", "--loop", &loops.to_string()]);
    let printed = shell::capture(&mut taskset)?;
    micros_per_op(&printed)
        .with_context(|| format!("no 'usecs/op' in what perf printed: {printed}"))
}

fn micros_per_op(printed: &str) -> Option<f64> {
    let line = printed
        .lines()
        .find_map(|line| line.trim().strip_suffix("usecs/op"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::micros_per_op;

    #[test]
    fn time_per_operation_is_read_from_what_perf_prints() {
        let printed =
            "     Total time: 0.683 [sec]\n\n       3.415710 usecs/op\n  292764 ops/sec\n";
        assert_eq!(micros_per_op(printed), Some(3.415_710));
        assert_eq!(micros_per_op("nothing of the kind"), None);
    }
}
