//! Type information that says less than the kernel's own, put in its place for one run.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::schedlat::{Outcome, Recording, binary};

/// The running kernel's.
pub const PATH: &str = "/sys/kernel/btf/vmlinux";

/// A copy of the kernel's type information in which tracepoints can be made to disappear.
///
/// A name is changed in place by one letter, so that nothing else moves.
#[derive(Clone, Debug)]
pub struct Btf(Vec<u8>);

impl Btf {
    /// As the kernel has it.
    pub fn of_kernel() -> Result<Self> {
        Ok(Self(fs::read(PATH).context("no type information")?))
    }

    /// Without a tracepoint; an error where there is none.
    pub fn without(mut self, tracepoint: &str) -> Result<Self> {
        let name = format!("\0btf_trace_{tracepoint}\0");
        let width = name.len();
        let found: Vec<usize> = self
            .0
            .windows(width)
            .enumerate()
            .filter(|(_, bytes)| *bytes == name.as_bytes())
            .map(|(at, _)| at)
            .collect();
        ensure!(!found.is_empty(), "the kernel has no {tracepoint} itself");
        for at in found {
            self.0[at + 1] = b'X';
        }
        Ok(self)
    }

    /// Runs schedlat where it finds this.
    pub fn run(&self, line: &str) -> Result<Outcome> {
        let folder = TempDir::new()?;
        let file = folder.path().join("btf");
        fs::write(&file, &self.0)?;
        run_with(&file, line)
    }
}

/// Runs schedlat where it finds this file in place of the kernel's type information.
pub fn run_with(file: &Path, line: &str) -> Result<Outcome> {
    let mut command = Command::new("unshare");
    let hide = format!("mount --bind \"$1\" {PATH} && shift && exec \"$@\"");
    command.args(["--mount", "sh", "-c", &hide, "sh"]);
    command.arg(file).arg(binary()?).args(line.split(' '));
    Recording::of(command)?.finish()
}
