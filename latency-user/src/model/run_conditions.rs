//! What commands of somebody else ran under, and the doubts that follow from it.

use serde::Serialize;

use super::probe::{Clocksources, RtLimit, Warning};

/// What a command of somebody else ran under.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunConditions {
    /// The kernel's clock source.
    pub clocksource: Clocksources,
    /// How much of the time real-time tasks may have; absent where that cannot be read.
    pub rt_limit: Option<RtLimit>,
    /// CPUs that it could use at its start.
    pub cpus_allowed: String,
    /// Time a hypervisor kept from all CPUs together.
    pub steal_ns: u64,
}

impl RunConditions {
    /// What gives reason to doubt the figures.
    #[must_use]
    pub fn doubts(&self) -> Vec<Warning> {
        let clocks = &self.clocksource;
        let changed = (clocks.at_start != clocks.at_end).then(|| Warning::ClocksourceChanged {
            from: clocks.at_start.clone(),
            to: clocks.at_end.clone(),
        });
        let ns = self.steal_ns;
        let stolen = (ns > 0).then_some(Warning::Stolen { ns });
        [changed, stolen].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubts_have_their_reasons() {
        let mut conditions = RunConditions::default();
        assert!(conditions.doubts().is_empty());
        conditions.clocksource.at_end = "hpet".into();
        conditions.steal_ns = 10_000_000;
        let kinds: Vec<_> = conditions.doubts().iter().map(Warning::kind).collect();
        assert_eq!(kinds, ["clocksource_changed", "stolen"]);
    }
}
