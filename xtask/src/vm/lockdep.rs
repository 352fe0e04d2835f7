//! A kernel that watches its own locks, which Debian does not package: built from Debian's sources.
//!
//! Promises: built once for each version, from a configuration that has little beside what is observed;
//! takes minutes, and two gigabytes below `target/vm` while it does.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};

use super::architecture::Architecture;
use crate::debian::archive::{Archive, Package};
use crate::debian::install::{Program, ensure_installed};
use crate::{project, shell};

const PROGRAMS: [Program; 9] = [
    Program::of("make", "make"),
    Program::of("gcc", "gcc"),
    Program::of("flex", "flex"),
    Program::of("bison", "bison"),
    Program::of("bc", "bc"),
    Program::of("pahole", "dwarves"),
    Program::of("xz", "xz-utils"),
    Program::of("/usr/include/libelf.h", "libelf-dev"),
    Program::of("/usr/include/zlib.h", "zlib1g-dev"),
];

/// Options that are on; all others are off, or as these need them.
const OPTIONS: &str = include_str!("lockdep.config");

/// What an image is called by beside its version, so that other options make another one.
pub(super) fn digest() -> String {
    let digest = Sha256::digest(OPTIONS);
    digest
        .iter()
        .take(4)
        .fold("-".to_owned(), |name, byte| name + &format!("{byte:02x}"))
}

/// Builds the kernel whose sources the package has, and keeps its image.
pub(super) fn build(
    archive: &Archive,
    package: &Package,
    architecture: Architecture,
    image: &Path,
) -> Result<()> {
    if architecture != Architecture::Amd64 {
        bail!("a kernel with lockdep is only built for this machine's architecture");
    }
    ensure_installed(&PROGRAMS)?;
    let folder = project::target("vm").join("lockdep");
    // What a build that was ended left behind may be half written.
    if folder.exists() {
        remove(&folder)?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    println!("building {} {} with lockdep", package.name, package.version);
    let sources = folder.join("sources.tar.xz");
    archive.extract(package, "*/linux-source-*.tar.xz", &sources)?;
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(&sources);
    tar.arg("--strip-components=1")
        .arg("--directory")
        .arg(&folder);
    shell::run(&mut tar)?;

    let options = folder.join("schedlat.config");
    fs::write(&options, OPTIONS).with_context(|| format!("cannot write {}", options.display()))?;
    shell::capture(
        make(&folder)
            .arg("allnoconfig")
            .env("KCONFIG_ALLCONFIG", &options),
    )?;
    let n_jobs = thread::available_parallelism().map_or(1, usize::from);
    shell::capture(make(&folder).arg(format!("--jobs={n_jobs}")).arg("bzImage"))?;
    fs::rename(folder.join("arch/x86/boot/bzImage"), image)
        .with_context(|| format!("cannot keep {}", image.display()))?;
    remove(&folder)
}

fn make(folder: &Path) -> Command {
    let mut make = Command::new("make");
    make.arg("--silent").arg("--directory").arg(folder);
    make
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}
