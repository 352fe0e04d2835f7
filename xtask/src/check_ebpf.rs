//! `cargo xtask check-ebpf`: proves that the committed BPF object is what the sources give.
//!
//! Promises: rebuilds a copy of the project in another folder, so that a path that leaked into the
//! object shows up as a difference; the committed files are only read.
//! Leaves to others: the build ([`crate::build_ebpf`]).

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::setup::setup;
use crate::{build_ebpf, ebpf_digest, project};

const HELP: &str = "help: cargo xtask build-ebpf, and commit both files in latency-user/bpf";

/// Compares the committed object with a rebuild, byte for byte.
pub(crate) fn check_ebpf() -> Result<()> {
    let root = project::root();
    let read = |name: &str| {
        fs::read(root.join(name)).map_err(|error| anyhow!("cannot read {name}: {error}\n{HELP}"))
    };
    let committed = read(ebpf_digest::OBJECT)?;
    let recorded = read(ebpf_digest::RECORD)?;
    let expected = ebpf_digest::record(root, &committed).context("cannot read the BPF sources")?;
    if recorded != expected.as_bytes() {
        bail!(
            "{} does not match the sources and the object\n{HELP}",
            ebpf_digest::RECORD
        );
    }

    let copy = project::target("check-ebpf").join("copy");
    copy_project(root, &copy)
        .with_context(|| format!("cannot copy the project to {}", copy.display()))?;
    let rebuilt = build_ebpf::compile(&copy, &setup()?)?;
    if rebuilt != committed {
        let kept = project::target("check-ebpf").join("schedlat.bpf.o");
        fs::write(&kept, &rebuilt).with_context(|| format!("cannot write {}", kept.display()))?;
        bail!(
            "{} ({} bytes) is not what its sources give ({} bytes, kept in {}): {}\n{HELP}",
            ebpf_digest::OBJECT,
            committed.len(),
            rebuilt.len(),
            kept.display(),
            first_difference(&committed, &rebuilt),
        );
    }
    println!("{} is what its sources give", ebpf_digest::OBJECT);
    Ok(())
}

fn first_difference(left: &[u8], right: &[u8]) -> String {
    match left
        .iter()
        .zip(right)
        .position(|(left, right)| left != right)
    {
        Some(offset) => format!("they differ from byte {offset} on"),
        None => "one is the beginning of the other".to_owned(),
    }
}

/// Makes `copy` hold the files of `root`; its own `target/` stays, so that a repeat is quick.
fn copy_project(root: &Path, copy: &Path) -> std::io::Result<()> {
    fs::create_dir_all(copy)?;
    for entry in fs::read_dir(copy)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            fs::remove_dir_all(path)?;
        } else if path.is_file() {
            fs::remove_file(path)?;
        }
    }
    copy_folder(root, copy)
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        if source.is_file() {
            fs::copy(&source, &copy)?;
        } else if source.is_dir() && entry.file_name() != "target" && entry.file_name() != ".git" {
            fs::create_dir_all(&copy)?;
            copy_folder(&source, &copy)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    fn check(left: &[u8], right: &[u8], expected: &str) {
        assert_eq!(first_difference(left, right), expected);
    }

    #[test]
    fn first_different_byte_is_named() {
        check(b"abc", b"abd", "they differ from byte 2 on");
    }

    #[test]
    fn truncated_object_is_told_from_a_different_one() {
        check(b"abc", b"ab", "one is the beginning of the other");
    }
}
