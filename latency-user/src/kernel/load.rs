//! Loading the programs: the kernel's verifier takes most of the time until a recording begins.
//!
//! It takes several programs at a time, so they are loaded by several threads. Attaching, whose order
//! matters, comes after all of them and is left to `programs`.

use std::{
    panic::resume_unwind,
    sync::{Mutex, PoisonError},
    thread,
};

use aya::{
    Btf, Ebpf,
    programs::{BtfTracePoint, Iter, Program},
};

use super::programs::{Attachment, SELECT_TASKS, WRITE_ROWS, refusal};
use crate::Error;

/// More would wait for the slowest program all the same.
const MAX_THREADS: usize = 4;

/// What takes the verifier longest, and so comes first.
const SLOWEST: [&str; 3] = ["sched_switch", WRITE_ROWS, "sched_migrate_task"];

/// A program and what it is for.
struct Job<'a> {
    program: &'a mut Program,
    name: &'a str,
    tracepoint: Option<&'static str>,
}

/// Loads the programs of these attachments, and the iterators.
pub(super) fn load(
    ebpf: &mut Ebpf,
    btf: &Btf,
    kernel: &str,
    attachments: &[Attachment],
) -> Result<(), Error> {
    let mut jobs: Vec<_> = ebpf
        .programs_mut()
        .filter_map(|(name, program)| {
            let tracepoint = attachments.iter().find(|needed| needed.program == name);
            let is_needed = tracepoint.is_some() || name == SELECT_TASKS || name == WRITE_ROWS;
            is_needed.then_some(Job {
                program,
                name,
                tracepoint: tracepoint.map(|needed| needed.tracepoint),
            })
        })
        .collect();
    // They are taken from the end.
    jobs.sort_by_key(|job| {
        let place = SLOWEST.iter().position(|slow| *slow == job.name);
        (std::cmp::Reverse(place.unwrap_or(SLOWEST.len())), job.name)
    });
    let n_threads = thread::available_parallelism().map_or(1, usize::from);
    let jobs = Mutex::new(jobs);
    let work = || {
        while let Some(job) = next(&jobs) {
            job.load(btf, kernel)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..n_threads.min(MAX_THREADS))
            .map(|_| scope.spawn(work))
            .collect();
        let mine = work();
        let theirs = others
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        theirs.fold(mine, Result::and)
    })
}

fn next<'a>(jobs: &Mutex<Vec<Job<'a>>>) -> Option<Job<'a>> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

impl Job<'_> {
    fn load(self, btf: &Btf, kernel: &str) -> Result<(), Error> {
        let name = self.name;
        let loaded = if let Some(tracepoint) = self.tracepoint {
            let program: Result<&mut BtfTracePoint, _> = self.program.try_into();
            program.and_then(|program| program.load(tracepoint, btf))
        } else {
            let program: Result<&mut Iter, _> = self.program.try_into();
            program.and_then(|program| program.load("task", btf))
        };
        loaded.map_err(|error| refusal(kernel, name, error))
    }
}
