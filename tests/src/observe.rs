//! A recording of some loads, with the kernel's counters of each read just around it.
//!
//! The two cannot be read at one instant. How far they lie apart is measured, and a recording whose
//! edges a busy machine has made too long is repeated: the comparison would say nothing.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, bail};

use crate::{
    load::Load,
    report::{Report, Row},
    schedlat::Schedlat,
    truth::{Counters, monotonic, nanos},
};

/// Time that only the recording or only the counters may cover.
const LONGEST_EDGES: Duration = Duration::from_millis(4);

/// Attempts before the machine is declared too busy.
const ATTEMPTS: u32 = 8;

/// A report and the ground truth of the same time.
#[derive(Debug)]
pub struct Observed {
    /// What schedlat says.
    pub report: Report,
    /// Growth of the kernel's counters, by thread, in the order of the loads.
    pub truth: Vec<(u32, Counters)>,
    /// Time that only the recording covers, before and after.
    pub edges: Duration,
}

impl Observed {
    /// Records the loads and nothing else.
    pub fn of(loads: &[&Load], duration: Duration) -> Result<Self> {
        Self::during(loads, || {
            thread::sleep(duration);
            Ok(())
        })
    }

    /// Records the loads where time means nothing: in an emulated machine edges are long.
    pub fn roughly(loads: &[&Load], duration: Duration) -> Result<Self> {
        let act = || {
            thread::sleep(duration);
            Ok(())
        };
        Self::attempt(loads, act)
    }

    /// Records the loads while `act` runs.
    pub fn during(loads: &[&Load], act: impl Fn() -> Result<()>) -> Result<Self> {
        let mut edges = Duration::ZERO;
        for _ in 0..ATTEMPTS {
            let observed = Self::attempt(loads, &act)?;
            if observed.edges <= LONGEST_EDGES {
                return Ok(observed);
            }
            edges = observed.edges;
        }
        bail!(
            "the machine is too busy: reading the counters and recording lay {edges:?} apart in \
             the last of {ATTEMPTS} attempts"
        )
    }

    fn attempt(loads: &[&Load], act: impl Fn() -> Result<()>) -> Result<Self> {
        let mut recorder = Schedlat::record();
        for load in loads {
            recorder = recorder.pid(load.pid());
            for tid in &load.tids {
                recorder = recorder.args(&format!("--tid {tid}"));
            }
        }
        let tids: Vec<u32> = loads.iter().flat_map(|load| tasks_of(load)).collect();
        let read =
            || -> Result<Vec<Counters>> { tids.iter().map(|&tid| Counters::of(tid)).collect() };
        let recording = recorder.start()?;
        let began = monotonic();
        let before = read()?;
        act()?;
        let after = read()?;
        let ended = monotonic();
        let report = recording.stop()?;
        let edges = report
            .window_ns()
            .abs_diff(nanos(ended.saturating_sub(began)));
        let both = after.iter().zip(&before);
        let growth: Vec<_> = both.map(|(after, before)| after.since(before)).collect();
        Ok(Self {
            report,
            truth: tids.into_iter().zip(growth).collect(),
            edges: Duration::from_nanos(edges),
        })
    }

    /// Each thread's row beside its ground truth.
    pub fn pairs(&self) -> Result<Vec<(&Row, &Counters)>> {
        self.truth
            .iter()
            .map(|(tid, truth)| Ok((self.report.task(*tid)?, truth)))
            .collect()
    }

    /// The row and ground truth of one load's main thread.
    pub fn main_of(&self, load: &Load) -> Result<(&Row, &Counters)> {
        let truth = self.truth.iter().find(|(tid, _)| *tid == load.pid());
        let (tid, truth) = truth.with_context(|| format!("{} was not observed", load.pid()))?;
        Ok((self.report.task(*tid)?, truth))
    }
}

/// The main thread of a load and its other tasks.
fn tasks_of(load: &Load) -> impl Iterator<Item = u32> {
    std::iter::once(load.pid()).chain(load.tids.iter().copied())
}
