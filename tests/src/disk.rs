//! A disk that is soon full.

use std::path::Path;

use anyhow::Result;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

/// A file system with room for one page, as long as this value.
#[derive(Debug)]
pub struct TinyDisk {
    directory: TempDir,
}

impl TinyDisk {
    /// An empty one.
    pub fn new() -> Result<Self> {
        let directory = TempDir::new()?;
        let options = Some(c"size=4096");
        mount(
            "tmpfs",
            directory.path(),
            "tmpfs",
            MountFlags::empty(),
            options,
        )?;
        Ok(Self { directory })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        unmount(self.directory.path(), UnmountFlags::DETACH).expect("unmount the tiny disk");
    }
}
