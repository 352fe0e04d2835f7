//! `cargo xtask overhead`: what an observer adds to a pipe ping-pong on one CPU.
//!
//! Promises: all variants in every round, so that a drift of the machine meets each alike; medians
//! of the differences to the bare run of the same round; fails when schedlat exceeds its budget.
//! Leaves to others: running observers ([`recorder`]), and the arithmetic and its table
//! ([`verdict`]).

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
}

/// Measures all variants and judges schedlat's.
pub(crate) fn overhead(arguments: &Arguments) -> Result<()> {
    if !shell::is_root() {
        bail!("cannot attach observers: not root\nhelp: sudo cargo xtask overhead");
    }
    ensure_installed(&PROGRAMS)?;
    let n_cpus = thread::available_parallelism().map_or(1, usize::from);
    let cpu = arguments.cpu.unwrap_or(n_cpus - 1);
    let variants = variants()?;

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
    let mut variants = vec![
        Variant {
            name: "schedlat, empty programs",
            command: record("empty"),
            budget: None,
        },
        Variant {
            name: "schedlat, basic",
            command: record("basic"),
            budget: Some(0.35),
        },
        Variant {
            name: "schedlat, default",
            command: record("full"),
            budget: Some(0.6),
        },
        Variant {
            name: verdict::REFERENCE,
            command: program("runqlat")?,
            budget: None,
        },
    ];
    if let (Ok(bpftrace), Ok(script)) = (program("bpftrace"), program("runqlat.bt")) {
        let command = [bpftrace, script].concat();
        variants.push(Variant {
            name: "bpftrace runqlat.bt",
            command,
            budget: None,
        });
    }
    let data = project::target("overhead").join("perf.data");
    fs::create_dir_all(project::target("overhead")).context("cannot create target/overhead")?;
    let options = ["sched", "record", "--output"].map(str::to_owned);
    let command = [
        program("perf")?,
        options.to_vec(),
        vec![data.display().to_string()],
    ]
    .concat();
    variants.push(Variant {
        name: "perf sched record",
        command,
        budget: None,
    });
    Ok(variants)
}

fn program(name: &str) -> Result<Vec<String>> {
    let path = shell::find_program(name).with_context(|| format!("{name} is not installed"))?;
    Ok(vec![path.display().to_string()])
}

/// Microseconds per round trip of two processes on `cpu`.
fn ping_pong(cpu: usize, loops: u32) -> Result<f64> {
    let mut perf = Command::new("taskset");
    perf.args(["-c", &cpu.to_string(), "perf", "bench"]);
    perf.args(["sched", "pipe", "--loop", &loops.to_string()]);
    let printed = shell::capture(&mut perf)?;
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
