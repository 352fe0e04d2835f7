//! Names of kernel stacks.

use latency_common::record::WaitRecord;

use crate::{
    kernel::{Functions, Kernel},
    model::{KernelPaths, StackTally, WaitEvent},
};

/// What is known of stacks.
#[derive(Debug)]
pub(super) struct Paths {
    functions: Option<Functions>,
}

impl Paths {
    /// Reading the names of functions takes a tenth of a second: what is needed while recording is
    /// read before.
    pub(super) fn new(is_needed_while_recording: bool) -> Self {
        Self {
            functions: is_needed_while_recording.then(Functions::read),
        }
    }

    /// The paths of all these stacks; `is_last` reads the names anew, with the modules of now.
    pub(super) fn of(
        &mut self,
        kernel: &Kernel,
        ids: impl Iterator<Item = u32>,
        is_last: bool,
    ) -> KernelPaths {
        let mut ids = ids.peekable();
        if ids.peek().is_none() {
            return KernelPaths::new();
        }
        if is_last {
            self.functions = None;
        }
        let functions = self.functions.get_or_insert_with(Functions::read);
        ids.filter_map(|id| Some((id, functions.path(&kernel.stack(id))?)))
            .collect()
    }
}

/// The stacks of who had the CPU during these waits.
pub(super) fn ids_of_waits(events: &[WaitEvent]) -> impl Iterator<Item = u32> {
    events.iter().flat_map(|event| ids_of(&event.record))
}

fn ids_of(record: &WaitRecord) -> impl Iterator<Item = u32> {
    record.stints.iter().filter_map(|stint| stint.stack.id())
}

/// The stacks of these sums.
pub(super) fn ids_of_tallies(stacks: &[StackTally]) -> impl Iterator<Item = u32> {
    stacks.iter().filter_map(|row| row.stack.id())
}
