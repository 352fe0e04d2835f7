//! `schedlat bench`: commands run again and again, each repetition under a recording of its own.

mod order;
mod repetition;

use std::{ffi::OsString, io, io::IsTerminal as _, path::PathBuf, process::ExitCode, str::FromStr};

use clap::Args;

use super::{command_run, output::Output, probe::Format, signals};
use crate::{
    Error,
    analysis::{bench, escape},
    host,
    model::{BenchCommand, BenchReport, BenchRun, RunConditions, probe::Warning},
    observe::Child,
    report,
};
use order::Order;
use repetition::{Bench, Ended};

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Repetitions of each command
    #[arg(short = 'n', long = "runs", value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    n_runs: u32,
    /// Repetitions of each command before those that count
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warmup: u32,
    /// What the command after -- is called in the tables; without it the name of its program
    #[arg(long, value_name = "NAME", requires = "command")]
    label: Option<String>,
    /// A command for the shell with its label, e.g. 'old=./old --all'; may be given several times
    #[arg(long = "cmd", value_name = "LABEL=COMMAND")]
    commands: Vec<ShellCommand>,
    /// A command for the shell before each repetition, not measured, e.g. 'make clean'
    #[arg(long, value_name = "COMMAND")]
    prepare: Option<String>,
    /// Decides the order in which several commands take turns; without it each time another
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Show on standard error what the commands print on their standard output
    #[arg(long)]
    show_output: bool,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write the report to a file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Exit with 3 when the figures do not add up with the kernel's
    #[arg(long)]
    strict: bool,
    /// A command with its arguments, for no shell
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "commands"
    )]
    command: Vec<OsString>,
}

/// `LABEL=COMMAND` as typed.
#[derive(Clone, Debug)]
struct ShellCommand {
    label: String,
    line: String,
}

impl FromStr for ShellCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((label, line)) if !label.trim().is_empty() && !line.trim().is_empty() => {
                Ok(Self {
                    label: label.trim().to_owned(),
                    line: line.to_owned(),
                })
            }
            _ => Err("a label, '=' and a command are needed, e.g. 'old=./old --all'".to_owned()),
        }
    }
}

/// A command that takes its turns.
#[derive(Debug)]
struct Competitor {
    label: String,
    words: Vec<OsString>,
}

/// Measures and reports; the exit code is that of the first command that failed, else ours.
pub(super) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let (runtime, signals) = signals::runtime()?;
    let competitors = args.competitors()?;
    let mut output = Output::open(args.output.clone())?;
    let seed = args.seed.unwrap_or_else(host::wall_clock_ns);
    let mut bench = Bench::new(args.prepare.as_deref(), args.show_output, signals);
    let conditions = command_run::conditions();
    let outcome = runtime.block_on(repeat(args, &competitors, seed, &mut bench))?;
    let conditions = command_run::at_end(conditions, outcome.steal_ns);
    let report = BenchReport {
        host: bench.into_host(),
        warnings: doubts(&conditions, outcome.end),
        conditions,
        ..args.report(&competitors, seed, outcome.runs)
    };
    output.write(&match args.format {
        Format::Text => report::bench::text(&report),
        Format::Json => report::bench::json(&report),
    })?;
    let is_sound = report.runs.iter().all(|run| run.reconciliation.is_ok());
    Ok(ExitCode::from(match outcome.end.map_or(0, Ended::code) {
        0 if args.strict && !is_sound => 3,
        code => code,
    }))
}

/// What was measured, and what ended it before its time.
#[derive(Debug, Default)]
struct Outcome {
    runs: Vec<BenchRun>,
    steal_ns: u64,
    end: Option<Ended>,
}

/// All commands in turns: first to warm up, then those that count.
async fn repeat(
    args: &BenchArgs,
    competitors: &[Competitor],
    seed: u64,
    bench: &mut Bench,
) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut order = Order::new(seed);
    let rounds = args.warmup + args.n_runs;
    for round in 0..rounds {
        for index in order.of(competitors.len()) {
            let competitor = &competitors[index];
            progress(args, competitor, round);
            let repetition = bench.repetition(&competitor.words).await?;
            let is_counted = round >= args.warmup && repetition.is_whole;
            if is_counted {
                outcome.steal_ns += repetition.steal_ns;
                outcome.runs.push(BenchRun {
                    label: competitor.label.clone(),
                    repetition: round - args.warmup + 1,
                    place: u32::try_from(outcome.runs.len() + 1).unwrap_or(u32::MAX),
                    ..repetition.run
                });
            }
            if let Some(end) = repetition.end {
                outcome.end = Some(end);
                return Ok(outcome);
            }
        }
    }
    Ok(outcome)
}

