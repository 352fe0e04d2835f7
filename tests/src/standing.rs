//! How the processes of a test stand among everything else on the machine.
//!
//! Each gets a session of its own: with automatic task groups the scheduler shares a CPU among
//! sessions, and a nice value counts within one only. The recorder stands above all others, beside
//! the loads that are pinned to CPU 1, so that a busy machine delays neither its start nor its end.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::Command,
};

use rustix::{process::Signal, thread::CpuSet};

/// Nice value of the recorder: above every load.
const RECORDER_NICE: i32 = -18;

/// Nice value of a session's task group; absent without automatic groups.
const AUTOGROUP: &str = "/proc/self/autogroup";

/// A load: a session of its own, and the end of its life with the thread that starts it.
pub(crate) fn as_load(command: &mut Command) {
    let prepare = || {
        rustix::process::setsid()?;
        die_with_parent()
    };
    // SAFETY: between fork and exec it makes system calls only and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// A recorder that starts no command: ahead of everything, on CPU 0.
pub(crate) fn as_recorder(command: &mut Command) {
    let prepare = || {
        rustix::process::setsid()?;
        rustix::process::setpriority_process(None, RECORDER_NICE)?;
        set_group_nice(RECORDER_NICE)?;
        let mut first = CpuSet::new();
        first.set(0);
        rustix::thread::sched_setaffinity(None, &first)?;
        die_with_parent()
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(prepare) };
}

fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// The nice value of the calling session as a whole. Allocates nothing.
pub(crate) fn set_group_nice(nice: i32) -> io::Result<()> {
    let mut file = match File::options().write(true).open(AUTOGROUP) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let mut text = [0_u8; 12];
    let length = {
        let mut rest = &mut text[..];
        write!(rest, "{nice}")?;
        12 - rest.len()
    };
    file.write_all(&text[..length])
}
