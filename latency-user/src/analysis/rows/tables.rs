//! The tables: who took the CPU, who was in the way, which interrupts were, and who woke the task.

use std::sync::Arc;

use latency_common::interrupt::Source;

use super::{Amount, TableRow};
use crate::model::{CulpritTally, InterruptTally, PreemptorTally, WakerTally};

impl TableRow for PreemptorTally {
    type Key = (Option<u8>, u32, [u8; 16]);

    fn key(&self) -> Self::Key {
        (self.class.map(|class| class as u8), self.tid, self.comm)
    }

    fn heir(&self) -> Option<Self::Key> {
        (self.tid != 0).then_some((None, 0, [0; 16]))
    }

    fn amount(&self) -> Amount {
        Amount {
            count: self.count,
            sum_ns: self.sum_ns,
        }
    }

    fn with(&self, Amount { count, sum_ns }: Amount) -> Self {
        Self {
            count,
            sum_ns,
            ..self.clone()
        }
    }

    fn absorb(&mut self, from: &Self) {
        self.count += from.count;
        self.sum_ns += from.sum_ns;
    }
}

impl TableRow for CulpritTally {
    type Key = (u32, [u8; 16], u32, u16);

    fn key(&self) -> Self::Key {
        (self.tid, self.comm, self.work, self.kind as u16)
    }

    fn heir(&self) -> Option<Self::Key> {
        (self.tid != 0).then_some((0, self.comm, self.work, self.kind as u16))
    }

    fn amount(&self) -> Amount {
        Amount {
            count: self.count,
            sum_ns: self.sum_ns,
        }
    }

    fn with(&self, Amount { count, sum_ns }: Amount) -> Self {
        Self {
            count,
            sum_ns,
            max_ns: self.max_ns.min(sum_ns),
            ..self.clone()
        }
    }

    fn absorb(&mut self, from: &Self) {
        if from.sum_ns > self.sum_ns {
            self.cgroup = Arc::clone(&from.cgroup);
            self.prio = from.prio;
        }
        self.count += from.count;
        self.sum_ns += from.sum_ns;
        self.max_ns = self.max_ns.max(from.max_ns);
    }
}

impl TableRow for InterruptTally {
    type Key = u32;

    fn key(&self) -> Self::Key {
        self.source.0
    }

    fn heir(&self) -> Option<Self::Key> {
        (self.source != Source::SEVERAL).then_some(Source::SEVERAL.0)
    }

    fn amount(&self) -> Amount {
        Amount {
            count: self.count,
            sum_ns: self.sum_ns,
        }
    }

    fn with(&self, Amount { count, sum_ns }: Amount) -> Self {
        Self {
            count,
            sum_ns,
            ..*self
        }
    }

    fn absorb(&mut self, from: &Self) {
        self.count += from.count;
        self.sum_ns += from.sum_ns;
    }
}

impl TableRow for WakerTally {
    type Key = (u32, u32, [u8; 16]);

    fn key(&self) -> Self::Key {
        (self.source.0, self.tid, self.comm)
    }

    fn heir(&self) -> Option<Self::Key> {
        (self.source != Source::SEVERAL).then_some((Source::SEVERAL.0, 0, [0; 16]))
    }

    fn amount(&self) -> Amount {
        Amount {
            count: self.count,
            sum_ns: self.latency_sum_ns,
        }
    }

    fn with(&self, Amount { count, sum_ns }: Amount) -> Self {
        Self {
            count,
            latency_sum_ns: sum_ns,
            ..self.clone()
        }
    }

    fn absorb(&mut self, from: &Self) {
        self.count += from.count;
        self.latency_sum_ns += from.latency_sum_ns;
    }

    fn weight(&self) -> u64 {
        self.count
    }
}