/// A line on the terminal that says how far it is; nothing where there is none.
fn progress(args: &BenchArgs, competitor: &Competitor, round: u32) {
    let mut errors = io::stderr();
    if errors.is_terminal() {
        let number = if round < args.warmup {
            format!("warm-up {} of {}", round + 1, args.warmup)
        } else {
            format!("{} of {}", round - args.warmup + 1, args.n_runs)
        };
        let line = format!("{}: {number}\n", escape::text(&competitor.label));
        // Progress that cannot be shown is no reason to stop.
        io::Write::write_all(&mut errors, line.as_bytes()).unwrap_or_default();
    }
}

impl BenchArgs {
    fn competitors(&self) -> Result<Vec<Competitor>, Error> {
        let mut competitors = Vec::new();
        if let Some(program) = self.command.first() {
            Child::check(&self.command)?;
            let name = std::path::Path::new(program).file_name().unwrap_or(program);
            let label = self.label.clone();
            competitors.push(Competitor {
                label: label.unwrap_or_else(|| name.to_string_lossy().into_owned()),
                words: self.command.clone(),
            });
        }
        competitors.extend(self.commands.iter().map(|command| Competitor {
            label: command.label.clone(),
            words: repetition::shell(&command.line),
        }));
        for (index, competitor) in competitors.iter().enumerate() {
            let mut others = competitors[..index].iter();
            if others.any(|other| other.label == competitor.label) {
                return Err(Error::Conflict {
                    option: "a label",
                    with: "another command of the same one",
                    help: "name each command with a label of its own",
                });
            }
        }
        Ok(competitors)
    }

    fn report(&self, competitors: &[Competitor], seed: u64, runs: Vec<BenchRun>) -> BenchReport {
        let labels: Vec<_> = competitors.iter().map(|it| it.label.clone()).collect();
        let command = |competitor: &Competitor| {
            let shell = self.commands.iter().find(|it| it.label == competitor.label);
            let words = competitor.words.iter().map(|word| word.to_string_lossy());
            let line = shell.map_or_else(
                || words.collect::<Vec<_>>().join(" "),
                |shell| shell.line.clone(),
            );
            BenchCommand {
                label: escape::text(&competitor.label),
                command: escape::text(&line),
            }
        };
        // A command that fails early would be the fastest.
        let succeeded = runs.iter().filter(|run| run.exit_code == 0);
        let whole: Vec<_> = succeeded.cloned().collect();
        let mut report = BenchReport {
            commands: competitors.iter().map(command).collect(),
            seed,
            summary: bench::summary(&whole, &labels),
            delay_by_cause: bench::delay_by_cause(&whole),
            runs,
            ..BenchReport::default()
        };
        for run in &mut report.runs {
            run.label = escape::text(&run.label);
        }
        for row in &mut report.summary {
            row.label = escape::text(&row.label);
        }
        report
    }
}

fn doubts(conditions: &RunConditions, end: Option<Ended>) -> Vec<Warning> {
    let mut doubts = conditions.doubts();
    doubts.extend(end.map(|end| match end {
        Ended::Asked(_) => Warning::EndedEarly,
        Ended::Failed(code) => Warning::CommandFailed { code },
    }));
    doubts
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn labels(words: &[&str]) -> Result<Vec<String>, String> {
        let line = Line::try_parse_from(["bench"].iter().chain(words));
        let line = line.map_err(|error| error.kind().to_string())?;
        let competitors = line.args.competitors().map_err(|error| error.to_string())?;
        Ok(competitors.into_iter().map(|it| it.label).collect())
    }

    #[test]
    fn commands_have_labels_and_no_two_the_same() {
        assert_eq!(labels(&["--", "/bin/true"]).unwrap(), ["true"]);
        assert_eq!(labels(&["--label", "x", "--", "/bin/true"]).unwrap(), ["x"]);
        let two = ["--cmd", "a=true", "--cmd", "b = c=d true", "--", "true"];
        assert_eq!(labels(&two).unwrap(), ["true", "a", "b"]);
        let same = labels(&["--cmd", "a=true", "--cmd", "a=false"]).unwrap_err();
        assert!(
            same.starts_with("a label does not go with another"),
            "{same}"
        );
        for bad in [
            &["--cmd", "true"][..],
            &["--cmd", "=true"],
            &["--cmd", "a="],
            &[],
        ] {
            assert!(labels(bad).is_err(), "{bad:?}");
        }
    }
}
