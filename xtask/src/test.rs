//! `cargo xtask test`: every test there is, with the programs they drive.
//!
//! Promises: runs all suites even when one fails, and names those that did; without root it runs
//! what needs none and fails, because the rest has not been shown.
//! Leaves to others: the virtual machines ([`crate::vm`]).

use std::process::Command;
use std::thread;

use anyhow::{Result, bail};
use clap::Args;

use crate::debian::install::{Program, ensure_installed};
use crate::{project, release, shell, vm};

/// The programs that the tests on the live kernel drive or compare with.
const PROGRAMS: [Program; 9] = [
    Program::of("bpftool", "bpftool"),
    Program::of("bpftrace", "bpftrace"),
    Program::of("runqlat", "libbpf-tools"),
    Program::of("perf", "linux-perf"),
    Program::of("hackbench", "rt-tests"),
    Program::of("trace-cmd", "trace-cmd"),
    Program::of("stress-ng", "stress-ng"),
    Program::of("make", "make"),
    Program::of("gcc", "gcc"),
];

/// Which tests to run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// Leave out the kernels in emulated machines
    #[arg(long)]
    skip_vm: bool,
    /// Only the tests whose name contains this, and no virtual machines; further arguments go to
    /// the test harness
    #[arg(last = true, value_name = "FILTER")]
    filter: Vec<String>,
}

/// Runs the tests that need nothing, those on the live kernel, and those on other kernels.
pub(crate) fn test(arguments: &Arguments) -> Result<()> {
    let with_vm = !arguments.skip_vm && arguments.filter.is_empty();
    if shell::is_root() {
        ensure_installed(&PROGRAMS)?;
    }

    let mut failed = Vec::new();
    // The network is idle while the compiler works, and has to be while the live kernel is measured.
    let programs = thread::scope(|scope| {
        if with_vm && shell::is_root() {
            scope.spawn(vm::fetch_ahead);
        }
        note("unit tests", unit_tests(&arguments.filter), &mut failed);
        if !shell::is_root() {
            bail!(
                "the tests on the live kernel and on other kernels have not run: they need root\n\
                 help: sudo -E env PATH=\"$PATH\" cargo xtask test"
            );
        }
        build_live_tests()
    })?;
    note(
        "tests on the live kernel",
        live_tests(&programs, &arguments.filter),
        &mut failed,
    );
    if with_vm {
        note(
            "tests on other kernels",
            vm::vm(&vm::Arguments::default()),
            &mut failed,
        );
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn note(suite: &'static str, outcome: Result<()>, failed: &mut Vec<&'static str>) {
    if let Err(error) = outcome {
        eprintln!("{suite}: {error:#}");
        failed.push(suite);
    }
}

fn unit_tests(filter: &[String]) -> Result<()> {
    let mut cargo = shell::cargo();
    cargo
        .current_dir(project::root())
        .args(["test", "--no-fail-fast"])
        .args([
            "--package",
            "latency-common",
            "--package",
            "latency-user",
            "--package",
            "latency-manual",
            "--package",
            "xtask",
        ])
        .arg("--")
        .args(filter);
    shell::run(&mut cargo)
}

/// How often a test on the live kernel may fail before it has failed for good.
const MAX_RUNS: usize = 3;

/// One at a time, since each changes what the others would measure.
///
/// They measure on a machine that others may use: what fails is named and run again, on its own. A fault
/// of ours fails every time.
fn live_tests(programs: &release::Programs, filter: &[String]) -> Result<()> {
    let run = |names: &[String]| {
        let mut cargo = live_cargo();
        cargo.args(["--", "--test-threads=1"]).args(names);
        cargo
            .env("SCHEDLAT_BIN", &programs.schedlat)
            .env("WORKLOAD_BIN", &programs.workload);
        shell::run_and_keep(&mut cargo)
    };
    let (mut outcome, mut output) = run(filter)?;
    for _ in 1..MAX_RUNS {
        let failed = failed_tests(&output);
        if outcome.is_ok() || failed.is_empty() {
            break;
        }
        println!("failed, and run again: {}", failed.join(", "));
        let again: Vec<_> = ["--exact".to_owned()].into_iter().chain(failed).collect();
        (outcome, output) = run(&again)?;
    }
    outcome
}

/// Builds what the tests on the live kernel are and what they run.
fn build_live_tests() -> Result<release::Programs> {
    let programs = release::build()?;
    shell::run(live_cargo().arg("--no-run"))?;
    Ok(programs)
}

fn live_cargo() -> Command {
    let mut cargo = shell::cargo();
    cargo
        .current_dir(project::root())
        .args(["test", "--release", "--no-fail-fast", "--target-dir"])
        .arg(project::target(""))
        .args(["--package", "latency-tests"]);
    cargo
}

/// The names in the lists of failures that the test harness prints.
fn failed_tests(output: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_listing = false;
    for line in output.lines() {
        match line.strip_prefix("    ") {
            Some(name) if is_listing && !name.contains(' ') => names.push(name.to_owned()),
            _ => is_listing = line == "failures:",
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::failed_tests;

    #[test]
    fn failures_are_read_from_their_lists() {
        let output = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\n    no name\n\n\
                      failures:\n    a\n    deep::b\n\ntest result: FAILED. 0 passed\n\
                      failures:\n    c\n";
        assert_eq!(failed_tests(output), ["a", "deep::b", "c"]);
        assert!(failed_tests("test a ... ok\n").is_empty());
    }
}
