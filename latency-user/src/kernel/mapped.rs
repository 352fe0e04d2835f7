//! Arrays of the object that are read through a memory map, not by a system call for each entry.

use std::os::fd::AsFd as _;

use aya::{Ebpf, Pod, maps::Map};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::Error;

/// An array of the object, read where it lies.
pub(super) struct Mapped<T> {
    first: *const T,
    /// Entries.
    pub(super) n: usize,
}

// SAFETY: the mapping belongs to this value alone and is only read.
unsafe impl<T: Pod> Send for Mapped<T> {}

impl<T: Pod> Mapped<T> {
    /// Maps the first `n` entries.
    pub(super) fn new(ebpf: &Ebpf, name: &str, n: usize) -> Result<Self, Error> {
        let Some(Map::Array(map)) = ebpf.map(name) else {
            return Err(Error::Setup(format!(
                "map {name} is not an array of the object"
            )));
        };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let first = unsafe {
            mmap(
                std::ptr::null_mut(),
                n * size_of::<T>(),
                ProtFlags::READ,
                MapFlags::SHARED,
                map.fd().as_fd(),
                0,
            )
        }
        .map_err(|error| Error::Setup(format!("cannot map {name} into memory: {error}")))?;
        Ok(Self {
            first: first.cast(),
            n,
        })
    }

    /// An entry, as it is at this moment.
    pub(super) fn read(&self, index: usize) -> Option<T> {
        if index >= self.n {
            return None;
        }
        // SAFETY: the index is within the mapping.
        let item = unsafe { self.first.add(index) };
        // SAFETY: it lies in the mapping; the kernel may write it meanwhile, so the copy is volatile.
        Some(unsafe { item.read_volatile() })
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and nothing borrows from it. A failure leaves it mapped.
        unsafe { munmap(self.first.cast_mut().cast(), self.n * size_of::<T>()) }
            .unwrap_or_default();
    }
}
