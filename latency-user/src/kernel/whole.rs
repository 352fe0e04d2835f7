//! An array with a value for each CPU, read as a whole by one system call.
//!
//! aya asks for each entry by itself, and for the number of CPUs each time: a thousand entries would
//! take as long as loading a program.

use std::{
    io,
    marker::PhantomData,
    os::fd::{AsFd as _, AsRawFd as _},
};

use aya::{
    Ebpf, Pod,
    maps::{Map, MapData},
};

use super::bytes::from_bytes;
use crate::Error;

/// `BPF_MAP_LOOKUP_BATCH`, which these arrays have since 5.13.
const LOOKUP_BATCH: libc::c_long = 24;

/// The part of `union bpf_attr` that a batch uses.
#[repr(C)]
#[derive(Debug, Default)]
struct Batch {
    first: u64,
    next: u64,
    keys: u64,
    values: u64,
    n: u32,
    fd: u32,
    element_flags: u64,
    flags: u64,
}

/// The array.
pub(super) struct WholeArray<T> {
    map: MapData,
    n_rows: u32,
    n_cpus: usize,
    values: PhantomData<T>,
}

impl<T: Pod> WholeArray<T> {
    /// Takes the map of this name, which has so many rows, out of the object.
    pub(super) fn take(
        ebpf: &mut Ebpf,
        name: &str,
        n_rows: u32,
        n_cpus: usize,
    ) -> Result<Self, Error> {
        let Some(Map::PerCpuArray(map)) = ebpf.take_map(name) else {
            return Err(Error::Setup(format!(
                "map {name} is not an array of the object"
            )));
        };
        Ok(Self {
            map,
            n_rows,
            n_cpus,
            values: PhantomData,
        })
    }

    /// All rows, each with the values of all CPUs.
    pub(super) fn rows(&self) -> io::Result<Vec<Vec<T>>> {
        // The kernel lays each value out at a multiple of eight bytes.
        let value_bytes = size_of::<T>().next_multiple_of(8);
        let row_bytes = value_bytes * self.n_cpus;
        let mut keys = vec![0_u32; self.n_rows as usize];
        let mut values = vec![0_u8; row_bytes * self.n_rows as usize];
        let mut next = 0_u32;
        let batch = Batch {
            next: (&raw mut next).expose_provenance() as u64,
            keys: keys.as_mut_ptr().expose_provenance() as u64,
            values: values.as_mut_ptr().expose_provenance() as u64,
            n: self.n_rows,
            fd: self.map.fd().as_fd().as_raw_fd().cast_unsigned(),
            ..Batch::default()
        };
        // SAFETY: keys and values have room for `n` of each, and all that is pointed to outlives the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                LOOKUP_BATCH,
                &raw const batch,
                size_of::<Batch>(),
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let rows = values.chunks_exact(row_bytes);
        Ok(rows
            .map(|row| row.chunks_exact(value_bytes).map(from_bytes).collect())
            .collect())
    }
}
