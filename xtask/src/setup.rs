//! `cargo xtask setup`: what rebuilding the BPF object needs beyond a stable Rust.
//!
//! Owns: the version of bpf-linker. Promises: does nothing when everything is there, and never
//! touches the system outside the cargo home, the toolchain's own components and `target/`.
//! Leaves to others: where the standard library's sources come from ([`crate::rust_source`]).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{rust_source, shell};

/// The last bpf-linker whose LLVM is the one inside rustc 1.95; later ones need a system LLVM.
const BPF_LINKER: &str = "0.10.3";

/// What a BPF build is done with.
#[derive(Debug)]
pub(crate) struct Toolchain {
    /// The folder of the Rust toolchain.
    pub(crate) sysroot: PathBuf,
    pub(crate) linker: PathBuf,
    /// The sources of the standard library.
    pub(crate) library: PathBuf,
}

/// Makes everything available that the BPF build needs.
pub(crate) fn setup() -> Result<Toolchain> {
    let sysroot = sysroot()?;
    let linker = bpf_linker()?;
    let library = rust_source::locate(&sysroot)?;
    Ok(Toolchain {
        sysroot,
        linker,
        library,
    })
}

/// The folder of the Rust toolchain.
pub(crate) fn sysroot() -> Result<PathBuf> {
    let path = shell::capture(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok(path.trim_end().into())
}

fn bpf_linker() -> Result<PathBuf> {
    let installed = shell::cargo_home()?.join("bin/bpf-linker");
    let candidates = [Some(installed.clone()), shell::find_program("bpf-linker")];
    if let Some(found) = candidates
        .into_iter()
        .flatten()
        .find(|linker| is_wanted(linker))
    {
        return Ok(found);
    }
    let mut install = shell::cargo();
    install.args([
        "install",
        "--locked",
        "--force",
        "bpf-linker",
        "--version",
        BPF_LINKER,
    ]);
    shell::run(&mut install).with_context(|| {
        format!(
            "cannot install bpf-linker {BPF_LINKER}\n\
             help: cargo install --locked bpf-linker --version {BPF_LINKER}"
        )
    })?;
    Ok(installed)
}

fn is_wanted(linker: &Path) -> bool {
    shell::capture(Command::new(linker).arg("--version"))
        .is_ok_and(|version| version.split_whitespace().any(|word| word == BPF_LINKER))
}
