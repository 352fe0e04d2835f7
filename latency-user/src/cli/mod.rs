//! The command line: what can be typed, and what the exit codes mean.
//!
//! 0 done; 1 could not measure or not write; 2 bad arguments; 3 the audit failed under `--strict`.
//! The status of a recorded command is passed on and wins over ours (126 and 127 when it cannot run).

mod alongside;
mod bench;
mod command_run;
mod companion;
mod doctor;
mod filling;
mod output;
mod probe;
mod record;
mod signals;
mod targets;
mod verify;

use std::{io, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::Error;

/// Why did this task not run when it wanted to?
///
/// Measures in the kernel how long tasks wait for a CPU and why they lost it, and checks every
/// number against the kernel's own accounting.
#[derive(Debug, Parser)]
#[command(name = "schedlat", version, max_term_width = 100, after_long_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Observe tasks and print where they waited
    ///
    /// Targets add up; without any, all tasks are observed.
    Record(Box<record::RecordArgs>),
    /// Run commands again and again, and say where their time went
    ///
    /// Real and CPU time, switches, and what the commands' tasks waited for CPUs: of each repetition, and
    /// their average, minimum and maximum. Several commands take turns in random order. Every figure is
    /// held against the kernel's own account.
    Bench(Box<bench::BenchArgs>),
    /// Run somebody else's probe and say whether its figures can be true
    ///
    /// Knows cyclictest, oslat, hackbench, perf bench sched, stress-ng --cyclic and schbench. The tool's
    /// samples are held against wakeups that the kernel saw, its distribution against the kernel's, which
    /// is a part of it, and what it left out is counted. The verdict is *agrees*, *omits* or *disagrees*.
    Verify(verify::VerifyArgs),
    /// Measure with threads of our own, and let the kernel judge the measurement
    Probe(probe::ProbeArgs),
    /// Say what this kernel and this user can do
    Doctor(doctor::DoctorArgs),
    #[command(hide = true)]
    Companion(companion::CompanionArgs),
}

const EXIT_CODES: &str = "\
Exit status: 0 done; 1 could not measure or not write; 2 bad arguments; 3 the audit or a verdict
failed under --strict, or too little switched under --require-switch. The status of a command that
was recorded is passed on and wins.";

/// Runs a command.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Record(args) => record::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Probe(args) => probe::run(args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Companion(args) => Ok(companion::run(args)),
    }
}

/// The error as a user reads it: what could not be done, why, and what to type.
#[must_use]
pub fn describe(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Error>() {
        // Its message has the cause in it already, so the chain is not written out.
        Some(known) => format!("error: {known}\nhelp: {}", known.help()),
        None => format!("error: {error:#}"),
    }
}

/// The exit code of an error.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref() {
        Some(
            Error::BadGlob { .. }
            | Error::TooManyGlobs(_)
            | Error::Conflict { .. }
            | Error::UnknownTool(_)
            | Error::NoCpu { .. }
            | Error::NoPlacement(_)
            | Error::TooShort { .. },
        ) => 2,
        Some(Error::Command { source, .. }) if source.kind() == io::ErrorKind::NotFound => 127,
        Some(Error::Command { .. }) => 126,
        _ => 1,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn help(words: &[&str]) -> String {
        let mut cli = Cli::command().term_width(100);
        cli.build();
        let mut shown = &mut cli;
        for word in words {
            shown = shown.find_subcommand_mut(word).unwrap();
        }
        let shown = shown.render_long_help().to_string();
        // clap leaves blanks on lines between two paragraphs.
        let lines: Vec<_> = shown.lines().map(str::trim_end).collect();
        lines.join("\n")
    }

    #[test]
    fn help_says_what_can_be_typed() {
        insta::assert_snapshot!("help", help(&[]));
        insta::assert_snapshot!("help_record", help(&["record"]));
        insta::assert_snapshot!("help_bench", help(&["bench"]));
        insta::assert_snapshot!("help_verify", help(&["verify"]));
        insta::assert_snapshot!("help_doctor", help(&["doctor"]));
        insta::assert_snapshot!("help_probe", help(&["probe"]));
        insta::assert_snapshot!("help_probe_wake", help(&["probe", "wake"]));
        insta::assert_snapshot!("help_probe_yield", help(&["probe", "yield"]));
        insta::assert_snapshot!("help_probe_pingpong", help(&["probe", "pingpong"]));
        insta::assert_snapshot!("help_probe_busy", help(&["probe", "busy"]));
    }

    #[test]
    fn error_ends_with_something_to_type() {
        let error = anyhow::Error::from(Error::NoProcess(4242));
        assert_eq!(
            describe(&error),
            "error: no process 4242\n\
             help: --pid takes the id of a running process; for a single thread use --tid"
        );
    }

    #[test]
    fn cause_of_an_error_is_named_once() {
        let error = anyhow::Error::from(Error::Output {
            path: "/tmp".into(),
            source: io::ErrorKind::IsADirectory.into(),
        });
        assert_eq!(
            describe(&error),
            "error: cannot write /tmp: is a directory\n\
             help: choose a file that can be written, with --output FILE"
        );
    }
}
