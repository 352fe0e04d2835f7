//! A recording of some loads, with the kernel's counters of each read just around it.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result};

use crate::{
    load::Load,
    report::{Report, Row},
    schedlat::Schedlat,
    truth::Counters,
};

/// A report and the ground truth of the same time.
#[derive(Debug)]
pub struct Observed {
    /// What schedlat says.
    pub report: Report,
    /// Growth of the kernel's counters, by thread, in the order of the loads.
    pub truth: Vec<(u32, Counters)>,
}

impl Observed {
    /// Records the loads and nothing else.
    pub fn of(loads: &[&Load], duration: Duration) -> Result<Self> {
        let targeted = loads.iter().flat_map(|load| load_processes(load));
        let recorder = targeted.fold(Schedlat::record(), Schedlat::pid);
        Self::by(recorder, loads, duration)
    }

    /// Records with a command line of its own.
    pub fn by(recorder: Schedlat, loads: &[&Load], duration: Duration) -> Result<Self> {
        let tids: Vec<u32> = loads.iter().flat_map(|load| load_processes(load)).collect();
        let recording = recorder.start()?;
        let before = tids
            .iter()
            .map(|&tid| Counters::of(tid))
            .collect::<Result<Vec<_>>>()?;
        thread::sleep(duration);
        let after = tids
            .iter()
            .map(|&tid| Counters::of(tid))
            .collect::<Result<Vec<_>>>()?;
        let report = recording.stop()?;
        let growth = after
            .iter()
            .zip(&before)
            .map(|(after, before)| after.since(before));
        Ok(Self {
            report,
            truth: tids.into_iter().zip(growth).collect(),
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
fn load_processes(load: &Load) -> impl Iterator<Item = u32> {
    std::iter::once(load.pid()).chain(load.tids.iter().copied())
}
