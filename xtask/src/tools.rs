//! Cargo's own helpers that a task needs, of one version each, installed below `target/tools`.
//!
//! Promises: nothing is installed where the version is there already, and nothing outside of `target/`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{project, shell};

/// The program `name`, which is installed from the package of that name where it is missing.
pub(crate) fn tool(name: &str, version: &str) -> Result<PathBuf> {
    let tools = project::target("tools");
    let installed = tools.join("bin").join(name);
    let found = shell::capture(Command::new(&installed).arg("--version"));
    if found.is_ok_and(|found| found.split_whitespace().last() == Some(version)) {
        return Ok(installed);
    }
    let mut install = shell::cargo();
    install
        .args(["install", "--locked", "--force", "--root"])
        .arg(&tools)
        .args([name, "--version", version]);
    shell::run(&mut install)?;
    Ok(installed)
}
