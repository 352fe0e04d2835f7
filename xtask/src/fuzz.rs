//! `cargo xtask fuzz`: invents bytes for everything that reads bytes of others, until one breaks a promise.
//!
//! Promises: what it learns stays below `target/`; an input that breaks something is kept and named.
//! Leaves to others: the promises (`latency-user/src/hostile/`), and trying the seeds, which the unit tests do.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

use crate::debian::install::{Program, ensure_installed};
use crate::tools::tool;
use crate::{project, shell};

/// The version whose options are used below.
const CARGO_FUZZ: &str = "0.13.2";

/// The fuzzer itself is C++.
const PROGRAMS: [Program; 1] = [Program::of("c++", "g++")];

/// Real outputs of tools: more seeds for [`Target::Foreign`].
const FIXTURES: &str = "latency-user/src/reconcile/foreign/fixtures";

/// What to fuzz.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// One of them, else all, one after the other
    target: Option<Target>,
    /// How long each, e.g. 60s or 10m
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = seconds)]
    seconds: u64,
}

/// Who invents the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Outputs of tools of others
    Foreign,
    /// Values of options
    Arguments,
    /// Names of tasks and paths of groups, in every format
    Names,
    /// Records of the kernel side
    Rows,
}

impl Target {
    const fn name(self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Arguments => "arguments",
            Self::Names => "names",
            Self::Rows => "rows",
        }
    }
}

/// Fuzzes the target, or all.
pub(crate) fn fuzz(arguments: &Arguments) -> Result<()> {
    ensure_installed(&PROGRAMS)?;
    let cargo_fuzz = tool("cargo-fuzz", CARGO_FUZZ)?;
    for target in Target::value_variants() {
        if arguments.target.is_none_or(|only| only == *target) {
            run(&cargo_fuzz, *target, arguments.seconds)?;
        }
    }
    Ok(())
}

fn run(cargo_fuzz: &Path, target: Target, seconds: u64) -> Result<()> {
    let name = target.name();
    println!("fuzz: {name} for {seconds} s");
    shell::run(&mut step(cargo_fuzz, "build", target))
        .with_context(|| format!("cannot build the fuzzer of {name}"))?;
    // What is found goes to the first folder.
    let learned = project::target("fuzz-corpus").join(name);
    fs::create_dir_all(&learned).with_context(|| format!("cannot create {}", learned.display()))?;
    let mut command = step(cargo_fuzz, "run", target);
    command.arg(learned).arg(format!("fuzz/seeds/{name}"));
    if target == Target::Foreign {
        command.arg(FIXTURES);
    }
    command
        .args(["--", "-timeout=10"])
        .arg(format!("-max_total_time={seconds}"));
    shell::run(&mut command).with_context(|| {
        format!(
            "{name} breaks at an input that is kept below fuzz/artifacts/{name}\n\
             help: move it to fuzz/seeds/{name}, where `cargo test -p latency-user hostile` tries it"
        )
    })
}

/// A sanitizer needs a nightly compiler and the sources of the standard library; ours is safe code but for
/// a few lines, and overflows are caught without.
fn step(cargo_fuzz: &Path, what: &str, target: Target) -> Command {
    let mut command = Command::new(cargo_fuzz);
    command
        .current_dir(project::root())
        .args([what, "--sanitizer", "none", "--codegen-units", "16"])
        .arg("--target-dir")
        .arg(project::target("fuzz"))
        .arg(target.name());
    command
}

fn seconds(text: &str) -> Result<u64, String> {
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let read = |(unit, seconds): (&str, u64)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds).filter(|seconds| *seconds > 0)
    };
    let found = units.into_iter().find_map(read);
    found.ok_or_else(|| "a number and s, m or h is needed, e.g. 60s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_number_and_a_unit() {
        assert_eq!(
            ["60s", "2m", "1h"].map(seconds),
            [Ok(60), Ok(120), Ok(3600)]
        );
        for text in ["", "60", "0s", "-1s", "1.5m", "1d", "99999999999999999h"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_target_is_the_fuzzers() {
        let entries = fs::read_dir(project::root().join("fuzz/fuzz_targets")).unwrap();
        let mut found: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        let mut expected: Vec<_> = Target::value_variants()
            .iter()
            .map(|target| std::ffi::OsString::from(format!("{}.rs", target.name())))
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        assert!(project::root().join(FIXTURES).is_dir());
    }
}
