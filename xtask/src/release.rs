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

/// Builds schedlat and the programs of the tests.
pub(crate) fn build() -> Result<Programs> {
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
    shell::run(&mut cargo)?;
    let built = |name| target.join("release").join(name);
    Ok(Programs {
        schedlat: built("schedlat"),
        guest: built("guest"),
        workload: built("workload"),
    })
}
