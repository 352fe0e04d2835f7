//! `schedlat companion`: what this program does beside itself. Not for users to type.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};

use crate::probe::{
    load::{self, Kind},
    preemption::{self, CONTROL, Preemption},
};

/// Arguments of `companion`.
#[derive(Debug, Args)]
pub(super) struct CompanionArgs {
    #[command(subcommand)]
    work: Work,
}

#[derive(Debug, Subcommand)]
enum Work {
    /// A load on these CPUs
    Load {
        kind: Kind,
        #[arg(long, value_delimiter = ',', required = true)]
        cpus: Vec<u32>,
    },
    /// A load that is a command
    Command {
        #[arg(last = true, required = true)]
        words: Vec<String>,
    },
    /// A preemption model
    Preemption {
        model: Preemption,
        #[arg(long, default_value = CONTROL)]
        control: PathBuf,
    },
    /// End at once
    Nothing,
}

/// Works until the input ends.
pub(super) fn run(args: CompanionArgs) -> ExitCode {
    // Its file is called `exe`, which tells nobody anything.
    rustix::thread::set_name(c"schedlat-load").unwrap_or_default();
    match args.work {
        Work::Load { kind, cpus } => load::run(&kind, &cpus),
        Work::Command { words } => load::run(&Kind::Command(words), &[]),
        Work::Preemption { model, control } => preemption::run(model, &control),
        Work::Nothing => ExitCode::SUCCESS,
    }
}
