//! What observing adds to a switch beside a crowd of tasks that exist and sleep.
//!
//! Promises: a bare and an observed run beside the same crowd, one after the other, in every round; the
//! crowd is gone when the measurement is. Leaves the judgement to whoever reads the table.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use rustix::thread::gettid;

use super::recorder::Recorder;
use super::verdict::quantile;
use super::{Arguments, ping_pong};
use crate::release;

/// Tasks beside the ping-pong; a thread has four mappings, of which a process may have 65,530.
const SIZES: [usize; 5] = [10, 100, 1_000, 10_000, 15_000];

/// It does nothing but sleep.
const STACK_BYTES: usize = 16 * 1024;

/// Threads that sleep until it is dropped.
struct Crowd {
    is_over: Arc<(Mutex<bool>, Condvar)>,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn gather(n: usize) -> Result<Self> {
        let mut crowd = Self {
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..n {
            let is_over = Arc::clone(&crowd.is_over);
            let sleeper = thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn(move || {
                    let (flag, changed) = &*is_over;
                    let flag = flag.lock().unwrap_or_else(PoisonError::into_inner);
                    drop(changed.wait_while(flag, |is_over| !*is_over));
                });
            crowd
                .threads
                .push(sleeper.context("cannot start a thread that sleeps")?);
        }
        Ok(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let (flag, changed) = &*self.is_over;
        *flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

/// A row of the table: a crowd, how it is observed, and what that added in each round.
struct Point {
    n_tasks: usize,
    observed: &'static str,
    command: Vec<String>,
    added: Vec<f64>,
}

/// Measures the default beside each crowd, and with one task of the largest selected; prints a table.
pub(super) fn measure(arguments: &Arguments, cpu: usize) -> Result<()> {
    let mut points = points()?;
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        for point in &mut points {
            let crowd = Crowd::gather(point.n_tasks)?;
            let bare = ping_pong(cpu, arguments.loops)?;
            let recorder = Recorder::start(&point.command)?;
            let observed = ping_pong(cpu, arguments.loops)?;
            recorder.stop()?;
            point.added.push(observed - bare);
            drop(crowd);
        }
    }
    print!("{}", table(&points));
    Ok(())
}

fn points() -> Result<Vec<Point>> {
    let schedlat = release::build()?.schedlat.display().to_string();
    let command = |words: &[&str]| {
        let all = [&[schedlat.as_str(), "record"], words].concat();
        all.into_iter().map(str::to_owned).collect()
    };
    let point = |n_tasks, observed, words: &[&str]| Point {
        n_tasks,
        observed,
        command: command(words),
        added: Vec::new(),
    };
    let one = gettid().as_raw_nonzero().to_string();
    let largest = SIZES[SIZES.len() - 1];
    let all = SIZES.into_iter().map(|n| point(n, "all", &[]));
    let one = point(largest, "one", &["--tid", &one]);
    Ok(all.chain([one]).collect())
}

/// Markdown, to be kept as it is.
fn table(points: &[Point]) -> String {
    let base = points
        .first()
        .map_or(0.0, |point| quantile(&point.added, 0.5));
    let rows = points.iter().map(|point| {
        let [low, added, high] = [0.25, 0.5, 0.75].map(|q| quantile(&point.added, q));
        format!(
            "| {} | {} | {added:.3} | {low:.3}..{high:.3} | {:.2} |\n",
            point.n_tasks,
            point.observed,
            added / base
        )
    });
    let head = "| sleeping tasks | measured | added, µs/op | quartiles | of the first row |\n\
                | --- | --- | --- | --- | --- |\n";
    std::iter::once(head.to_owned()).chain(rows).collect()
}
