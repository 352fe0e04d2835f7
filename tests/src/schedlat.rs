//! Running the product as a user would: arguments in, documents, exit code and messages out.
//!
//! A recording that is still running when its value is dropped is killed.

use std::{
    ffi::{OsStr, OsString},
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::Value;

pub use crate::outcome::Outcome;
use crate::{
    report::Report,
    standing::{self, Urgent},
    workload::pid_of,
};

/// How long attaching may take: an emulated machine is slow, and its clock goes on where a busy host does
/// not run it.
const ATTACH_LIMIT: Duration = Duration::from_mins(10);
/// How long a recording may take to end once it has been asked to.
const END_LIMIT: Duration = Duration::from_mins(10);

/// A command line of schedlat.
#[derive(Clone, Debug)]
pub struct Schedlat {
    before: Vec<OsString>,
    args: Vec<OsString>,
    child: Vec<OsString>,
}

/// A recording that goes on.
#[derive(Debug)]
pub struct Recording {
    child: Child,
    lines: Receiver<(Instant, String)>,
    seen: Vec<(Instant, String)>,
    messages: Option<JoinHandle<String>>,
    began: Instant,
}

impl Schedlat {
    /// `schedlat record --format json`.
    #[must_use]
    pub fn record() -> Self {
        Self::command("record").arg("--format").arg("json")
    }

    /// `schedlat COMMAND`.
    #[must_use]
    pub fn command(command: &str) -> Self {
        Self {
            before: Vec::new(),
            args: vec![command.into()],
            child: Vec::new(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments, split at spaces.
    #[must_use]
    pub fn args(mut self, line: &str) -> Self {
        self.args
            .extend(line.split_whitespace().map(OsString::from));
        self
    }

    /// Observes a process.
    #[must_use]
    pub fn pid(self, pid: u32) -> Self {
        self.args(&format!("--pid {pid}"))
    }

    /// Observes the tasks of a name.
    #[must_use]
    pub fn comm(self, glob: &str) -> Self {
        self.arg("--comm").arg(glob)
    }

    /// Observes the tasks of a cgroup.
    #[must_use]
    pub fn cgroup(self, directory: &Path) -> Self {
        self.arg("--cgroup").arg(directory)
    }

    /// Ends by itself after so many seconds.
    #[must_use]
    pub fn lasting(self, seconds: f64) -> Self {
        self.arg("--for").arg(format!("{}ms", seconds * 1000.0))
    }

    /// Observes a command that schedlat starts; split at spaces.
    #[must_use]
    pub fn running(self, line: &str) -> Self {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.running_words(&words)
    }

    /// Observes a command that schedlat starts.
    #[must_use]
    pub fn running_words<S: AsRef<OsStr>>(mut self, words: &[S]) -> Self {
        self.child = words.iter().map(|word| word.as_ref().to_owned()).collect();
        self
    }

    /// Puts another program in front, such as `setpriv …`; split at spaces.
    #[must_use]
    pub fn under(mut self, line: &str) -> Self {
        self.before = line.split_whitespace().map(OsString::from).collect();
        self
    }

    /// Starts it and waits until it says that everything is attached.
    ///
    /// Without an interval of its own it gets one that never ends: only the first and the last
    /// document appear.
    pub fn start(self) -> Result<Recording> {
        let has_interval = self.args.iter().any(|arg| arg == "--interval");
        let this = if has_interval {
            self
        } else {
            self.args("--interval 1h")
        };
        let mut recording = this.spawn()?;
        let first = recording.next_line(ATTACH_LIMIT)?;
        let line: Value = serde_json::from_str(&first)
            .with_context(|| format!("the first line is no JSON: '{first}'"))?;
        ensure!(
            line["schema"] == "schedlat.record.start",
            "the first line is not the start line: '{first}'"
        );
        Ok(recording)
    }

    /// Runs it to its end.
    pub fn run(self) -> Result<Outcome> {
        self.spawn()?.finish()
    }

    /// Runs it to its end, requires success, and reads the report.
    pub fn report(self) -> Result<Report> {
        self.run()?.success()?.report()
    }

    /// Starts it without waiting for anything.
    pub fn spawn(self) -> Result<Recording> {
        let binary = binary()?;
        let has_child = !self.child.is_empty();
        let mut words = self.before;
        words.push(binary.into_os_string());
        words.extend(self.args);
        if has_child {
            words.push("--".into());
            words.extend(self.child);
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        if !has_child {
            return Recording::of(command);
        }
        // The command inherits how its recorder stands: as any load.
        standing::as_load(&mut command);
        Recording::begin(command)
    }
}

impl Recording {
    /// Runs any command that ends up in schedlat.
    pub fn of(mut command: Command) -> Result<Self> {
        standing::as_recorder(&mut command);
        Self::begin(command)
    }

    fn begin(mut command: Command) -> Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("no pipe for the output")?;
        let mut errors = child.stderr.take().context("no pipe for the messages")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            // The test waits for lines to arrive, and some tests time them.
            let _urgent = Urgent::now();
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        let messages = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What could be read before an error is what there is to show.
            drop(errors.read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        });
        Ok(Self {
            child,
            lines,
            seen: Vec::new(),
            messages: Some(messages),
            began,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        rustix::process::kill_process(pid_of(self.pid())?, signal).context("cannot signal schedlat")
    }

    /// The next line of its output.
    pub fn next_line(&mut self, longest: Duration) -> Result<String> {
        match self.lines.recv_timeout(longest) {
            Ok((at, line)) => {
                self.seen.push((at, line.clone()));
                Ok(line)
            }
            Err(RecvTimeoutError::Timeout) => bail!("schedlat was silent for {longest:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait()?;
                bail!("schedlat ended early, {status}: {}", self.take_messages())
            }
        }
    }

    /// Signals it and the command it runs, as a terminal does.
    pub fn signal_group(&self, signal: Signal) -> Result<()> {
        rustix::process::kill_process_group(pid_of(self.pid())?, signal)
            .context("cannot signal the group of schedlat")
    }

    /// Ends it as Ctrl-C does, requires success, and reads the final report.
    pub fn stop(self) -> Result<Report> {
        self.interrupt()?.success()?.report()
    }

    /// Ends it as Ctrl-C does.
    pub fn interrupt(self) -> Result<Outcome> {
        self.signal(Signal::INT)?;
        self.finish()
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Result<Outcome> {
        let deadline = Instant::now() + END_LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("schedlat did not end in {END_LIMIT:?}"),
            }
        }
        let status = self.child.wait()?;
        let took = self.began.elapsed();
        let messages = self.take_messages();
        Ok(Outcome {
            status,
            lines: std::mem::take(&mut self.seen),
            messages,
            took,
        })
    }

    fn take_messages(&mut self) -> String {
        self.messages
            .take()
            .and_then(|reader| reader.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // It may end by itself meanwhile, which is as good.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// The product: `SCHEDLAT_BIN`, or the release build of this workspace.
pub fn binary() -> Result<PathBuf> {
    let path = std::env::var_os("SCHEDLAT_BIN").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/schedlat"),
        PathBuf::from,
    );
    path.canonicalize().with_context(|| {
        format!(
            "no schedlat at {}; build it with `cargo build --release`",
            path.display()
        )
    })
}
