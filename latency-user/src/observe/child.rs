//! The command that is recorded: found before anything is attached, followed from its first instruction.

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _, process::ExitStatusExt as _},
    path::{Path, PathBuf},
    process::ExitStatus,
};

use tokio::process::{Child as Process, Command};

use crate::{Error, kernel::Kernel};

/// A running command.
#[derive(Debug)]
pub struct Child {
    process: Process,
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
    pub(super) fn spawn(command: &[OsString], kernel: &mut Kernel) -> Result<Self, Error> {
        let [program, arguments @ ..] = command else {
            return Err(Error::Setup("no command was given".into()));
        };
        kernel.follow_spawner(
            rustix::thread::gettid()
                .as_raw_nonzero()
                .get()
                .unsigned_abs(),
        )?;
        let spawned = Command::new(program).args(arguments).spawn();
        kernel.follow_spawner(0)?;
        let process = spawned.map_err(|source| Error::Command {
            command: program.to_string_lossy().into_owned(),
            source,
        })?;
        Ok(Self { process })
    }

    /// Waits for its end.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Passes SIGTERM on.
    pub fn terminate(&self) {
        let pid = self.process.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // It may just have ended by itself.
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap_or_default();
        }
    }
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
