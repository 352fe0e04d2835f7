//! What our programs cost, by the kernel's own statistics.
//!
//! Those cost about 40 ns per run themselves, so they are switched on for short slices only:
//! a tenth of a second at the start and then once a second.

use std::os::fd::OwnedFd;

use crate::{
    kernel::{self, Kernel, RunTotals},
    model::CostSample,
};

/// Turns of the recorder's clock between two slices.
const TURNS: u32 = 10;

/// Samples the cost.
#[derive(Debug)]
pub(super) struct CostMeter {
    is_allowed: bool,
    turn: u32,
    slice: Option<Slice>,
    total: CostSample,
}

#[derive(Debug)]
struct Slice {
    /// The statistics are on as long as this is open.
    _statistics: OwnedFd,
    began_at_ns: u64,
    runs: RunTotals,
    switches: u64,
}

impl CostMeter {
    /// A meter; without the right to switch the statistics on it measures nothing.
    pub(super) fn new(is_allowed: bool) -> Self {
        Self {
            is_allowed,
            turn: 0,
            slice: None,
            total: CostSample::default(),
        }
    }

    /// Opens or closes a slice, as the turn wants. Called about ten times a second.
    pub(super) fn turn(&mut self, kernel: &Kernel, now_ns: u64) {
        self.close(kernel, now_ns);
        if self.is_allowed && self.turn.is_multiple_of(TURNS) {
            self.slice = kernel::switch_statistics_on().map(|statistics| Slice {
                _statistics: statistics,
                began_at_ns: now_ns,
                runs: kernel.run_totals(),
                switches: switches(kernel),
            });
        }
        self.turn = self.turn.wrapping_add(1);
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
