//! `cargo xtask build-ebpf`: builds the BPF programs and writes the object that is committed.
//!
//! Promises: the same bytes in any folder, with the library sources in any place, so that the
//! object can be compared with a rebuild; a digest of the sources beside it for `build.rs`.
//! Leaves to others: the tools ([`crate::setup`]) and removing the debug information
//! ([`crate::strip`]).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow};

use crate::setup::{self, Toolchain};
use crate::{ebpf_digest, project, shell, strip};

const TARGET: &str = "bpfel-unknown-none";
const PACKAGE: &str = "latency-ebpf";
const BINARY: &str = "schedlat";

/// The name that the library sources have in the object, wherever they are.
const LIBRARY: &str = "/rust/library";

/// Rebuilds the committed object and its digests.
pub(crate) fn build_ebpf() -> Result<()> {
    let root = project::root();
    let object = compile(root, &setup::setup()?)?;
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
    let library = link_library(&folder, &toolchain.library)?;
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
        .arg(folder)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", rustflags(root, &library)?)
        .env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", &toolchain.linker)
        .env("__CARGO_TESTS_ONLY_SRC_ROOT", &library)
        .env_remove("RUSTFLAGS");
    Ok(cargo)
}

/// Makes the library sources appear inside the project, always at the same place: cargo hashes
/// the path of what lies outside into every symbol name, and that of what lies inside relative
/// to the project.
fn link_library(folder: &Path, library: &Path) -> Result<PathBuf> {
    let link = folder.join("library");
    if fs::read_link(&link).is_ok_and(|current| current == library) {
        return Ok(link);
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    if link.is_symlink() {
        fs::remove_file(&link).with_context(|| format!("cannot remove {}", link.display()))?;
    }
    symlink(library, &link).with_context(|| format!("cannot create {}", link.display()))?;
    Ok(link)
}

fn rustflags(root: &Path, library: &Path) -> Result<String> {
    let mut flags = vec![
        r#"--cfg=bpf_target_arch="x86_64""#.to_owned(),
        "-Cdebuginfo=2".to_owned(),
        "-Clink-arg=--btf".to_owned(),
    ];
    // The last match wins. Cargo names what lies inside the project by relative paths.
    for (path, name) in [
        (root, "/schedlat"),
        (&shell::cargo_home()?, "/cargo"),
        (&setup::sysroot()?, "/rust"),
        (library, LIBRARY),
        (library.strip_prefix(root).unwrap_or(library), LIBRARY),
    ] {
        flags.push(format!("--remap-path-prefix={}={name}", path.display()));
    }
    Ok(flags.join("\u{1f}"))
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
