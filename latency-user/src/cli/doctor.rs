//! `schedlat doctor`: what this kernel and this user can do.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::output::Output;
use crate::doctor::{self, Diagnosis};

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// Format of the answer
    #[arg(long, value_enum, default_value_t = DoctorFormat::Text)]
    format: DoctorFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DoctorFormat {
    Text,
    Json,
}

/// Answers; exit code 1 when `record` would not work.
pub(super) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let diagnosis = Diagnosis::make();
    let text = match args.format {
        DoctorFormat::Text => doctor::text(&diagnosis),
        DoctorFormat::Json => doctor::json(&diagnosis)?,
    };
    Output::open(None)?.write(&text)?;
    Ok(ExitCode::from(u8::from(!diagnosis.can_record)))
}
