//! Setting up a process: its parent, its name, CPU, policy and cgroup, and its children.
//!
//! The only part of the workloads that calls libc itself.

use std::{ffi::CString, fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail};
use rustix::{
    process::{Pid, Signal, WaitOptions},
    thread::CpuSet,
};

/// No workload outlives this, whatever happens to it.
const LONGEST_LIFE: Duration = Duration::from_mins(5);

/// Makes the process die with the thread that started it, and in any case after five minutes.
pub(crate) fn bind_to_parent() -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let seconds = u32::try_from(LONGEST_LIFE.as_secs())?;
    // SAFETY: alarm takes a number and touches no memory of ours.
    let _earlier = unsafe { libc::alarm(seconds) };
    Ok(())
}

/// Names the calling thread; the kernel keeps 15 bytes.
pub(crate) fn rename(name: &[u8]) -> Result<()> {
    let name = CString::new(name).context("a name cannot hold a NUL byte")?;
    rustix::thread::set_name(&name).context("cannot set the name")
}

/// Pins the calling thread.
pub(crate) fn pin(cpu: usize) -> Result<()> {
    set_affinity(None, &[cpu])
}

/// Allows a thread (the caller when `None`) only these CPUs.
pub fn set_affinity(tid: Option<u32>, cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    let pid = tid.map(pid_of).transpose()?;
    rustix::thread::sched_setaffinity(pid, &set)
        .with_context(|| format!("cannot pin {tid:?} to CPUs {cpus:?}"))
}

/// Puts the calling thread under `SCHED_FIFO`.
pub(crate) fn become_fifo(priority: i32) -> Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: the parameters live across the call, and 0 names the calling thread.
    let status = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if status != 0 {
        let cause = std::io::Error::last_os_error();
        return Err(cause).with_context(|| format!("cannot become FIFO {priority}"));
    }
    Ok(())
}

/// Moves the process into a cgroup, v1 or v2.
pub(crate) fn join_cgroup(directory: &Path) -> Result<()> {
    let file = directory.join("cgroup.procs");
    fs::write(&file, "0").with_context(|| format!("cannot join {}", file.display()))
}

/// Forks; the child runs `body`, exits with 0 when that is `Ok`, and returns nothing here.
///
/// Call it only while the process has a single thread.
pub(crate) fn fork(body: impl FnOnce() -> Result<()>) -> Result<u32> {
    // SAFETY: the process has one thread, so the child may do what any program may.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(std::io::Error::last_os_error()).context("cannot fork"),
        0 => {
            let status = i32::from(bind_to_parent().and_then(|()| body()).is_err());
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(status) }
        }
        child => Ok(child.unsigned_abs()),
    }
}

/// Forks a child that ends at once: the shortest life there is.
pub(crate) fn fork_and_forget() -> Result<u32> {
    // SAFETY: the child only calls _exit.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(std::io::Error::last_os_error()).context("cannot fork"),
        // SAFETY: ends the child without running the parent's destructors.
        0 => unsafe { libc::_exit(0) },
        child => Ok(child.unsigned_abs()),
    }
}

/// Ends the calling thread alone, even where it is the first of its process.
pub(crate) fn end_this_thread() -> ! {
    // SAFETY: nothing of this thread is used by others, and it does not come back from the call.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("a thread that has ended")
}

/// Waits for a child; true when it exited with 0.
pub(crate) fn wait_for(child: u32) -> Result<bool> {
    let Some((_, status)) = rustix::process::waitpid(Some(pid_of(child)?), WaitOptions::empty())?
    else {
        bail!("child {child} did not end");
    };
    Ok(status.exit_status() == Some(0))
}

/// Kills a child outright.
pub(crate) fn kill(child: u32) -> Result<()> {
    rustix::process::kill_process(pid_of(child)?, Signal::KILL)
        .with_context(|| format!("cannot kill {child}"))
}

/// Kills a process group outright.
pub(crate) fn kill_group(leader: u32) -> Result<()> {
    rustix::process::kill_process_group(pid_of(leader)?, Signal::KILL)
        .with_context(|| format!("cannot kill the group of {leader}"))
}

/// A process or thread id in rustix's form.
pub(crate) fn pid_of(id: u32) -> Result<Pid> {
    Pid::from_raw(i32::try_from(id)?).with_context(|| format!("{id} is no process id"))
}
