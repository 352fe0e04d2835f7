//! The command that is recorded: found before anything is attached, followed from its first instruction.

use std::{
    env,
    ffi::OsString,
    io,
    os::{
        fd::AsFd as _,
        unix::{ffi::OsStrExt as _, fs::PermissionsExt as _, process::ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::{
    net::unix::pipe::Receiver,
    process::{Child as Process, Command},
};

use crate::{Error, kernel::Kernel, tasks::own_tid};

/// Where what a command prints goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutput {
    /// Where ours goes.
    Ours,
    /// To our standard error, so that it does not mix with a report.
    Errors,
    /// Nowhere, but for what it says on its standard error.
    Nowhere,
    /// Into a pipe that we read.
    Captured,
}

/// What a command prints, on both of its outputs.
pub type CommandReader = Receiver;

/// A running command.
#[derive(Debug)]
pub struct Child {
    process: Process,
    started_at: Instant,
    output: Option<CommandReader>,
}

impl Child {
    /// Checks that a command can be run.
    pub fn check(command: &[OsString]) -> Result<(), Error> {
        let Some(program) = command.first() else {
            return Ok(());
        };
        let failed = |source| Error::Command {
            command: program.to_string_lossy().into_owned(),
            source,
        };
        let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
            vec![program.into()]
        } else {
            // Without a PATH the C library looks there.
            let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
            env::split_paths(&path)
                .map(|directory| directory.join(program))
                .collect()
        };
        if candidates.iter().any(|path| is_executable(path)) {
            Ok(())
        } else if candidates.iter().any(|path| path.exists()) {
            Err(failed(io::ErrorKind::PermissionDenied.into()))
        } else {
            Err(failed(io::ErrorKind::NotFound.into()))
        }
    }

    /// Runs it. The kernel side follows what this thread forks, so the very first instruction counts.
    pub(super) fn spawn(
        command: &[OsString],
        output: CommandOutput,
        kernel: &mut Kernel,
    ) -> Result<Self, Error> {
        let [program, arguments @ ..] = command else {
            return Err(Error::Setup("no command was given".into()));
        };
        let mut command = Command::new(program);
        let reader = direct(command.args(arguments), output)
            .map_err(|error| Error::Setup(format!("the command's output: {error}")))?;
        kernel.follow_spawner(own_tid())?;
        let started_at = Instant::now();
        let spawned = command.spawn();
        kernel.follow_spawner(0)?;
        let process = spawned.map_err(|source| Error::Command {
            command: program.to_string_lossy().into_owned(),
            source,
        })?;
        Ok(Self {
            process,
            started_at,
            output: reader,
        })
    }

    /// Its process id, until it has ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// When it was about to be started.
    #[must_use]
    pub const fn started_at(&self) -> Instant {
        self.started_at
    }

    /// What it prints, once, where that is captured.
    pub fn take_output(&mut self) -> Option<CommandReader> {
        self.output.take()
    }

    /// Waits for its end.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Passes SIGTERM on.
    pub fn terminate(&self) {
        if let Some(pid) = self.process.id() {
            terminate(pid);
        }
    }
}

impl Drop for Child {
    /// A command that nobody will wait for, because its recording failed, is asked to end.
    fn drop(&mut self) {
        self.terminate();
    }
}

/// Asks a process to end.
pub fn terminate(pid: u32) {
    if let Some(pid) = pid_of(pid) {
        // It may just have ended by itself.
        kill_process(pid, Signal::TERM).unwrap_or_default();
    }
}

/// Signals a process group by its leader.
pub fn signal_group(leader: u32, signal: Signal) {
    if let Some(leader) = pid_of(leader) {
        // It may just have ended by itself.
        kill_process_group(leader, signal).unwrap_or_default();
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Directs what a command prints; what is left to read for us.
fn direct(command: &mut Command, output: CommandOutput) -> io::Result<Option<CommandReader>> {
    match output {
        CommandOutput::Ours => {}
        CommandOutput::Errors => {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        CommandOutput::Nowhere => {
            command.stdout(Stdio::null());
        }
        CommandOutput::Captured => {
            let (reader, writer) = io::pipe()?;
            command.stdout(writer.try_clone()?).stderr(writer);
            rustix::io::ioctl_fionbio(&reader, true)?;
            return Receiver::from_owned_fd(reader.into()).map(Some);
        }
    }
    Ok(None)
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// The exit code that passes a status on: its own, or 128 plus the signal, as shells do.
#[must_use]
pub fn status_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
