//! The histogram pool: read through a memory map, and handed back slot by slot.

use std::os::fd::AsFd as _;

use aya::maps::{Map, MapData, Stack};
use latency_common::hist::{HistKind, HistSlot, N_BUCKETS};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::{Error, model::Buckets};

/// The pool.
#[expect(missing_debug_implementations, reason = "aya's maps have none")]
pub struct HistPool {
    slots: *mut HistSlot,
    n_slots: usize,
    free: Stack<MapData, u32>,
}

// SAFETY: the mapping belongs to this value alone; the kernel side writes only slots that are not free.
unsafe impl Send for HistPool {}

impl HistPool {
    /// Maps the pool and declares every slot free.
    pub fn new(
        map: Option<&Map>,
        n_slots: u32,
        mut free: Stack<MapData, u32>,
    ) -> Result<Self, Error> {
        let Some(Map::Array(map)) = map else {
            return Err(Error::Setup(
                "map HISTS is not an array of the object".into(),
            ));
        };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let slots = unsafe {
            mmap(
                std::ptr::null_mut(),
                n_slots as usize * size_of::<HistSlot>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map.fd().as_fd(),
                0,
            )
        }
        .map_err(|error| Error::Setup(format!("cannot map the histogram pool: {error}")))?;
        for index in (0..n_slots).rev() {
            free.push(index, 0).map_err(|error| {
                Error::Setup(format!("cannot fill the histogram pool: {error}"))
            })?;
        }
        Ok(Self {
            slots: slots.cast(),
            n_slots: n_slots as usize,
            free,
        })
    }

    fn slot(&self, index: usize) -> Option<*mut HistSlot> {
        // SAFETY: the index is within the mapping.
        (index < self.n_slots).then(|| unsafe { self.slots.add(index) })
    }

    /// The histogram in a slot, if it still belongs to this task.
    #[must_use]
    pub fn read(&self, index: usize, owner: (u32, u64)) -> Option<Buckets> {
        let slot = self.slot(index)?;
        // SAFETY: the slot lies in the mapping; the kernel may count on meanwhile, so the copy is volatile.
        let copy = unsafe { slot.read_volatile() };
        ((copy.owner_tid, copy.owner_start_ns) == owner).then(|| buckets(&copy))
    }

    /// Waits of tasks that live, by bucket; of first waits there are no histograms.
    #[must_use]
    pub fn waits(&self) -> [u64; N_BUCKETS] {
        let mut sums = [0; N_BUCKETS];
        for slot in (0..self.n_slots).filter_map(|index| self.slot(index)) {
            // SAFETY: the slot lies in the mapping.
            let owner = unsafe { &raw const (*slot).owner_tid };
            // SAFETY: as above; the kernel may set it meanwhile, so the read is volatile.
            if unsafe { owner.read_volatile() } == 0 {
                continue;
            }
            // SAFETY: as above.
            let copy = unsafe { slot.read_volatile() };
            if copy.kind == HistKind::Wakeup as u32 || copy.kind == HistKind::Preemption as u32 {
                let counts = sums.iter_mut().zip(copy.buckets);
                counts.for_each(|(sum, count)| *sum += u64::from(count));
            }
        }
        sums
    }

    /// Clears the slot of an ended task and hands it back.
    pub fn free(&mut self, index: usize) {
        let Some(slot) = self.slot(index) else {
            return;
        };
        // SAFETY: the slot lies in the mapping and its owner has ended; all zero is a valid value.
        unsafe { slot.write_bytes(0, 1) };
        // A full stack cannot be: each slot is pushed once per pop.
        if let (Ok(index), free) = (u32::try_from(index), &mut self.free) {
            free.push(index, 0).unwrap_or_default();
        }
    }

    /// Takes the histograms whose owners ended without a record.
    pub fn take_orphans(&mut self) -> Vec<(u32, Buckets)> {
        let mut orphans = Vec::new();
        for index in 0..self.n_slots {
            let Some(slot) = self.slot(index) else { break };
            // SAFETY: the slot lies in the mapping.
            let is_orphan = unsafe { &raw const (*slot).is_orphan };
            // SAFETY: as above; the kernel may set it meanwhile, so the read is volatile.
            if unsafe { is_orphan.read_volatile() } == 0 {
                continue;
            }
            // SAFETY: as above.
            let copy = unsafe { slot.read_volatile() };
            orphans.push((copy.kind, buckets(&copy)));
            self.free(index);
        }
        orphans
    }
}

impl Drop for HistPool {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and nothing borrows from it. A failure leaves it mapped.
        unsafe { munmap(self.slots.cast(), self.n_slots * size_of::<HistSlot>()) }
            .unwrap_or_default();
    }
}

/// The samples of a slot, sparse.
#[must_use]
pub fn buckets(slot: &HistSlot) -> Buckets {
    let counts = slot
        .buckets
        .iter()
        .enumerate()
        .filter(|(_, count)| **count != 0)
        .filter_map(|(index, count)| Some((u16::try_from(index).ok()?, u64::from(*count))))
        .collect();
    Buckets {
        counts,
        overflow: u64::from(slot.overflow),
    }
}
