//! The binary `schedlat`: parse, run, print the error, return the exit code.

use std::process::ExitCode;

use clap::Parser as _;
use latency_user::cli::{self, Cli};

fn main() -> ExitCode {
    match cli::run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            #[expect(
                clippy::print_stderr,
                reason = "the one place where errors are printed"
            )]
            {
                eprintln!("{}", cli::describe(&error));
            }
            cli::exit_code(&error)
        }
    }
}
