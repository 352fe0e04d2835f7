//! How the processes of a test stand among everything else on the machine.
//!
//! With automatic task groups the scheduler shares a CPU among sessions, and a nice value counts
//! within one only. So the tests and their loads have a session of their own that is preferred to
//! others, and the recorder has another, ahead of the loads: a busy machine delays neither. Loads
//! share one session, since two of them must compete as tasks, not as groups.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::Command,
    sync::Once,
};

use rustix::{process::Signal, thread::CpuSet};

/// Nice value of the recorder and its session.
const RECORDER_NICE: i32 = -18;

/// Nice value of the session of tests and loads.
const LOADS_NICE: i32 = -10;

/// Nice value of a session's task group; absent without automatic groups.
const AUTOGROUP: &str = "/proc/self/autogroup";

/// Leaves the session of whoever runs the tests, once.
///
/// A process that a shell started by itself leads a group and cannot leave; it then competes as part
/// of the shell's session.
fn leave_session() {
    static LEFT: Once = Once::new();
    LEFT.call_once(|| {
        // Ctrl-C no longer reaches this process: it ends with the one that started it.
        let left = rustix::process::setsid()
            .map_err(io::Error::from)
            .and_then(|_| die_with_parent())
            .and_then(|()| set_group_nice(LOADS_NICE));
        // Without it the tests are more easily disturbed, which they notice where it matters.
        drop(left);
    });
}

/// A load: a process group of its own, and the end of its life with the thread that starts it.
pub(crate) fn as_load(command: &mut Command) {
    leave_session();
    command.process_group(0);
    let prepare = || {
        obey_interrupts();
        die_with_parent()
    };
    // SAFETY: between fork and exec it makes system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// A recorder that starts no command: ahead of everything, on CPU 0.
pub(crate) fn as_recorder(command: &mut Command) {
    leave_session();
    let prepare = || {
        obey_interrupts();
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

/// Puts the calling thread ahead of everything, for a moment in which time matters: until the value
/// is dropped. What it starts meanwhile stands as anything else.
#[derive(Debug)]
pub(crate) struct Urgent(());

impl Urgent {
    pub(crate) fn now() -> Self {
        // Without the right to it the moment takes longer, which the caller measures.
        set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1);
        Self(())
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        set_policy(libc::SCHED_OTHER, 0);
    }
}

fn set_policy(policy: i32, sched_priority: i32) {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the parameters live across the call, and 0 names the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
}

/// A shell has its background jobs ignore Ctrl-C, and whoever they start would: a signal that comes before
/// the handlers exist would be lost.
fn obey_interrupts() {
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
}

fn die_with_parent() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(())
}

/// The nice value of the calling session as a whole. Allocates nothing.
fn set_group_nice(nice: i32) -> io::Result<()> {
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
