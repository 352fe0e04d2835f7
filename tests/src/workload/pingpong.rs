//! Workloads in which one task wakes another: through pipes, and by a futex.

use std::{
    os::fd::OwnedFd,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use rustix::{
    io::{Errno, read, write},
    pipe::pipe as new_pipe,
    thread::futex,
};
use serde_json::{Value, json};

use super::{Stage, process};
use crate::truth::{Counters, current_tid};

/// Tells the peer to go on.
const GO: u8 = 1;
/// Tells the peer to end.
const END: u8 = 0;

/// The second process, and how often it answers.
#[derive(Debug, Args)]
pub(super) struct Peer {
    /// CPU of the second process.
    #[arg(long)]
    peer_cpu: Option<usize>,
    /// Round trips a second; as many as there can be where none is given.
    #[arg(long)]
    per_second: Option<u64>,
}

/// The process that is woken.
#[derive(Debug, Args)]
pub(super) struct Reader {
    /// CPU of the reader.
    #[arg(long)]
    peer_cpu: Option<usize>,
    /// Cgroup that the reader joins.
    #[arg(long)]
    peer_cgroup: Option<PathBuf>,
}

/// Two processes hand a byte to and fro, as often as they can or so many times a second.
pub(super) fn pipe(stage: &mut Stage, duration: Duration, peer: &Peer) -> Result<Value> {
    let (request_in, request_out) = new_pipe()?;
    let (answer_in, answer_out) = new_pipe()?;
    let Peer {
        peer_cpu,
        per_second,
    } = *peer;
    let peer = process::fork(|| {
        if let Some(cpu) = peer_cpu {
            process::pin(cpu)?;
        }
        send(&answer_out, GO)?;
        while receive(&request_in)? == GO {
            send(&answer_out, GO)?;
        }
        Ok(())
    })?;
    receive(&answer_in)?;
    stage.ready(&[peer])?;
    let peer_baseline = Counters::of(peer)?;
    let began = Instant::now();
    let mut round_trips = 0_u64;
    while began.elapsed() < duration {
        if let Some(per_second) = per_second {
            keep_pace(began, round_trips, per_second);
        }
        send(&request_out, GO)?;
        receive(&answer_in)?;
        round_trips += 1;
    }
    let peer_counters = Counters::of(peer)?.since(&peer_baseline);
    send(&request_out, END)?;
    ensure!(process::wait_for(peer)?, "the peer of the ping-pong failed");
    Ok(json!({ "round_trips": round_trips, "peer": peer, "peer_counters": peer_counters }))
}

/// Sleeps until the next millisecond where as many round trips are done as are due by then.
fn keep_pace(began: Instant, round_trips: u64, per_second: u64) {
    let elapsed = began.elapsed();
    let due_at =
        Duration::from_nanos(round_trips.saturating_mul(1_000_000_000) / per_second.max(1));
    if due_at > elapsed + Duration::from_millis(1) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Wakes a reader `n` times, and lets it go to sleep in between.
pub(super) fn wake(
    stage: &mut Stage,
    n: u64,
    interval: Duration,
    reader: &Reader,
) -> Result<Value> {
    let (bytes_in, bytes_out) = new_pipe()?;
    let (ready_in, ready_out) = new_pipe()?;
    let peer = process::fork(|| {
        process::rename(b"wakee")?;
        if let Some(cpu) = reader.peer_cpu {
            process::pin(cpu)?;
        }
        if let Some(group) = &reader.peer_cgroup {
            process::join_cgroup(group)?;
        }
        send(&ready_out, GO)?;
        while receive(&bytes_in)? == GO {}
        Ok(())
    })?;
    receive(&ready_in)?;
    stage.ready(&[peer])?;
    // The recorder of the test attaches in this time.
    thread::sleep(Duration::from_secs(1));
    for _ in 0..n {
        send(&bytes_out, GO)?;
        thread::sleep(interval);
    }
    let peer_counters = Counters::of(peer)?;
    send(&bytes_out, END)?;
    ensure!(process::wait_for(peer)?, "the reader failed");
    Ok(json!({ "wakes": n, "peer": peer, "peer_counters": peer_counters }))
}

/// One thread is always about to sleep on a futex, the other wakes it at once.
pub(super) fn wake_the_running(stage: &mut Stage, duration: Duration) -> Result<Value> {
    let word = AtomicU32::new(0);
    let waiter_tid = AtomicU32::new(0);
    let is_over = AtomicBool::new(false);
    let sleeps = AtomicU64::new(0);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| -> Result<()> {
            waiter_tid.store(current_tid(), Ordering::Release);
            while !is_over.load(Ordering::Acquire) {
                let seen = word.load(Ordering::Acquire);
                match futex::wait(&word, futex::Flags::PRIVATE, seen, None) {
                    Ok(()) => _ = sleeps.fetch_add(1, Ordering::Relaxed),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(cause) => return Err(cause).context("cannot wait on the futex"),
                }
            }
            Ok(())
        });
        while waiter_tid.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        let outcome = wake_until(stage, duration, &word, waiter_tid.load(Ordering::Acquire));
        is_over.store(true, Ordering::Release);
        while !waiter.is_finished() {
            word.fetch_add(1, Ordering::Release);
            futex::wake(&word, futex::Flags::PRIVATE, 1)?;
        }
        waiter
            .join()
            .ok()
            .context("the waiting thread panicked")??;
        let mut own = outcome?;
        own["returns_from_wait"] = json!(sleeps.load(Ordering::Relaxed));
        Ok(own)
    })
}

fn wake_until(
    stage: &mut Stage,
    duration: Duration,
    word: &AtomicU32,
    waiter: u32,
) -> Result<Value> {
    stage.ready(&[waiter])?;
    let baseline = Counters::of(waiter)?;
    let began = Instant::now();
    let (mut wakes, mut woken) = (0_u64, 0_usize);
    while began.elapsed() < duration {
        word.fetch_add(1, Ordering::Release);
        woken += futex::wake(word, futex::Flags::PRIVATE, 1)?;
        wakes += 1;
    }
    let waiter_counters = Counters::of(waiter)?.since(&baseline);
    Ok(json!({
        "wakes": wakes, "woken": woken, "waiter": waiter, "waiter_counters": waiter_counters,
    }))
}

fn send(end: &OwnedFd, byte: u8) -> Result<()> {
    write(end, &[byte]).context("cannot write to the pipe")?;
    Ok(())
}

/// The next byte, or [`END`] at the end of the pipe.
fn receive(end: &OwnedFd) -> Result<u8> {
    let mut byte = [END];
    read(end, &mut byte).context("cannot read from the pipe")?;
    Ok(byte[0])
}
