//! An observer in the background, from attached to detached.
//!
//! Promises: it observes when [`Recorder::start`] returns and has left nothing in the kernel when
//! [`Recorder::stop`] does; one that will not start or stop is an error, never a wrong figure.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::shell;

/// Compiling and verifying takes `bpftrace` seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Programs are attached one after the other: they are complete when none has come for this long.
const SETTLED: Duration = Duration::from_millis(400);

/// For putting back what an observer changes.
const LAST_WORDS: Duration = Duration::from_secs(5);

const POLL: Duration = Duration::from_millis(50);

/// A running observer, killed when dropped.
#[derive(Debug)]
pub(super) struct Recorder {
    child: Child,
    n_programs_before: usize,
}

impl Recorder {
    /// Starts `command` and waits until it observes; of one that loads no programs only time tells.
    pub(super) fn start(command: &[String], has_programs: bool) -> Result<Self> {
        let (program, arguments) = command.split_first().context("no command")?;
        let n_programs_before = n_bpf_programs()?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        let mut recorder = Self {
            child,
            n_programs_before,
        };
        recorder.wait_until_attached(has_programs)?;
        Ok(recorder)
    }

    fn wait_until_attached(&mut self, has_programs: bool) -> Result<()> {
        let started = Instant::now();
        let mut n_programs = self.n_programs_before;
        let mut changed = Instant::now();
        while started.elapsed() < PATIENCE {
            thread::sleep(POLL);
            if let Some(status) = self.child.try_wait().context("cannot watch it")? {
                bail!("it ended at once: {status}{}", self.last_words());
            }
            let now = n_bpf_programs()?;
            if now != n_programs {
                (n_programs, changed) = (now, Instant::now());
            }
            let observes = !has_programs || n_programs > self.n_programs_before;
            if observes && changed.elapsed() > SETTLED {
                return Ok(());
            }
        }
        bail!("it attached nothing within {} s", PATIENCE.as_secs())
    }

    /// What `measure` finds while `command` observes.
    pub(super) fn around(
        command: &[String],
        has_programs: bool,
        measure: impl FnOnce() -> Result<f64>,
    ) -> Result<f64> {
        let recorder = Self::start(command, has_programs).context("cannot start it")?;
        let measured = measure()?;
        recorder.stop().context("cannot stop it")?;
        Ok(measured)
    }

    /// The last line of what it said when it would not run.
    fn last_words(&mut self) -> String {
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr
            && stderr.read_to_string(&mut said).is_ok()
            && let Some(line) = said.lines().rfind(|line| !line.trim().is_empty())
        {
            return format!(": {}", line.trim());
        }
        String::new()
    }

    /// Interrupts it and waits until its programs are gone.
    pub(super) fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::INT).context("cannot interrupt it")?;
        let interrupted = Instant::now();
        while interrupted.elapsed() < PATIENCE {
            let ended = self.child.try_wait().context("cannot watch it")?.is_some();
            if ended && n_bpf_programs()? <= self.n_programs_before {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        bail!(
            "it, or a program of it, was still there {} s later",
            PATIENCE.as_secs()
        )
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // After a stop it has ended. After an error it gets the time to put back what it has changed.
        let is_told = kill_process(Pid::from_child(&self.child), Signal::INT).is_ok();
        let interrupted = Instant::now();
        while is_told
            && matches!(self.child.try_wait(), Ok(None))
            && interrupted.elapsed() < LAST_WORDS
        {
            thread::sleep(POLL);
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn n_bpf_programs() -> Result<usize> {
    let bpftool = shell::find_program("bpftool").context("bpftool is not installed")?;
    let listing = shell::capture(Command::new(bpftool).args(["--json", "prog", "show"]))?;
    let programs: Vec<serde_json::Value> =
        serde_json::from_str(&listing).context("cannot read what bpftool printed")?;
    Ok(programs.len())
}
