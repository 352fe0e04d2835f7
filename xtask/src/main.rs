//! `cargo xtask TASK`: set-up, BPF build, tests and benchmarks of schedlat.
//!
//! Only dispatches; each task is a file.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tasks talk to the terminal"
)]

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod build_ebpf;
mod check_ebpf;
mod ci;
mod debian;
mod dist;
#[path = "../../latency-user/ebpf_digest.rs"]
mod ebpf_digest;
mod fuzz;
mod overhead;
mod project;
mod release;
mod rust_source;
mod setup;
mod shell;
mod strip;
mod sysroot;
mod test;
#[cfg(test)]
mod tidy;
mod tools;
mod vm;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Makes available what rebuilding the BPF object needs
    Setup,
    /// Rebuilds the BPF object that is committed
    BuildEbpf,
    /// Proves that the committed BPF object is what the sources give
    CheckEbpf,
    /// Checks formatting, lints, the committed object and the documentation
    Check,
    /// Runs all tests: unit, on the live kernel, on other kernels
    Test(test::Arguments),
    /// Runs `check`, then `test`
    Ci,
    /// Builds the stripped binary and the Debian package, and tries that in a clean system
    Dist,
    /// Invents bytes for everything that reads bytes of others
    Fuzz(fuzz::Arguments),
    /// Measures what observing costs, in one series or another
    Overhead(overhead::Arguments),
    /// Runs the guest's checks on other kernels in emulated machines
    Vm(vm::Arguments),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    match task {
        Task::Setup => setup::setup().map(drop),
        Task::BuildEbpf => build_ebpf::build_ebpf(),
        Task::CheckEbpf => check_ebpf::check_ebpf(),
        Task::Check => ci::check(),
        Task::Test(arguments) => test::test(arguments),
        Task::Ci => ci::ci(),
        Task::Dist => dist::dist(),
        Task::Fuzz(arguments) => fuzz::fuzz(arguments),
        Task::Overhead(arguments) => overhead::overhead(arguments),
        Task::Vm(arguments) => vm::vm(arguments),
    }
}
