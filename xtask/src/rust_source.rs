//! The sources of the standard library of the very rustc in use, from which `core` is built for BPF.
//!
//! Promises: the same version as rustc, or an error that lists what was tried. Tried in turn: the
//! folder or archive in `SCHEDLAT_RUST_SRC`, the toolchain's own copy, an earlier find under
//! `target/`, the `rust-src` component, and Debian's `rust-src` package.
//! Leaves to others: the build itself.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::debian::archive::{Archive, Package};
use crate::{project, shell};

/// Names a `library/` folder, or a tar archive of one, to use before anything else.
const OVERRIDE: &str = "SCHEDLAT_RUST_SRC";

/// The Debian suite that carries `rust-src` of many recent versions side by side.
const SUITE: &str = "trixie-backports";

/// Finds the folder `library`, fetching it if need be.
pub(crate) fn locate(sysroot: &Path) -> Result<PathBuf> {
    let version = rustc_version()?;
    if let Some(named) = env::var_os(OVERRIDE) {
        return from_override(Path::new(&named), &version);
    }
    let own = sysroot.join("lib/rustlib/src/rust/library");
    let unpacked = unpacked(&version);
    if let Some(present) = [&own, &unpacked]
        .into_iter()
        .find(|library| is_complete(library))
    {
        return Ok(present.clone());
    }
    let component = add_component();
    if is_complete(&own) {
        return Ok(own);
    }
    from_debian(&version, &unpacked).map_err(|package| {
        let component = component
            .err()
            .unwrap_or_else(|| anyhow!("it came without sources"));
        anyhow!(
            "cannot find the standard library's sources of Rust {version}\n  \
             component rust-src: {component:#}\n  \
             Debian package rust-src: {package:#}\n\
             help: {OVERRIDE}=/path/to/library cargo xtask setup"
        )
    })?;
    Ok(unpacked)
}

fn is_complete(library: &Path) -> bool {
    // The lock file is what cargo needs first, and is unpacked beside the crates.
    library.join("Cargo.lock").is_file() && library.join("core/src/lib.rs").is_file()
}

fn rustc_version() -> Result<String> {
    let version = shell::capture(Command::new("rustc").arg("--version"))?;
    let number = version.split_whitespace().nth(1);
    number
        .map(str::to_owned)
        .with_context(|| format!("cannot find a version in '{version}'"))
}

fn unpacked(version: &str) -> PathBuf {
    project::target("rust-src").join(version).join("library")
}

fn from_override(named: &Path, version: &str) -> Result<PathBuf> {
    let library = if named.is_dir() {
        named.canonicalize()?
    } else {
        let folder = project::target("rust-src").join(format!("{version}-from-archive"));
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        shell::run(
            Command::new("tar")
                .arg("-xf")
                .arg(named)
                .arg("-C")
                .arg(&folder),
        )?;
        folder.join("library")
    };
    if !is_complete(&library) {
        bail!(
            "{OVERRIDE}={} holds no sources of the standard library\n\
             help: it must be a folder `library` with Cargo.lock and core/, or a tar archive of it",
            named.display()
        );
    }
    Ok(library)
}

fn add_component() -> Result<()> {
    let mut rustup = Command::new("rustup");
    rustup
        .args(["component", "add", "rust-src"])
        .env_remove("RUST_BACKTRACE");
    shell::capture(&mut rustup).map(drop)
}

fn from_debian(version: &str, library: &Path) -> Result<()> {
    let archive = Archive::open(SUITE, None)?;
    let packages = archive.versions(&["rust-src"])?;
    let upstream = |package: &&Package| {
        package
            .version
            .split(['+', '-', '~'])
            .next()
            .is_some_and(|upstream| upstream == version)
    };
    let package = packages.iter().find(upstream).with_context(|| {
        let versions: Vec<_> = packages
            .iter()
            .map(|package| package.version.as_str())
            .collect();
        format!(
            "Debian {SUITE} has rust-src {}, not {version}",
            versions.join(", ")
        )
    })?;
    let scratch = project::target("rust-src").join("package");
    archive.unpack(package, &scratch)?;

    if let Some(folder) = library.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let sources = scratch.join(format!("usr/src/rustc-{version}/library"));
    fs::rename(&sources, library).with_context(|| {
        format!(
            "cannot find {} in rust-src {}",
            sources.display(),
            package.version
        )
    })?;
    fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))
}
