//! Refuses to build with a BPF object that does not come from the sources beside it.
//!
//! Promises: a build needs only a stable Rust, because the object is committed; a stale, missing or
//! damaged object stops it with the command that mends it. A package without the sources beside it
//! is built from the object as it is.
//! Leaves to others: what counts as a source (`ebpf_digest.rs`).

use std::fs;
use std::path::Path;
use std::process::ExitCode;

mod ebpf_digest;

fn main() -> ExitCode {
    match check(Path::new(env!("CARGO_MANIFEST_DIR"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            println!("cargo::error={problem}");
            println!("cargo::error=help: cargo xtask build-ebpf");
            ExitCode::FAILURE
        }
    }
}

fn check(package: &Path) -> Result<(), String> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=ebpf_digest.rs");
    println!("cargo::rerun-if-changed=bpf");
    let root = package.parent().unwrap_or(package);
    let read = |name: &str| {
        let path = root.join(name);
        fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    if !ebpf_digest::SOURCES
        .iter()
        .all(|source| root.join(source).exists())
    {
        return Ok(());
    }
    for source in ebpf_digest::SOURCES.into_iter().chain(["Cargo.lock"]) {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }

    let object = read(ebpf_digest::OBJECT)?;
    let recorded = read(ebpf_digest::RECORD)?;
    let expected = ebpf_digest::record(root, &object)
        .map_err(|error| format!("cannot read the BPF sources: {error}"))?;
    if recorded == expected.as_bytes() {
        Ok(())
    } else {
        Err("the committed BPF object does not come from the BPF sources beside it".to_owned())
    }
}
