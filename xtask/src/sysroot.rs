//! A toolchain folder of our own, made of links, that has the standard library's sources inside.
//!
//! Why: cargo hashes the place of those sources into every symbol name, relative to the toolchain's
//! folder when they lie in it, else by their absolute path. The committed object must be the same
//! bytes wherever the sources came from.
//! Promises: changes nothing in the real toolchain, and nothing at all when all links are right.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::setup::Toolchain;

/// The assembled folder.
#[derive(Debug)]
pub(crate) struct Sysroot {
    /// A compiler that takes it for its own.
    pub(crate) rustc: PathBuf,
    /// The sources of the standard library inside it.
    pub(crate) library: PathBuf,
}

/// Links the toolchain's host libraries and the library sources into `folder`.
pub(crate) fn assemble(folder: &Path, toolchain: &Toolchain) -> Result<Sysroot> {
    let rustlib = folder.join("lib/rustlib");
    let real = toolchain.sysroot.join("lib/rustlib");
    let entries = fs::read_dir(&real).with_context(|| format!("cannot read {}", real.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", real.display()))?;
        if entry.file_name() != "src" && entry.path().is_dir() {
            link(&entry.path(), &rustlib.join(entry.file_name()))?;
        }
    }
    let library = rustlib.join("src/rust/library");
    link(&toolchain.library, &library)?;

    let rustc = folder.join("rustc");
    let script = format!(
        "#!/bin/sh\nexec '{}' --sysroot '{}' \"$@\"\n",
        toolchain.sysroot.join("bin/rustc").display(),
        folder.display()
    );
    // A new modification time would make cargo rebuild everything.
    if fs::read_to_string(&rustc).ok().as_ref() != Some(&script) {
        fs::write(&rustc, script)
            .and_then(|()| fs::set_permissions(&rustc, Permissions::from_mode(0o755)))
            .with_context(|| format!("cannot write {}", rustc.display()))?;
    }
    Ok(Sysroot { rustc, library })
}

fn link(target: &Path, link: &Path) -> Result<()> {
    if fs::read_link(link).is_ok_and(|current| current == target) {
        return Ok(());
    }
    let replace = || {
        if let Some(folder) = link.parent() {
            fs::create_dir_all(folder)?;
        }
        if link.is_symlink() {
            fs::remove_file(link)?;
        }
        symlink(target, link)
    };
    replace().with_context(|| format!("cannot link {} to {}", link.display(), target.display()))
}
