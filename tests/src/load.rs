//! Loads beside the recorder: the `workload` binary and other people's programs.
//!
//! A `Load` is killed, with everything it started, when it is dropped.

use std::{
    ffi::OsStr,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    standing,
    truth::Counters,
    workload::{kill_group, pid_of},
};

/// A running load.
#[derive(Debug)]
pub struct Load {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
    what: String,
    /// Threads or processes that belong to it beside its main thread.
    pub tids: Vec<u32>,
}

/// What a workload said at its end.
#[derive(Debug, Deserialize)]
pub struct Truth {
    /// Its main thread.
    pub tid: u32,
    /// How long it ran.
    pub seconds: f64,
    /// The kernel's counters of its main thread over that time.
    pub counters: Counters,
    /// What only this workload knows.
    pub own: Value,
}

impl Truth {
    /// A number that only this workload knows.
    pub fn number(&self, key: &str) -> Result<u64> {
        self.own[key]
            .as_u64()
            .with_context(|| format!("the workload did not report '{key}'"))
    }

    /// Counters of another task of the workload.
    pub fn counters_of(&self, key: &str) -> Result<Counters> {
        serde_json::from_value(self.own[key].clone())
            .with_context(|| format!("the workload did not report '{key}'"))
    }
}

#[derive(Deserialize)]
struct Ready {
    ready: u32,
    tids: Vec<u32>,
}

impl Load {
    /// Starts a workload and waits until it is ready. The line is split at spaces.
    pub fn workload(line: &str) -> Result<Self> {
        let mut command = Command::new(workload_binary()?);
        command
            .args(line.split_whitespace())
            .arg("--report")
            .stdout(Stdio::piped());
        let mut load = Self::spawn(command, format!("workload {line}"))?;
        load.output = load.child.stdout.take().map(BufReader::new);
        let first = load.next_line()?;
        let ready: Ready = serde_json::from_str(&first)
            .with_context(|| format!("{} did not say it is ready: '{first}'", load.what))?;
        ensure!(
            ready.ready == load.pid(),
            "{} runs under another pid",
            load.what
        );
        load.tids = ready.tids;
        Ok(load)
    }

    /// Starts another program, its output discarded.
    pub fn program<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self::spawn(command, program.to_owned())
    }

    fn spawn(mut command: Command, what: String) -> Result<Self> {
        command.stdin(Stdio::null());
        // Its group is dropped as a whole, with the children of a program.
        standing::as_load(&mut command);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {what}"))?;
        Ok(Self {
            child,
            output: None,
            what,
            tids: Vec::new(),
        })
    }

    /// Its process id, which is also its main thread's.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The kernel's counters of its main thread.
    pub fn counters(&self) -> Result<Counters> {
        Counters::of(self.pid())
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        rustix::process::kill_process(pid_of(self.pid())?, signal)
            .with_context(|| format!("cannot signal {}", self.what))
    }

    /// Whether it is still running.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Waits for the end of a workload and returns what it said.
    pub fn truth(mut self) -> Result<Truth> {
        let line = self.next_line()?;
        let truth = serde_json::from_str(&line)
            .with_context(|| format!("{} said '{line}' at its end", self.what))?;
        self.wait(Duration::from_secs(10))?;
        Ok(truth)
    }

    /// Waits for its end, at most so long.
    pub fn wait(&mut self, longest: Duration) -> Result<ExitStatus> {
        let began = Instant::now();
        while began.elapsed() < longest {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("{} did not end within {longest:?}", self.what)
    }

    fn next_line(&mut self) -> Result<String> {
        let output = self
            .output
            .as_mut()
            .with_context(|| format!("{} is mute", self.what))?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        ensure!(!line.is_empty(), "{} ended without a word", self.what);
        Ok(line)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // It may end by itself meanwhile, which is as good.
            drop(kill_group(self.pid()));
            drop(self.child.wait());
        }
    }
}

/// The `workload` binary: `WORKLOAD_BIN`, or beside the running test.
pub fn workload_binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("WORKLOAD_BIN") {
        return Ok(path.into());
    }
    let test = std::env::current_exe().context("cannot find this program")?;
    let found = test
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("workload"));
    let mut existing = found.filter(|path| path.is_file());
    existing
        .next()
        .with_context(|| format!("no `workload` beside {}", test.display()))
}

/// Whether a program is installed.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain([
            Path::new("/usr/sbin").to_owned(),
            Path::new("/sbin").to_owned(),
        ])
        .any(|folder| folder.join(program).is_file())
}
