//! `schedlat record`: arguments, then validated options, then the recording.

mod flight;
mod over;
mod printer;
mod run_loop;

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use latency_common::{
    config::{Detail, LEAST_STACKS_OVER_NS},
    hist::HistSlot,
};

use super::{output::Output, signals, targets::TargetOptions};
use crate::{
    host,
    kernel::FlightSize,
    model::{GroupBy, Window},
    observe::{
        Child, CommandOutput, DEFAULT_HISTOGRAMS, DEFAULT_RING_BYTES, SessionOptions, TargetArgs,
        Targets, status_code,
    },
    units::Nanos,
};
use flight::FlightLog;
use over::Over;
use printer::Printer;

/// Arguments of `record`.
#[derive(Debug, Args)]
pub(super) struct RecordArgs {
    #[command(flatten)]
    targets: TargetOptions,
    /// A command, with everything it forks and executes; its exit status is passed on
    #[arg(last = true, value_name = "COMMAND", help_heading = "Targets")]
    command: Vec<OsString>,

    /// How long to observe, e.g. 10s; without it until Ctrl-C or the end of the targets
    #[arg(long = "for", value_name = "DURATION", allow_hyphen_values = true)]
    duration: Option<Nanos>,
    /// Print the figures of each interval as well, e.g. every 1s
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    interval: Option<Nanos>,
    /// Print each wait of at least this length as it ends, taken apart, e.g. from 1ms on
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    over: Option<Nanos>,
    /// Look at what others do in the kernel where a task has waited longer, e.g. than 1ms; without it the
    /// longest hundredth of all waits decides
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    stacks_over: Option<Nanos>,
    /// What a row stands for
    #[arg(long, value_enum, default_value_t = By::Tid)]
    by: By,
    /// Rows in the text report; other formats have all
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write the report to a file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Exit with 3 when the audit fails
    #[arg(long)]
    strict: bool,
    /// How much is measured: less costs less
    #[arg(long, value_enum, default_value_t = DetailArg::Full, help_heading = "Limits")]
    detail: DetailArg,
    /// Histograms kept at a time, 4 KiB each, up to three per task
    #[arg(long, value_name = "N", default_value_t = DEFAULT_HISTOGRAMS, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..=MAX_HISTOGRAMS))]
    max_histograms: u32,
    /// Size of the ring for ended tasks, a power of two
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_RING_BYTES, help_heading = "Limits",
          value_parser = ring_bytes)]
    ring_bytes: u32,
    /// Keep the raw events of the last so long, e.g. 2s, and save them as a Perfetto trace: at a wait
    /// over --over (at most ten times), on SIGUSR1, and at the end; they are of all tasks, whatever the
    /// targets
    #[arg(
        long,
        value_name = "DURATION",
        allow_hyphen_values = true,
        help_heading = "Flight recorder"
    )]
    flight: Option<Nanos>,
    /// Where to save it; further traces get a number
    #[arg(
        long,
        value_name = "FILE",
        default_value = "schedlat-flight.pftrace",
        requires = "flight",
        help_heading = "Flight recorder"
    )]
    flight_output: PathBuf,
    /// Memory for the raw events of all CPUs together; without it 8 MiB a second for each CPU, at
    /// most 256 MiB
    #[arg(long, value_name = "BYTES", requires = "flight", help_heading = "Flight recorder",
          value_parser = clap::value_parser!(u64).range(1..=MAX_FLIGHT_BYTES))]
    flight_bytes: Option<u64>,
    /// Log on standard error which tasks are selected when their name or program changes
    #[arg(long, short, help_heading = "Troubleshooting")]
    verbose: bool,
    /// Where to save the kernel's full log should it reject a program
    #[arg(long, value_name = "FILE", help_heading = "Troubleshooting")]
    verifier_log: Option<PathBuf>,
}

/// A GiB of histograms.
const MAX_HISTOGRAMS: i64 = 1 << 18;
const _: () = assert!((1 << 30) / size_of::<HistSlot>() == 1 << 18);

