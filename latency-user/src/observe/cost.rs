//! What our programs cost, by the kernel's own statistics.
//!
//! Those cost about 40 ns per run themselves, so they are switched on once a second and only until
//! enough runs were counted: ten milliseconds on a busy host, a tenth of a second on an idle one.

use std::{os::fd::OwnedFd, time::Duration};

use crate::{
    kernel::{self, Kernel, RunTotals},
    model::CostSample,
};

/// From the end of a slice to the next.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a slice is looked at.
const STEP: Duration = Duration::from_millis(10);
/// Steps after which a slice ends in any case.
const MAX_STEPS: u32 = 10;
/// Runs that are enough.
const ENOUGH_RUNS: u64 = 1000;

/// Samples the cost.
#[derive(Debug)]
pub(super) struct CostMeter {
    is_allowed: bool,
    slice: Option<Slice>,
    total: CostSample,
}

#[derive(Debug)]
struct Slice {
    /// The statistics are on as long as this is open.
    _statistics: OwnedFd,
    began_at_ns: u64,
    steps: u32,
    runs: RunTotals,
    switches: u64,
}

impl CostMeter {
    /// A meter; without the right to switch the statistics on it measures nothing.
    pub(super) fn new(is_allowed: bool) -> Self {
        Self {
            is_allowed,
            slice: None,
            total: CostSample::default(),
        }
    }

    /// Opens, keeps or closes a slice; says when to come again.
    pub(super) fn step(&mut self, kernel: &Kernel, now_ns: u64) -> Duration {
        let Some(slice) = &mut self.slice else {
            self.open(kernel, now_ns);
            return STEP;
        };
        slice.steps += 1;
        let runs = kernel.run_totals().runs.saturating_sub(slice.runs.runs);
        if runs < ENOUGH_RUNS && slice.steps < MAX_STEPS {
            return STEP;
        }
        self.close(kernel, now_ns);
        PAUSE
    }

    fn open(&mut self, kernel: &Kernel, now_ns: u64) {
        if !self.is_allowed {
            return;
        }
        self.slice = kernel::switch_statistics_on().map(|statistics| Slice {
            _statistics: statistics,
            began_at_ns: now_ns,
            steps: 0,
            runs: kernel.run_totals(),
            switches: switches(kernel),
        });
    }

    /// Closes the slice that is open, if any.
    pub(super) fn close(&mut self, kernel: &Kernel, now_ns: u64) {
        let Some(slice) = self.slice.take() else {
            return;
        };
        let runs = kernel.run_totals();
        self.total.sampled_ns += now_ns.saturating_sub(slice.began_at_ns);
        self.total.run_ns += runs.ns.saturating_sub(slice.runs.ns);
        self.total.runs += runs.runs.saturating_sub(slice.runs.runs);
        self.total.switches += switches(kernel).saturating_sub(slice.switches);
    }

    /// The sum of the slices.
    pub(super) fn sample(&self) -> Option<CostSample> {
        (self.total.sampled_ns > 0).then_some(self.total)
    }
}

fn switches(kernel: &Kernel) -> u64 {
    kernel.cpu_states().iter().map(|cpu| cpu.switches).sum()
}
