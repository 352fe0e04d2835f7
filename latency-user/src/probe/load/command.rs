//! A load that is a command of the user's, with everything that it starts.
//!
//! Whatever of it loses its parent becomes a child of this companion, so that nothing gets away, not
//! even what leaves the process group.

use std::{
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{
        Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper,
        wait,
    },
};

use super::{Done, worker::cpu_time_ns};

/// How long a command may take to end in its own way.
const GRACE: Duration = Duration::from_secs(1);

/// How often to look whether all of it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A command that was started.
pub(super) struct Running {
    leader: Pid,
    /// Collects all that end, and gives the status of the command when none is left.
    collector: JoinHandle<Option<ExitStatus>>,
}

pub(super) fn start(words: &[String]) -> io::Result<Running> {
    let [program, arguments @ ..] = words else {
        return Err(io::Error::other("there is no command"));
    };
    set_child_subreaper(Some(getpid()))?;
    let child = Command::new(program)
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let leader = leader.ok_or_else(|| io::Error::other("it has no process id"))?;
    Ok(Running {
        leader,
        collector: thread::spawn(move || collect(leader)),
    })
}

impl Running {
    /// Ends the command and all that came of it.
    pub(super) fn stop(self) -> Done {
        // All that has ended by itself has ended early.
        let has_ended = self.collector.is_finished();
        // It may have ended meanwhile, which is as good; so below.
        kill_process_group(self.leader, Signal::TERM).unwrap_or_default();
        let began = Instant::now();
        while !self.collector.is_finished() {
            if began.elapsed() > GRACE {
                kill_children();
            }
            thread::sleep(LOOK);
        }
        let status = self.collector.join().ok().flatten();
        Done {
            cpu_ns: cpu_time_ns(),
            failed: status
                .filter(|_| has_ended)
                .map(|status| format!("it ended by itself with {status}")),
            ..Done::default()
        }
    }
}

/// Waits for every child until none is left.
fn collect(leader: Pid) -> Option<ExitStatus> {
    let mut status = None;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, how))) if pid == leader => {
                status = Some(ExitStatus::from_raw(how.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return status,
        }
    }
}

/// Kills the children of this process; theirs become ours and are killed the next time.
fn kill_children() {
    let us = getpid().as_raw_nonzero().get();
    let Ok(all) = procfs::process::all_processes() else {
        return;
    };
    let parent = |process: &procfs::process::Process| process.stat().ok().map(|stat| stat.ppid);
    for process in all.flatten() {
        if parent(&process) == Some(us)
            && let Some(pid) = Pid::from_raw(process.pid())
        {
            kill_process(pid, Signal::KILL).unwrap_or_default();
        }
    }
}
