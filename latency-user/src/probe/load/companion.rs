//! A process of ours that keeps something up for as long as we live.
//!
//! It is this program again. Its standard input is a pipe that only we hold open, so it learns of our
//! end however that comes about, by a signal that cannot be caught too, and ends its work in order.
//! Ctrl-C does not reach it, since it is in a process group of its own.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{COMPANION, Done};

/// How long it may take to end: it waits for a slow disk, or for all CPUs to take the old preemption
/// model, and one that is killed leaves the new one behind.
const END_LIMIT: Duration = Duration::from_mins(1);

/// How often to look whether it has ended.
const LOOK: Duration = Duration::from_millis(2);

/// What a companion says, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The work goes on.
    Ready,
    /// It cannot be done, for this reason.
    Failed(String),
    /// It has ended.
    Done(Done),
}

/// A companion that runs.
#[derive(Debug)]
pub(in crate::probe) struct Companion {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Companion {
    /// Starts one and returns when it is at work; else says why it is not.
    pub(in crate::probe) fn start(arguments: &[String]) -> Result<Self, String> {
        let spawned = Command::new("/proc/self/exe")
            .arg(COMPANION)
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut process = spawned.map_err(|cause| format!("it cannot be started: {cause}"))?;
        let output = process.stdout.take().ok_or("it has no output")?;
        let mut this = Self {
            process,
            output: BufReader::new(output),
        };
        let mut line = String::new();
        match this.output.read_line(&mut line) {
            Ok(_) => {}
            Err(cause) => return Err(format!("it cannot be heard: {cause}")),
        }
        match serde_json::from_str(&line) {
            Ok(Message::Ready) => Ok(this),
            Ok(Message::Failed(why)) => Err(why),
            Ok(Message::Done(_)) | Err(_) => Err("it ended at once".into()),
        }
    }

    /// Its process id.
    pub(in crate::probe) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Ends it and returns what it did; nothing where it could not say so.
    pub(in crate::probe) fn stop(mut self) -> Option<Done> {
        self.end();
        let mut words = String::new();
        self.output.read_to_string(&mut words).ok()?;
        match serde_json::from_str(words.trim_end()) {
            Ok(Message::Done(done)) => Some(done),
            _ => None,
        }
    }

    /// Asks it to end, and waits for that.
    fn end(&mut self) {
        drop(self.process.stdin.take());
        let began = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) {
            if began.elapsed() > END_LIMIT {
                // It may just have ended, which is as good.
                self.process.kill().unwrap_or_default();
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.end();
    }
}
