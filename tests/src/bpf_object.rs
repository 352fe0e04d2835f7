//! BPF objects by id: which ones a process holds, and whether the kernel still has them.
//!
//! Ids are never reused soon, so a test can prove that a killed recorder left nothing behind even
//! while others load programs of their own.

use std::{fs, os::fd::FromRawFd as _};

use anyhow::{Context as _, Result};

/// An object in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BpfObject {
    /// A program.
    Program(u32),
    /// A map.
    Map(u32),
    /// An attachment.
    Link(u32),
}

/// `bpf(2)` commands that open an object by its id.
const PROG_GET_FD_BY_ID: libc::c_long = 13;
const MAP_GET_FD_BY_ID: libc::c_long = 14;
const LINK_GET_FD_BY_ID: libc::c_long = 30;

/// The part of `union bpf_attr` that these commands read.
#[repr(C)]
struct ById {
    id: u32,
    next_id: u32,
    open_flags: u32,
}

impl BpfObject {
    /// Everything that a process holds by a file descriptor.
    pub fn held_by(pid: u32) -> Result<Vec<Self>> {
        let directory = format!("/proc/{pid}/fdinfo");
        let mut objects = Vec::new();
        for entry in fs::read_dir(&directory).with_context(|| format!("cannot list {directory}"))? {
            let info = fs::read_to_string(entry?.path()).unwrap_or_default();
            objects.extend(info.lines().filter_map(Self::of_line));
        }
        Ok(objects)
    }

    fn of_line(line: &str) -> Option<Self> {
        let (key, value) = line.split_once(':')?;
        let id = value.trim().parse().ok()?;
        match key {
            "prog_id" => Some(Self::Program(id)),
            "map_id" => Some(Self::Map(id)),
            "link_id" => Some(Self::Link(id)),
            _ => None,
        }
    }

    /// Whether the kernel still has it.
    #[must_use]
    pub fn exists(self) -> bool {
        let (command, id) = match self {
            Self::Program(id) => (PROG_GET_FD_BY_ID, id),
            Self::Map(id) => (MAP_GET_FD_BY_ID, id),
            Self::Link(id) => (LINK_GET_FD_BY_ID, id),
        };
        let request = ById {
            id,
            next_id: 0,
            open_flags: 0,
        };
        // SAFETY: the kernel reads as many bytes as it is told, from a struct that lives across the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                command,
                &raw const request,
                size_of::<ById>(),
            )
        };
        let Ok(fd) = i32::try_from(fd) else {
            return false;
        };
        if fd < 0 {
            return false;
        }
        // SAFETY: the descriptor is new and nobody else's; dropping it closes it.
        drop(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) });
        true
    }
}
