//! The release build of what the root tests, the virtual machines and the benchmark run.
//!
//! Promises: paths of binaries that are up to date.

use std::path::PathBuf;

use anyhow::Result;

use crate::{project, shell};

/// Where the built programs are.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) schedlat: PathBuf,
    /// `/init` of the virtual machines.
    pub(crate) guest: PathBuf,
    /// The known-answer workloads.
    pub(crate) workload: PathBuf,
}

/// A machine other than this one, as its programs are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// As rustc calls it.
    pub(crate) triple: &'static str,
    /// For rustc: its linker, and how to link.
    pub(crate) flags: &'static [&'static str],
}

/// Builds schedlat and the programs of the tests for this machine.
pub(crate) fn build() -> Result<Programs> {
    build_for(None)
}

/// Builds them for `other`, or for this machine.
pub(crate) fn build_for(other: Option<Target>) -> Result<Programs> {
    let target = project::target("");
    let mut cargo = shell::cargo();
    cargo
        .current_dir(project::root())
        .args(["build", "--release", "--target-dir"])
        .arg(&target)
        .args([
            "--package",
            "latency-user",
            "--package",
            "latency-tests",
            "--bins",
        ]);
    let mut folder = target;
    if let Some(Target { triple, flags }) = other {
        cargo
            .args(["--target", triple])
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
        folder.push(triple);
    }
    shell::run(&mut cargo)?;
    let built = |name| folder.join("release").join(name);
    Ok(Programs {
        schedlat: built("schedlat"),
        guest: built("guest"),
        workload: built("workload"),
    })
}
