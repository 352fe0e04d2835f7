//! What this process may do: capabilities, and the kernel's lockdown.

use rustix::thread::{CapabilitySet, capabilities};

/// Capabilities of this thread, as far as they matter here.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    effective: CapabilitySet,
}

impl Rights {
    /// Reads them.
    #[must_use]
    pub fn read() -> Self {
        Self {
            effective: capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective),
        }
    }

    fn has(self, capability: CapabilitySet) -> bool {
        // CAP_SYS_ADMIN contained the BPF capabilities before they had their own names, and still does.
        self.effective
            .intersects(capability | CapabilitySet::SYS_ADMIN)
    }

    /// Capabilities without which no program can be loaded.
    #[must_use]
    pub fn missing(self) -> Vec<&'static str> {
        [
            ("CAP_BPF", CapabilitySet::BPF),
            ("CAP_PERFMON", CapabilitySet::PERFMON),
        ]
        .into_iter()
        .filter(|(_, capability)| !self.has(*capability))
        .map(|(name, _)| name)
        .collect()
    }

    /// Whether kernel addresses can be read.
    #[must_use]
    pub fn has_syslog(self) -> bool {
        self.effective.contains(CapabilitySet::SYSLOG)
    }

    /// Whether the kernel's BPF statistics can be switched on.
    #[must_use]
    pub fn has_sys_admin(self) -> bool {
        self.effective.contains(CapabilitySet::SYS_ADMIN)
    }
}
