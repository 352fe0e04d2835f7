//! `schedlat verify`: somebody else's probe under the recorder, and its figures against the kernel's.

mod invocation;
mod tool_run;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};

use super::{
    alongside::record_while,
    command_run,
    output::Output,
    probe::Format,
    signals::{self, Signals},
};
use crate::{
    Error,
    analysis::escape,
    host,
    model::{Agreement, GroupBy, Host, Report, Verification},
    observe::{
        Child, CommandOutput, Session, SessionOptions, TargetArgs, Targets, status_code, terminate,
    },
    reconcile::foreign::{self, Tool},
    report::verify,
};
use invocation::Invocation;
use tool_run::Ran;

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Which tool it is, where its name does not say it
    #[arg(long, value_enum)]
    tool: Option<ToolArg>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write the report to a file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Exit with 3 unless the tool's figures agree with the kernel's
    #[arg(long)]
    strict: bool,
    /// The tool as it would be run; what it prints goes to standard error
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ToolArg {
    Cyclictest,
    Oslat,
    Hackbench,
    PerfBench,
    StressNg,
    Schbench,
}

impl ToolArg {
    const fn tool(self) -> Tool {
        match self {
            Self::Cyclictest => Tool::Cyclictest,
            Self::Oslat => Tool::Oslat,
            Self::Hackbench => Tool::Hackbench,
            Self::PerfBench => Tool::PerfBench,
            Self::StressNg => Tool::StressNg,
            Self::Schbench => Tool::Schbench,
        }
    }
}

/// Runs the tool and says whether its figures can be true; its own status wins.
pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let (runtime, signals) = signals::runtime()?;
    let invocation = Invocation::of(&args.command, args.tool.map(ToolArg::tool))?;
    Child::check(&invocation.command)?;
    let mut output = Output::open(args.output.clone())?;
    let host = host::collect();
    let conditions = command_run::conditions();
    let (ran, report) = runtime.block_on(observe(&invocation, &host, signals))?;
    let code = ran.status.map_or(0, status_code);
    let conditions = command_run::at_end(conditions, report.steal_ns);
    let verification = match verification(&invocation, &ran, &report) {
        Ok(verification) => Verification {
            host,
            warnings: conditions.doubts(),
            conditions,
            ..verification
        },
        // A tool that failed has said why itself, and has no figures.
        Err(_) if code != 0 => return Ok(ExitCode::from(code)),
        Err(error) => return Err(error.into()),
    };
    output.write(&match args.format {
        Format::Text => verify::text(&verification),
        Format::Json => verify::json(&verification),
    })?;
    let is_breach = args.strict && verification.verdict != Agreement::Agrees;
    Ok(ExitCode::from(match code {
        0 if is_breach => 3,
        code => code,
    }))
}

async fn observe(
    invocation: &Invocation,
    host: &Host,
    mut signals: Signals,
) -> anyhow::Result<(Ran, Report)> {
    let targets = TargetArgs {
        command: invocation.command.clone(),
        ..TargetArgs::default()
    };
    let targets = Targets::resolve(&targets, GroupBy::Tid)?;
    let options = SessionOptions {
        command: invocation.command.clone(),
        command_output: CommandOutput::Captured,
        ..SessionOptions::new(targets)
    };
    let (mut session, child) = Session::start(&options)?;
    let pid = child.as_ref().and_then(Child::pid);
    let work = tool_run::run(child, invocation.tool);
    let ran = record_while(&mut session, &mut signals, work, || {
        pid.map(terminate).unwrap_or_default();
    });
    let ran = ran.await??;
    let whole = session.last_snapshot()?;
    let report = command_run::report(&session, &options, host, &whole);
    Ok((ran, report))
}

fn verification(
    invocation: &Invocation,
    ran: &Ran,
    report: &Report,
) -> Result<Verification, Error> {
    let tool = invocation.tool;
    let unreadable = |reason: String| Error::ForeignOutput {
        tool: tool.name(),
        reason,
    };
    let json = invocation.read_json().map_err(unreadable)?;
    let output = foreign::Output {
        json: &json,
        text: &ran.printed.text(),
    };
    let claims = tool
        .read(output)
        .map_err(|error| unreadable(error.to_string()))?;
    let kernel = foreign::seen(tool, &claims, report, &ran.watched);
    let reasons = foreign::judge(tool, &claims, &kernel, report.loss.missed_switches);
    let words = invocation.typed.iter();
    Ok(Verification {
        tool: tool.name(),
        command: words
            .map(|word| escape::text(&word.to_string_lossy()))
            .collect(),
        added: invocation.added(),
        window: report.window,
        verdict: foreign::verdict(&reasons),
        claims,
        kernel,
        reasons,
        audit: report.audit.clone(),
        loss: report.loss,
        exit_code: ran.status.map(status_code),
        ..Verification::default()
    })
}
