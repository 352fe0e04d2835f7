//! The digest that ties the committed BPF object to the sources it was built from.
//!
//! Owns: which files count as sources, and the two lines of `bpf/schedlat.bpf.sha256`.
//! Promises: the same digest for the same sources in any folder, so that `build.rs`, which refuses
//! a stale object, and `cargo xtask build-ebpf`, which writes it, cannot disagree: both include
//! this file.
//! Leaves to others: proving that the object really comes from the sources (`check-ebpf`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The committed object, relative to the root of the project.
pub(crate) const OBJECT: &str = "latency-user/bpf/schedlat.bpf.o";

/// The digests committed beside the object, relative to the root of the project.
pub(crate) const RECORD: &str = "latency-user/bpf/schedlat.bpf.sha256";

/// The files and folders whose content decides what the object is.
pub(crate) const SOURCES: [&str; 4] = [
    "latency-common/Cargo.toml",
    "latency-common/src",
    "latency-ebpf/Cargo.toml",
    "latency-ebpf/src",
];

/// The packages that decide it too, by the version in `Cargo.lock`.
const PACKAGES: [&str; 2] = ["aya-ebpf", "aya-log-ebpf"];

/// What `bpf/schedlat.bpf.sha256` must say for this object and the sources in `root`.
pub(crate) fn record(root: &Path, object: &[u8]) -> io::Result<String> {
    let sources = hex(&sources_digest(root)?);
    let object = hex(&Sha256::digest(object));
    Ok(format!("{sources}  sources\n{object}  schedlat.bpf.o\n"))
}

fn sources_digest(root: &Path) -> io::Result<Vec<u8>> {
    let mut files = Vec::new();
    for source in SOURCES {
        collect_files(&root.join(source), &mut files)?;
    }
    files.sort();

    let mut digest = Sha256::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file);
        let content = fs::read(&file)?;
        // The lengths keep a byte that moves from one file to the next from going unnoticed.
        digest.update(format!("{} {}\n", name.display(), content.len()));
        digest.update(content);
    }
    let lock = fs::read_to_string(root.join("Cargo.lock"))?;
    for package in PACKAGES {
        digest.update(format!("{package} {}\n", locked_version(&lock, package)));
    }
    Ok(digest.finalize().to_vec())
}

fn collect_files(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect_files(&entry?.path(), files)?;
        }
    } else {
        files.push(path.to_path_buf());
    }
    Ok(())
}

/// The version of `package` in a `Cargo.lock`, or nothing when it is not there.
fn locked_version<'lock>(lock: &'lock str, package: &str) -> &'lock str {
    let name = format!("name = \"{package}\"");
    lock.lines()
        .skip_while(|line| *line != name)
        .nth(1)
        .and_then(|line| line.strip_prefix("version = \""))
        .and_then(|version| version.strip_suffix('"'))
        .unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