/// 4 GiB: a dump takes as much again, and more for the trace.
const MAX_FLIGHT_BYTES: u64 = 1 << 32;

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    Tid,
    Pid,
    Comm,
    Cgroup,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A summary for people
    Text,
    /// Everything, for programs
    Json,
    /// Rows for spreadsheets
    Csv,
    /// Kernel paths of whom others waited for, for flame graphs
    Folded,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DetailArg {
    /// Programs that do nothing, for measuring what being attached costs
    Empty,
    /// Waits by kind in the kernel's own account, without causes
    Basic,
    /// Waits, wakeup latency and causes
    Causes,
    /// Everything: what each wait was made of as well
    Full,
}

fn ring_bytes(text: &str) -> Result<u32, String> {
    let bytes: u32 = text
        .parse()
        .map_err(|error| format!("a number of bytes is needed: {error}"))?;
    if bytes.is_power_of_two() && (1 << 12..=1 << 30).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("a power of two from 4096 (4 KiB) to 1073741824 (1 GiB) is needed".to_owned())
    }
}

/// Records; the exit code is the command's, if there is one and it fails, else ours.
pub(super) fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    if args.verbose {
        env_logger::builder()
            .filter_module("schedlat", log::LevelFilter::Debug)
            .init();
    }
    // Before anything else, so that a signal at any time ends in a report.
    let (runtime, signals) = signals::runtime()?;
    Child::check(&args.command)?;
    args.check()?;
    let options = args.options()?;
    let output = Output::open(args.output.clone())?;
    let printer = Printer {
        output,
        format: args.format,
        top: args.top,
        host: host::collect(),
        target: options.targets.description().to_owned(),
        by: args.group_by(),
        detail: args.detail.detail(),
        over: args.over.map(|over| Over::new(over.as_ns())),
        is_stream: args.interval.is_some() || args.over.is_some(),
        n_intervals: 0,
        window: Window::default(),
    };
    let plan = run_loop::Plan {
        duration: args.duration,
        interval: args.interval,
    };
    let flight = {
        let _context = runtime.enter();
        args.flight_log()?
    };
    let recording = run_loop::record(&options, plan, printer, signals, flight);
    let outcome = runtime.block_on(recording);
    if let (Err(error), Some(path)) = (&outcome, &args.verifier_log) {
        save_log(error, path)?;
    }
    let outcome = outcome?;
    let own = if args.strict && !outcome.is_sound {
        3
    } else {
        0
    };
    let code = match outcome.child.map(status_code) {
        Some(0) | None => own,
        Some(code) => code,
    };
    Ok(ExitCode::from(code))
}

fn save_log(error: &anyhow::Error, path: &std::path::Path) -> anyhow::Result<()> {
    if let Some(crate::Error::Rejected { log, .. }) = error.downcast_ref() {
        std::fs::write(path, log).map_err(|source| crate::Error::Output {
            path: path.to_owned(),
            source,
        })?;
    }
    Ok(())
}

impl RecordArgs {
    fn group_by(&self) -> GroupBy {
        match self.by {
            By::Tid => GroupBy::Tid,
            By::Pid => GroupBy::Pid,
            By::Comm => GroupBy::Comm,
            By::Cgroup => GroupBy::Cgroup,
        }
    }

