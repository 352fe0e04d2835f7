//! Where a recording was made.

use serde::Serialize;

/// The host, as far as it matters to the figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: String,
    /// Machine, e.g. `x86_64`.
    pub arch: String,
    /// CPUs online.
    pub n_cpus: u32,
    /// Ticks a second; absent where it could not be found.
    pub hz: Option<u32>,
    /// Preemption model and how it is known, e.g. `none (dynamic)`.
    pub preemption: String,
    /// Hypervisor's name, or `none`.
    pub hypervisor: String,
    /// Clock source.
    pub clocksource: String,
    /// `v1`, `v2` or `hybrid`.
    pub cgroup_mode: String,
    /// Kernel lockdown: `none`, `integrity`, `confidentiality` or `unknown`.
    pub lockdown: String,
    /// Boot parameters that change scheduling (`isolcpus`, `nohz_full`, `preempt`, `threadirqs`…).
    pub boot_parameters: Vec<String>,
}
