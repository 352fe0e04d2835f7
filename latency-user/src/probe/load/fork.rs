//! The load `fork`: processes that are forked, execute this program and end at once, one after the
//! other on each CPU.

use std::{
    io,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::{
    COMPANION,
    worker::{Job, Meter},
};

/// What such a process is told to do.
pub(super) const NOTHING: &str = "nothing";

pub(super) fn jobs() -> Vec<Job> {
    vec![Box::new(|meter: &Meter| {
        let mut command = Command::new("/proc/self/exe");
        command
            .args([COMPANION, NOTHING])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // With something to do between fork and exec the standard library forks for real.
        let prepare = || Ok(set_parent_process_death_signal(Some(Signal::KILL))?);
        // SAFETY: it makes a system call and allocates nothing.
        unsafe { command.pre_exec(prepare) };
        while meter.goes_on() {
            let status = command.status()?;
            if !status.success() {
                return Err(io::Error::other(format!("a process ended with {status}")));
            }
            meter.count(0);
        }
        Ok(())
    })]
}
