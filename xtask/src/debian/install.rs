//! Installs the programs that the tests drive, when they are missing.
//!
//! Promises: no call of apt when everything is there; all that is missing in one go.
//! Leaves to others: which programs a task needs.

use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::shell;

/// A program, or another file by its path, and the Debian package that has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
}

impl Program {
    pub(crate) const fn of(name: &'static str, package: &'static str) -> Self {
        Self { name, package }
    }
}

/// Installs the packages of those `programs` that are not there.
pub(crate) fn ensure_installed(programs: &[Program]) -> Result<()> {
    let missing: Vec<_> = programs
        .iter()
        .filter(|program| shell::find_program(program.name).is_none())
        .map(|program| program.package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.join(" ");
    let help = format!("help: apt-get install {packages}");
    if !shell::is_root() {
        bail!("cannot install {packages}: not root\n{help}");
    }

    println!("installing {packages}");
    let update = shell::capture(apt_get().args(["--quiet", "update"]));
    let install = shell::capture(
        apt_get()
            .args(["--quiet", "--yes", "--no-install-recommends", "install"])
            .args(&missing),
    );
    // A failed update matters only when what it should have brought is missing.
    install
        .map(drop)
        .or_else(|error| update.map(drop).and(Err(error)))
        .context(help)
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C");
    command
}
