//! Workloads of many tasks: children, threads, and enough forks to wrap the process ids.

use std::{
    ffi::c_void,
    mem::MaybeUninit,
    ptr::null_mut,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::{Stage, burn::spin, process};
use crate::truth::current_tid;

/// Stack of each sleeping thread: twenty thousand of them fit anywhere.
const STACK_BYTES: usize = 16 << 10;

pub(super) fn forks(
    stage: &mut Stage,
    n: u64,
    burn: Duration,
    kill_after: Option<Duration>,
) -> Result<Value> {
    stage.ready(&[])?;
    for _ in 0..n {
        let child = if burn.is_zero() {
            process::fork_and_forget()?
        } else {
            process::fork(|| {
                spin(burn);
                Ok(())
            })?
        };
        if let Some(after) = kill_after {
            thread::sleep(after);
            process::kill(child)?;
        }
        process::wait_for(child)?;
    }
    Ok(json!({ "forks": n }))
}

/// Forks until the process ids went down `n` times.
pub(super) fn wrap_pids(stage: &mut Stage, n: u64, most: u64) -> Result<Value> {
    stage.ready(&[])?;
    let (mut forks, mut wraps, mut last) = (0_u64, 0_u64, 0_u32);
    while wraps < n && forks < most {
        let child = process::fork_and_forget()?;
        process::wait_for(child)?;
        forks += 1;
        wraps += u64::from(child < last);
        last = child;
    }
    Ok(json!({ "forks": forks, "wraps": wraps }))
}

/// How many sleeps each thread of [`threads`] does, and how long they are.
static SLEEPS_EACH: AtomicU64 = AtomicU64::new(0);
static SLEEP_MS: AtomicU64 = AtomicU64::new(0);

/// Threads that sleep.
#[derive(Debug, Args)]
pub(super) struct Sleepers {
    /// How many.
    n: u64,
    /// How often each sleeps.
    #[arg(long, default_value_t = 40)]
    sleeps: u64,
    /// For how long.
    #[arg(long, default_value_t = 50)]
    sleep_ms: u64,
}

/// Starts threads with small stacks, each of which sleeps some times.
///
/// The standard library gives every thread an alternative signal stack as well; the two together
/// exceed the usual limit on mappings, hence the C call.
pub(super) fn threads(stage: &mut Stage, sleepers: &Sleepers) -> Result<Value> {
    let n = sleepers.n;
    SLEEPS_EACH.store(sleepers.sleeps, Ordering::Release);
    SLEEP_MS.store(sleepers.sleep_ms, Ordering::Release);
    stage.ready(&[])?;
    let mut handles = Vec::with_capacity(usize::try_from(n)?);
    let attributes = small_stack()?;
    for started in 0..n {
        let mut handle = MaybeUninit::<libc::pthread_t>::uninit();
        // SAFETY: the attributes were initialised, the body takes no argument, and the handle is
        // read only after success.
        let status = unsafe {
            libc::pthread_create(
                handle.as_mut_ptr(),
                &raw const attributes,
                sleeper,
                null_mut(),
            )
        };
        ensure!(
            status == 0,
            "cannot start thread {started} of {n}: error {status}"
        );
        // SAFETY: pthread_create succeeded and wrote it.
        handles.push(unsafe { handle.assume_init() });
    }
    for handle in handles {
        // SAFETY: each handle is a joinable thread that is joined once.
        let status = unsafe { libc::pthread_join(handle, null_mut()) };
        ensure!(status == 0, "cannot join a thread: error {status}");
    }
    Ok(json!({ "threads": n }))
}

fn small_stack() -> Result<libc::pthread_attr_t> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the call initialises what it is given.
    let status = unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    ensure!(status == 0, "cannot make thread attributes: error {status}");
    // SAFETY: initialised above.
    let mut attributes = unsafe { attributes.assume_init() };
    // SAFETY: the attributes are initialised and ours.
    let status = unsafe { libc::pthread_attr_setstacksize(&raw mut attributes, STACK_BYTES) };
    ensure!(
        status == 0,
        "cannot ask for a stack of {STACK_BYTES} bytes: error {status}"
    );
    Ok(attributes)
}

extern "C" fn sleeper(_: *mut c_void) -> *mut c_void {
    for _ in 0..SLEEPS_EACH.load(Ordering::Acquire) {
        thread::sleep(Duration::from_millis(SLEEP_MS.load(Ordering::Acquire)));
    }
    null_mut()
}

/// `n` spinning threads of one name.
pub(super) fn team(
    stage: &mut Stage,
    duration: Duration,
    n: u64,
    thread_name: &str,
) -> Result<Value> {
    let (tids, seen) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let mut members = Vec::new();
        for _ in 0..n {
            let tids = tids.clone();
            let member = move || -> Result<()> {
                process::rename(thread_name.as_bytes())?;
                tids.send(current_tid())
                    .context("the main thread is gone")?;
                // The list below is complete when every sender is gone.
                drop(tids);
                spin(duration);
                Ok(())
            };
            members.push(scope.spawn(member));
        }
        drop(tids);
        let tids: Vec<u32> = seen.iter().collect();
        stage.ready(&tids)?;
        for member in members {
            member.join().ok().context("a thread panicked")??;
        }
        Ok(json!({ "tids": tids }))
    })
}
