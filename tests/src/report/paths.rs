//! What a report says of the kernel paths of whom others waited for.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::Report;

/// The keys of kernel paths.
#[derive(Debug, Deserialize)]
pub struct PathStats {
    #[serde(rename = "stacks")]
    all: Option<Vec<Stack>>,
    /// Share of the time of other tasks that has a path.
    pub stacks_coverage_pct: Option<f64>,
    /// The threshold.
    pub stacks_over_ns: Option<u64>,
}

/// One path.
#[derive(Debug, Deserialize)]
pub struct Stack {
    /// Who.
    pub comm: String,
    /// A thread of the kernel.
    pub kernel_thread: bool,
    /// The system call.
    pub syscall: Option<String>,
    /// Functions, leaf first.
    pub frames: Vec<String>,
    /// Time that others waited.
    pub sum_ns: u64,
    /// Stretches of running.
    pub count: u64,
}

impl Stack {
    /// Whether it leads through a function.
    #[must_use]
    pub fn has(&self, function: &str) -> bool {
        self.frames.iter().any(|frame| frame == function)
    }
}

impl Report {
    /// The paths.
    pub fn stacks(&self) -> Result<&[Stack]> {
        self.paths.all.as_deref().context("no key 'stacks'")
    }
}
