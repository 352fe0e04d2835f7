//! What a workload tells its test: that it is ready, and at its end what the kernel counted of it.

use std::{
    io::{Write as _, stdout},
    time::Instant,
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::truth::{Counters, current_tid};

/// The two lines of a workload, and the counters between them.
#[derive(Debug)]
pub struct Stage {
    is_reporting: bool,
    baseline: Counters,
    began: Instant,
}

impl Stage {
    /// A stage that prints only when asked to.
    pub(crate) fn new(is_reporting: bool) -> Self {
        Self {
            is_reporting,
            baseline: Counters::default(),
            began: Instant::now(),
        }
    }

    /// Says that the workload is set up, and takes the baseline of its counters.
    ///
    /// `tids` are threads or processes that belong to it beside its main thread.
    pub(crate) fn ready(&mut self, tids: &[u32]) -> Result<()> {
        if self.is_reporting {
            print_line(&json!({ "ready": current_tid(), "tids": tids }))?;
            self.baseline = Counters::of_self()?;
        }
        self.began = Instant::now();
        Ok(())
    }

    /// Prints the ground truth, `own` being what only this workload knows.
    pub(crate) fn finish(self, own: &Value) -> Result<()> {
        if !self.is_reporting {
            return Ok(());
        }
        let counters = Counters::of_self()?.since(&self.baseline);
        let seconds = self.began.elapsed().as_secs_f64();
        print_line(&json!({
            "tid": current_tid(), "seconds": seconds, "counters": counters, "own": own,
        }))
    }
}

fn print_line(line: &Value) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .context("cannot report")
}
