//! `cargo xtask build-ebpf`: builds the BPF programs and writes the object that is committed.
//!
//! Promises: the same bytes in any folder, with the library sources in any place, so that the
//! object can be compared with a rebuild; a digest of the sources beside it for `build.rs`.
//! Leaves to others: the tools ([`crate::setup`]) and removing the debug information
//! ([`crate::strip`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow};

use crate::setup::{Toolchain, setup};
use crate::{ebpf_digest, project, shell, strip, sysroot};

const TARGET: &str = "bpfel-unknown-none";
const PACKAGE: &str = "latency-ebpf";
const BINARY: &str = "schedlat";

/// Rebuilds the committed object and its digests.
pub(crate) fn build_ebpf() -> Result<()> {
    let root = project::root();
    let object = compile(root, &setup()?)?;
    let record = ebpf_digest::record(root, &object).context("cannot read the BPF sources")?;
    let path = root.join(ebpf_digest::OBJECT);
    write(&path, &object)?;
    write(&root.join(ebpf_digest::RECORD), record.as_bytes())?;
    println!("{}: {} bytes", ebpf_digest::OBJECT, object.len());
    Ok(())
}

/// The stripped object that the sources in `root` give.
pub(crate) fn compile(root: &Path, toolchain: &Toolchain) -> Result<Vec<u8>> {
    let mut build = cargo(root, toolchain, "build")?;
    shell::run(build.args(["--release", "--bin", BINARY]))?;
    let path = root
        .join("target/bpf")
        .join(TARGET)
        .join("release")
        .join(BINARY);
    let object = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    strip::without_debug_sections(&object)
        .map_err(|error| anyhow!("cannot strip {}: {error}", path.display()))
}

/// `cargo SUBCOMMAND` for the BPF package in `root`, with everything a BPF target needs.
pub(crate) fn cargo(root: &Path, toolchain: &Toolchain, subcommand: &str) -> Result<Command> {
    let folder = root.join("target/bpf");
    let sysroot = sysroot::assemble(&folder.join("sysroot"), toolchain)?;
    let mut cargo = shell::cargo();
    cargo
        .current_dir(root)
        .args([
            subcommand,
            "--quiet",
            "--locked",
            "--package",
            PACKAGE,
            "--target",
            TARGET,
        ])
        // A folder of its own: other flags in the same one would rebuild everything each time.
        .args(["-Z", "build-std=core", "--target-dir"])
        .arg(&folder)
        .env("RUSTC", &sysroot.rustc)
        .env("RUSTC_BOOTSTRAP", "1")
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            rustflags(root, &sysroot.library)?,
        )
        .env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", &toolchain.linker)
        .env_remove("RUSTFLAGS");
    Ok(cargo)
}

fn rustflags(root: &Path, library: &Path) -> Result<String> {
    let mut flags = vec![
        r#"--cfg=bpf_target_arch="x86_64""#.to_owned(),
        "-Cdebuginfo=2".to_owned(),
        // Instructions of 5.1 and later: 32-bit arithmetic and more jumps, a quarter less code.
        "-Ctarget-cpu=v3".to_owned(),
        "-Clink-arg=--btf".to_owned(),
    ];
    // The last match wins. Cargo names what lies inside the project by relative paths.
    let cargo_home = shell::cargo_home()?;
    let relative = library.strip_prefix(root).unwrap_or(library);
    let mut names = vec![
        (root.to_path_buf(), "/schedlat"),
        (cargo_home.clone(), "/cargo"),
    ];
    names.extend(registries(&cargo_home).map(|registry| (registry, "/registry")));
    names.extend([library, relative].map(|path| (path.to_path_buf(), "/rust/library")));
    for (path, name) in names {
        flags.push(format!("--remap-path-prefix={}={name}", path.display()));
    }
    Ok(flags.join("\u{1f}"))
}

/// Where cargo unpacks packages: a folder named after the registry, which may be a mirror.
fn registries(cargo_home: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir(cargo_home.join("registry/src"));
    folders
        .into_iter()
        .flatten()
        .flatten()
        .map(|folder| folder.path())
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
