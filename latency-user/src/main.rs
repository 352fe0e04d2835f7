//! The binary `schedlat`: parse, run, print the error, return the exit code.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;
use latency_user::cli::{self, Cli};

fn main() -> ExitCode {
    match cli::run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            // Where not even this can be written, the exit code still says it.
            writeln!(io::stderr(), "{}", cli::describe(&error)).unwrap_or_default();
            cli::exit_code(&error)
        }
    }
}
