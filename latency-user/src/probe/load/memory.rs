//! The load `memory`: pages mapped, touched, copied and unmapped again.
//!
//! So it takes page faults and the memory's bandwidth, and interrupts other CPUs to unmap. It never
//! holds more than an eighth of what is available.

use std::{hint::black_box, io};

use procfs::Current as _;

use super::worker::{Job, Meter};

/// The most that a worker holds.
const MOST_BYTES: usize = 64 << 20;

const PAGE: usize = 4096;

/// How much is copied between two looks at the meter.
const N_COPIED: usize = 4 << 20;

pub(super) fn jobs(n_cpus: usize) -> io::Result<Vec<Job>> {
    let memory = procfs::Meminfo::current().map_err(io::Error::other)?;
    let available = usize::try_from(memory.mem_available.unwrap_or(memory.mem_free)).unwrap_or(0);
    let n_bytes = MOST_BYTES.min(available / 8 / n_cpus.max(1));
    if n_bytes < 2 * N_COPIED {
        return Err(io::Error::other("too little memory is available"));
    }
    Ok(vec![Box::new(move |meter: &Meter| {
        while meter.goes_on() {
            once(meter, n_bytes);
        }
        Ok(())
    })])
}

/// Fills one mapping. An allocation of this size is one, and freeing it unmaps it.
fn once(meter: &Meter, n_bytes: usize) {
    let mut bytes = vec![0_u8; n_bytes];
    for chunk in bytes.chunks_mut(N_COPIED) {
        if !meter.goes_on() {
            return;
        }
        for page in chunk.chunks_mut(PAGE) {
            page[0] = 1;
        }
        let half = chunk.len() / 2;
        chunk.copy_within(..half, half);
        black_box(&chunk);
        meter.count(chunk.len());
    }
}
