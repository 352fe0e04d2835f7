//! One repetition: prepared, recorded, waited for, and accounted for by the kernel.

use std::{
    ffi::OsString,
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeVal,
};
use rustix::process::Signal;
use tokio::process::Command;

use crate::{
    Error,
    analysis::bench::{self, Outside},
    cli::{
        alongside::record_while,
        command_run,
        signals::{Request, Signals},
    },
    cpus::{self, CpuList},
    host,
    model::{BenchRun, GroupBy, Host, Rusage},
    observe::{
        Child, CommandOutput, Session, SessionOptions, TargetArgs, Targets, signal_group,
        status_code, terminate,
    },
};

/// What ended the whole before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// A signal to us, with the code that says so.
    Asked(u8),
    /// A command that failed, with its code.
    Failed(u8),
}

impl Ended {
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Asked(code) | Self::Failed(code) => code,
        }
    }
}

/// What all repetitions have in common.
#[derive(Debug)]
pub(super) struct Bench {
    prepare: Option<Vec<OsString>>,
    output: CommandOutput,
    signals: Signals,
    host: Host,
}

/// A repetition that is over.
#[derive(Debug, Default)]
pub(super) struct Repetition {
    pub(super) run: BenchRun,
    pub(super) steal_ns: u64,
    /// It ran from its start to an end of its own.
    pub(super) is_whole: bool,
    /// Nothing is to follow it.
    pub(super) end: Option<Ended>,
}

/// The words that have a shell run a line.
pub(super) fn shell(line: &str) -> Vec<OsString> {
    ["/bin/sh", "-c", line].map(OsString::from).to_vec()
}

impl Bench {
    pub(super) fn new(prepare: Option<&str>, shows_output: bool, signals: Signals) -> Self {
        Self {
            prepare: prepare.map(shell),
            output: if shows_output {
                CommandOutput::Errors
            } else {
                CommandOutput::Nowhere
            },
            signals,
            host: host::collect(),
        }
    }

    pub(super) fn into_host(self) -> Host {
        self.host
    }

    /// Prepares and runs a command once.
    pub(super) async fn repetition(&mut self, words: &[OsString]) -> anyhow::Result<Repetition> {
        if let Some(end) = self.prepare().await? {
            return Ok(Repetition {
                end: Some(end),
                ..Repetition::default()
            });
        }
        self.record(words).await
    }

    /// Runs what comes before, without a recording.
    async fn prepare(&mut self) -> anyhow::Result<Option<Ended>> {
        let Some([program, arguments @ ..]) = self.prepare.as_deref() else {
            return Ok(None);
        };
        // A group of its own, so that what ends it ends all that it has started. A group that is not the
        // terminal's would be stopped at its first reading from there.
        let spawned = Command::new(program)
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let mut child = spawned.map_err(|source| Error::Command {
            command: program.to_string_lossy().into_owned(),
            source,
        })?;
        let mut asked = None;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                request = self.signals.next() => {
                    // Who asks again does not want to wait.
                    let signal = if asked.is_none() { Signal::TERM } else { Signal::KILL };
                    asked = Some(request);
                    child.id().map(|leader| signal_group(leader, signal)).unwrap_or_default();
                }
            }
        };
        Ok(match asked {
            Some(request) => Some(Ended::Asked(code_of(request))),
            None if status.success() => None,
            None => Some(Ended::Failed(status_code(status))),
        })
    }

    async fn record(&mut self, words: &[OsString]) -> anyhow::Result<Repetition> {
        let targets = TargetArgs {
            command: words.to_vec(),
            ..TargetArgs::default()
        };
        let options = SessionOptions {
            command: words.to_vec(),
            command_output: self.output,
            idle_cpus: CpuList::allowed()
                .map_err(cpus::unknown)?
                .as_slice()
                .to_vec(),
            ..SessionOptions::new(Targets::resolve(&targets, GroupBy::Tid)?)
        };
        let before = rusage()?;
        let (mut session, child) = Session::start(&options)?;
        let pid = child.as_ref().and_then(Child::pid);
        let mut is_asked = false;
        let ran = record_while(&mut session, &mut self.signals, wait_for(child), || {
            is_asked = true;
            pid.map(terminate).unwrap_or_default();
        });
        let (status, real) = ran.await??;
        let rusage = since(rusage()?, before);
        let whole = session.last_snapshot()?;
        let report = command_run::report(&session, &options, &self.host, &whole);
        let exit_code = status.map_or(0, status_code);
        let outside = Outside {
            real,
            rusage,
            exit_code,
        };
        Ok(Repetition {
            run: bench::repetition(&whole, &report, outside),
            steal_ns: report.steal_ns,
            is_whole: !is_asked,
            end: match (is_asked, exit_code) {
                (true, code) => Some(Ended::Asked(code)),
                (false, 0) => None,
                (false, code) => Some(Ended::Failed(code)),
            },
        })
    }
}

/// The end of a command, and how long it took from before its start.
async fn wait_for(child: Option<Child>) -> std::io::Result<(Option<ExitStatus>, Duration)> {
    let Some(mut child) = child else {
        return Ok((None, Duration::ZERO));
    };
    let began: Instant = child.started_at();
    let status = child.wait().await?;
    Ok((Some(status), began.elapsed()))
}

/// As shells say it.
const fn code_of(request: Request) -> u8 {
    match request {
        Request::Interrupt => 128 + 2,
        Request::Terminate => 128 + 15,
    }
}

/// The kernel's account of all our children that were waited for, and of theirs.
fn rusage() -> Result<Rusage, Error> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| Error::Read {
        what: "the account of our children".into(),
        source: error.into(),
    })?;
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    Ok(Rusage {
        user_s: seconds(usage.user_time()),
        system_s: seconds(usage.system_time()),
        voluntary: count(usage.voluntary_context_switches()),
        involuntary: count(usage.involuntary_context_switches()),
    })
}

fn since(now: Rusage, before: Rusage) -> Rusage {
    Rusage {
        user_s: now.user_s - before.user_s,
        system_s: now.system_s - before.system_s,
        voluntary: now.voluntary - before.voluntary,
        involuntary: now.involuntary - before.involuntary,
    }
}

fn seconds(time: TimeVal) -> f64 {
    let us = u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0);
    Duration::from_micros(us).as_secs_f64()
}
