//! Names of functions of the kernel: of stacks, and of what its workers work on.

use std::collections::BTreeSet;

use latency_common::timeline::Runner;

use crate::{
    kernel::{Functions, Kernel},
    model::{KernelNames, Observation, StackTally, TaskRow, WaitEvent},
};

/// What is known of functions.
#[derive(Debug)]
pub(super) struct Names {
    functions: Option<Functions>,
}

/// What is to be named.
#[derive(Debug, Default)]
struct Numbers {
    stacks: BTreeSet<u32>,
    works: BTreeSet<u32>,
}

impl Names {
    /// Reading the names of functions takes a tenth of a second: what is needed while recording is
    /// read before.
    pub(super) fn new(are_needed_while_recording: bool) -> Self {
        Self {
            functions: are_needed_while_recording.then(Functions::read),
        }
    }

    /// Names for these waits.
    pub(super) fn of_waits(&mut self, kernel: &Kernel, events: &[WaitEvent]) -> KernelNames {
        let mut numbers = Numbers::default();
        numbers.add_waits(events);
        self.read(kernel, &numbers)
    }

    /// Names for a snapshot, where they are known already.
    pub(super) fn name_early(&self, kernel: &Kernel, snapshot: &mut Observation) {
        if let Some(functions) = &self.functions {
            let mut numbers = Numbers::default();
            numbers.add_culprits(&snapshot.rows);
            snapshot.names = numbers.names(kernel, functions);
        }
    }

    /// Names for the last snapshot, with the modules of now.
    pub(super) fn name(&mut self, kernel: &Kernel, last: &mut Observation) {
        let mut numbers = Numbers::default();
        numbers.add_culprits(&last.rows);
        numbers.add_stacks(&last.stacks);
        numbers.add_waits(&last.longest);
        self.functions = None;
        last.names = self.read(kernel, &numbers);
    }

    fn read(&mut self, kernel: &Kernel, numbers: &Numbers) -> KernelNames {
        if numbers.stacks.is_empty() && numbers.works.is_empty() {
            return KernelNames::default();
        }
        let functions = self.functions.get_or_insert_with(Functions::read);
        numbers.names(kernel, functions)
    }
}

impl Numbers {
    fn add_waits(&mut self, events: &[WaitEvent]) {
        for stint in events.iter().flat_map(|event| &event.record.stints) {
            self.stacks.extend(stint.stack.id());
            self.works.insert(Runner(stint.tid).work());
        }
        self.works.remove(&0);
    }

    fn add_stacks(&mut self, stacks: &[StackTally]) {
        self.stacks
            .extend(stacks.iter().filter_map(|row| row.stack.id()));
    }

    fn add_culprits(&mut self, rows: &[TaskRow]) {
        let culprits = rows.iter().flat_map(|row| &row.tally.attribution.culprits);
        self.works.extend(culprits.map(|row| row.work));
        self.works.remove(&0);
    }

    fn names(&self, kernel: &Kernel, functions: &Functions) -> KernelNames {
        let paths = self.stacks.iter();
        let works = self.works.iter();
        KernelNames {
            paths: paths
                .filter_map(|id| Some((*id, functions.path(&kernel.stack(*id))?)))
                .collect(),
            works: works
                .filter_map(|number| Some((*number, functions.name(kernel.work(*number)?)?)))
                .collect(),
        }
    }
}
