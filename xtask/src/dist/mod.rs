//! `cargo xtask dist`: what is handed to users, below `target/dist/`.
//!
//! Promises: the binary that the tests ran, stripped; a Debian package of it with the man pages and
//! completions of its own command line; and that the package works where nothing else is installed.
//! Leaves to others: what is in the package (`latency-user/Cargo.toml`), the clean system
//! ([`clean_root`]).

mod clean_root;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::debian::install::{Program, ensure_installed};
use crate::tools::tool;
use crate::{project, release, shell};
use clean_root::CleanRoot;

/// The version whose handling of assets and symbols `latency-user/Cargo.toml` is written for.
const CARGO_DEB: &str = "3.8.0";

const PROGRAMS: [Program; 3] = [
    Program::of("debootstrap", "debootstrap"),
    // Finds the libraries that the binary depends on, and the packages that have them.
    Program::of("dpkg-shlibdeps", "dpkg-dev"),
    Program::of("strip", "binutils"),
];

/// Builds the package and tries it.
pub(crate) fn dist() -> Result<()> {
    if !shell::is_root() {
        bail!(
            "cannot try the package in a clean system: not root\n\
             help: sudo -E env PATH=\"$PATH\" cargo xtask dist"
        );
    }
    ensure_installed(&PROGRAMS)?;
    let folder = project::target("dist");
    let binary = stripped(&release::build()?.schedlat, &folder)?;
    write_manual(&folder)?;
    let package = package(&tool("cargo-deb", CARGO_DEB)?, &folder)?;

    println!("dist: trying {} in a clean system", package.display());
    let root = CleanRoot::make(&project::target("dist-root"))?;
    root.install(&package)?;
    root.check_doctor(&binary)?;
    root.check_completion()?;
    root.purge()?;
    for made in [&binary, &package] {
        println!("{}: {} bytes", made.display(), fs::metadata(made)?.len());
    }
    Ok(())
}

fn stripped(binary: &Path, folder: &Path) -> Result<PathBuf> {
    let stripped = folder.join("schedlat");
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    shell::run(Command::new("strip").arg("-o").arg(&stripped).arg(binary))?;
    Ok(stripped)
}

fn write_manual(folder: &Path) -> Result<()> {
    let mut run = shell::cargo();
    run.current_dir(project::root())
        .args(["run", "--quiet", "--release", "--package", "latency-manual"])
        .arg("--target-dir")
        .arg(project::target(""))
        .arg("--")
        .arg(folder);
    shell::run(&mut run)
}

fn package(cargo_deb: &Path, folder: &Path) -> Result<PathBuf> {
    for old in packages(folder)? {
        fs::remove_file(&old).with_context(|| format!("cannot remove {}", old.display()))?;
    }
    let mut command = Command::new(cargo_deb);
    command
        .current_dir(project::root())
        .args(["--package", "latency-user", "--no-build", "--strip"])
        .arg("--output")
        .arg(folder)
        .env("CARGO_TARGET_DIR", project::target(""));
    shell::run(&mut command)?;
    match <[PathBuf; 1]>::try_from(packages(folder)?) {
        Ok([package]) => Ok(package),
        Err(packages) => bail!("cargo-deb made {} packages", packages.len()),
    }
}

fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut packages = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "deb") {
            packages.push(path);
        }
    }
    Ok(packages)
}
