//! What the two ends do: hand a token to and fro, or pass blocks in one direction.
//!
//! The loops do nothing else but read the clock once a turn, which takes some 30 ns.

use std::io;

use nix::sys::resource::{UsageWho, getrusage};

use super::{
    Length, OwnSwitches, Run, Side,
    transport::{END, End, GO, MARK},
};
use crate::{analysis::Distribution, host::monotonic_ns as now_ns, probe::Stop};

/// As lmbench has it: what is written at once.
pub(super) const BLOCK: usize = 64 << 10;

/// No round trip is longer, as percentiles go.
const LONGEST_NS: u64 = 60_000_000_000;

/// Hands a token to the other end and waits for its return, again and again.
pub(super) fn ask(end: &End, length: Length, stop: &Stop) -> io::Result<Side> {
    let mut runs = Vec::with_capacity(length.n_runs as usize);
    let mut round_trips = Distribution::with_room_for(LONGEST_NS);
    let mut asking = || {
        while runs.len() < runs.capacity() && !stop.is_asked() {
            let began = now_ns();
            let mut run = Run::default();
            let mut last = began;
            while last - began < length.run_ns && !stop.is_asked() {
                end.send(GO)?;
                if end.receive()? != GO {
                    return Err(gone());
                }
                let now = now_ns();
                round_trips.record((now - last).cast_signed());
                last = now;
                run.n_round_trips += 1;
            }
            run.ns = last - began;
            runs.push(run);
        }
        Ok(())
    };
    let before = own_switches()?;
    let result = asking();
    // Else the other one would wait for ever.
    end.send(END)?;
    result?;
    Ok(Side {
        runs,
        round_trips,
        switches: own_switches()?.since(before),
        n_ipis: None,
    })
}

/// Returns each token, until the last one.
pub(super) fn answer(end: &End) -> io::Result<Side> {
    let before = own_switches()?;
    let answering = || {
        while end.receive()? == GO {
            end.send(GO)?;
        }
        Ok(())
    };
    let result = answering();
    let after = own_switches()?;
    if result.is_err() {
        end.send(END)?;
    }
    result.map(|()| Side {
        switches: after.since(before),
        ..Side::default()
    })
}

/// Writes blocks; each run ends when the other end has read all of them.
pub(super) fn pour(end: &End, length: Length, stop: &Stop) -> io::Result<Side> {
    let mut block = vec![0_u8; BLOCK];
    let mut runs = Vec::with_capacity(length.n_runs as usize);
    let before = own_switches()?;
    while runs.len() < runs.capacity() && !stop.is_asked() {
        let began = now_ns();
        let mut run = Run::default();
        while now_ns() - began < length.run_ns && !stop.is_asked() {
            end.write_all(&block)?;
            run.n_bytes += BLOCK as u64;
        }
        block[BLOCK - 1] = MARK;
        end.write_all(&block)?;
        if end.receive()? != MARK {
            return Err(gone());
        }
        run.n_bytes += BLOCK as u64;
        run.ns = now_ns() - began;
        block[BLOCK - 1] = 0;
        runs.push(run);
    }
    block[BLOCK - 1] = END;
    end.write_all(&block)?;
    Ok(Side {
        runs,
        switches: own_switches()?.since(before),
        ..Side::default()
    })
}

/// Reads blocks, and acknowledges the last one of each run. An end that is dropped wakes the other.
pub(super) fn drain(end: &End) -> io::Result<Side> {
    let mut block = vec![0_u8; BLOCK];
    let mut n_bytes = 0;
    let before = own_switches()?;
    loop {
        let n_read = end.read(&mut block)?;
        n_bytes += n_read;
        let is_block = n_read > 0 && n_bytes.is_multiple_of(BLOCK);
        match block[n_read.saturating_sub(1)] {
            MARK if is_block => end.send(MARK)?,
            END if is_block => break,
            _ if n_read == 0 => break,
            _ => {}
        }
    }
    Ok(Side {
        switches: own_switches()?.since(before),
        ..Side::default()
    })
}

fn gone() -> io::Error {
    io::Error::other("the other end is gone")
}

/// The kernel's count of the calling thread's switches.
fn own_switches() -> io::Result<OwnSwitches> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    let count = |switches: i64| u64::try_from(switches).unwrap_or(0);
    Ok(OwnSwitches {
        voluntary: count(usage.voluntary_context_switches()),
        involuntary: count(usage.involuntary_context_switches()),
    })
}
