//! `schedlat probe`: which probe, and what all of them have in common.
//!
//! Each probe turns its arguments into cells, has them run on the `stage`, and pairs what its threads
//! measured with what the kernel saw of them.

mod busy;
mod common;
mod pingpong;
mod single;
mod stage;
mod wake;
mod yields;

pub(super) use self::common::Format;
use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Arguments of `probe`.
#[derive(Debug, Args)]
pub(super) struct ProbeArgs {
    #[command(subcommand)]
    probe: Probe,
}

#[derive(Debug, Subcommand)]
enum Probe {
    /// How late do timers wake a thread, and where does the time go?
    Wake(Box<wake::WakeArgs>),
    /// How long do two threads take to hand a token to and fro, and by where they run?
    Pingpong(Box<pingpong::PingpongArgs>),
    /// Does `sched_yield` switch, to whom, and what does a call cost?
    Yield(Box<yields::YieldArgs>),
    /// What interrupts a thread that never sleeps, and for how long?
    Busy(Box<busy::BusyArgs>),
}

/// Runs a probe.
pub(super) fn run(args: ProbeArgs) -> anyhow::Result<ExitCode> {
    match args.probe {
        Probe::Wake(mut args) => wake::run(&mut args),
        Probe::Pingpong(mut args) => pingpong::run(&mut args),
        Probe::Yield(mut args) => yields::run(&mut args),
        Probe::Busy(mut args) => busy::run(&mut args),
    }
}
