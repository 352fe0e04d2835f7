//! How to record.

use std::ffi::OsString;

use latency_common::config::Detail;

use super::{cgroups::Hierarchy, child::CommandOutput, targets::Targets};
use crate::kernel::{FlightSize, LoadOptions, Selection};

/// Slots of the histogram pool unless another number is asked for.
pub const DEFAULT_HISTOGRAMS: u32 = 8192;

/// Bytes of the ring unless another number is asked for.
pub const DEFAULT_RING_BYTES: u32 = 1 << 22;

/// Bytes of the ring for events of traced threads: those of a fifth of a second of a thread that is
/// switched a million times a second.
const TRACE_BYTES: u32 = 1 << 25;

/// A map cannot be empty.
const SMALLEST_RING_BYTES: u32 = 1 << 12;

/// How to record.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Which tasks.
    pub targets: Targets,
    /// How much is measured.
    pub detail: Detail,
    /// Slots of the histogram pool.
    pub n_hists: u32,
    /// Bytes of the ring.
    pub ring_bytes: u32,
    /// Waits from this length on are handed out one by one.
    pub over_ns: Option<u64>,
    /// Stacks are taken where somebody has waited longer than this; without, that follows the waits.
    pub stacks_over_ns: Option<u64>,
    /// Functions of the kernel are named while recording too, and not only at its end.
    pub names_early: bool,
    /// Nothing else than stacks was asked for.
    pub needs_paths: bool,
    /// A command to run and follow; empty for none.
    pub command: Vec<OsString>,
    /// Where what it prints goes.
    pub command_output: CommandOutput,
    /// How much the flight recorder is to hold; none without one.
    pub flight: Option<FlightSize>,
    /// Threads that are traced, event by event; they are observed as well.
    pub traced: Vec<u32>,
    /// Threads whose calls of `sched_yield` are counted, where the kernel shows them.
    pub yielders: Vec<u32>,
    /// CPUs that count for `idle while runnable`; none where that is not measured.
    pub idle_cpus: Vec<u32>,
    /// Whether the programs log what they decide.
    pub has_logs: bool,
}

impl SessionOptions {
    /// Everything about these targets, with the usual limits.
    #[must_use]
    pub fn new(targets: Targets) -> Self {
        Self {
            targets,
            detail: Detail::Full,
            n_hists: DEFAULT_HISTOGRAMS,
            ring_bytes: DEFAULT_RING_BYTES,
            over_ns: None,
            stacks_over_ns: None,
            names_early: false,
            needs_paths: false,
            command: Vec::new(),
            command_output: CommandOutput::Ours,
            flight: None,
            traced: Vec::new(),
            yielders: Vec::new(),
            idle_cpus: Vec::new(),
            has_logs: false,
        }
    }

    /// What the kernel side is to be like.
    pub(super) fn load(&self, stacks_over_ns: u64) -> LoadOptions {
        let hierarchy = self.targets.hierarchy.as_ref();
        LoadOptions {
            detail: self.detail,
            selection: Selection {
                traced: self.traced.clone(),
                ..self.targets.selection.clone()
            },
            needs: self.targets.needs,
            cgroup_controller: hierarchy.and_then(Hierarchy::controller),
            cgroup_hierarchy_id: hierarchy.map_or(0, Hierarchy::id),
            n_hists: self.n_hists,
            ring_bytes: self.ring_bytes,
            trace_bytes: if self.traced.is_empty() {
                SMALLEST_RING_BYTES
            } else {
                TRACE_BYTES
            },
            yielders: self.yielders.clone(),
            flight: self.flight,
            idle_cpus: self.idle_cpus.clone(),
            over_ns: self.over_ns,
            stacks_over_ns,
            has_logs: self.has_logs,
        }
    }
}