    /// Refuses what does not go together.
    fn check(&self) -> Result<(), crate::Error> {
        let is_reduced = !matches!(self.detail, DetailArg::Full);
        let is_folded = matches!(self.format, Format::Folded);
        let is_csv = matches!(self.format, Format::Csv);
        let detail = "less than --detail full";
        let single = "single waits are taken apart by --detail full, and printed as text or json";
        let stacks = "stacks are taken by --detail full";
        let whole = "folded stacks are of a whole recording, with --detail full";
        let conflicts = [
            (
                self.over.is_some() && is_csv,
                "--over",
                "--format csv",
                single,
            ),
            (
                self.over.is_some() && is_folded,
                "--over",
                "--format folded",
                single,
            ),
            (self.over.is_some() && is_reduced, "--over", detail, single),
            (
                self.stacks_over.is_some() && is_reduced,
                "--stacks-over",
                detail,
                stacks,
            ),
            (is_folded && is_reduced, "--format folded", detail, whole),
            (
                is_folded && self.interval.is_some(),
                "--format folded",
                "--interval",
                whole,
            ),
        ];
        let is_too_short = |over: Nanos| over.as_ns() < LEAST_STACKS_OVER_NS;
        if self.stacks_over.is_some_and(is_too_short) {
            return Err(crate::Error::TooShort {
                option: "--stacks-over",
                least: Nanos::from_ns(LEAST_STACKS_OVER_NS),
                help: "a stack costs tens of microseconds, more than shorter waits are worth",
            });
        }
        let found = conflicts.into_iter().find(|(is_conflict, ..)| *is_conflict);
        found.map_or(Ok(()), |(_, option, with, help)| {
            Err(crate::Error::Conflict { option, with, help })
        })
    }

    fn options(&self) -> anyhow::Result<SessionOptions> {
        let targets = TargetArgs {
            command: self.command.clone(),
            ..self.targets.typed()
        };
        Ok(SessionOptions {
            targets: Targets::resolve(&targets, self.group_by())?,
            detail: self.detail.detail(),
            n_hists: self.max_histograms,
            ring_bytes: self.ring_bytes,
            over_ns: self.over.map(Nanos::as_ns),
            stacks_over_ns: self.stacks_over.map(Nanos::as_ns),
            names_early: self.over.is_some() || self.interval.is_some(),
            needs_paths: matches!(self.format, Format::Folded),
            command: self.command.clone(),
            command_output: CommandOutput::Ours,
            flight: self.flight.map(|window| FlightSize {
                window_ns: window.as_ns(),
                bytes: self.flight_bytes,
            }),
            traced: Vec::new(),
            yielders: Vec::new(),
            idle_cpus: Vec::new(),
            has_logs: self.verbose,
        })
    }

    fn flight_log(&self) -> anyhow::Result<Option<FlightLog>> {
        self.flight
            .map(|window| FlightLog::open(self.flight_output.clone(), window.into()))
            .transpose()
    }
}

impl DetailArg {
    fn detail(self) -> Detail {
        match self {
            Self::Empty => Detail::Empty,
            Self::Basic => Detail::Basic,
            Self::Causes => Detail::Causes,
            Self::Full => Detail::Full,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: RecordArgs,
    }

    #[track_caller]
    fn check(words: &str, expected: Option<&str>) {
        let line = Line::parse_from(std::iter::once("record").chain(words.split(' ')));
        let refused = line.args.check().err().map(|error| error.to_string());
        assert_eq!(refused.as_deref(), expected, "{words}");
    }

    #[test]
    fn single_waits_take_full_detail_and_a_format_that_can_tell_them() {
        check("--over 1ms", None);
        check("--over 1ms --format json", None);
        check("--format csv --detail basic", None);
        let csv = "--over does not go with --format csv";
        check("--over 1ms --format csv", Some(csv));
        let detail = "--over does not go with less than --detail full";
        check("--over 1ms --detail causes", Some(detail));
        let folded = "--over does not go with --format folded";
        check("--over 1ms --format folded", Some(folded));
    }

    #[test]
    fn stacks_take_full_detail_and_folded_ones_a_whole_recording() {
        check("--stacks-over 1ms --format folded", None);
        check("--stacks-over 1ms --interval 1s --format csv", None);
        let detail = "--stacks-over does not go with less than --detail full";
        check("--stacks-over 1ms --detail causes", Some(detail));
        let short = "--stacks-over must be at least 100 µs";
        check("--stacks-over 99us", Some(short));
        let detail = "--format folded does not go with less than --detail full";
        check("--format folded --detail basic", Some(detail));
        let interval = "--format folded does not go with --interval";
        check("--format folded --interval 1s", Some(interval));
    }
}
