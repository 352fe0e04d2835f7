//! `cargo xtask check` and `cargo xtask ci`: what has to hold before a change is taken.
//!
//! Promises: the same on a laptop and in `.ci/run`; stops at the first check that fails.
//! Leaves to others: the tests ([`crate::test`]) and the check of the object ([`crate::check_ebpf`]).

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::setup::setup;
use crate::test::{Arguments, test};
use crate::{build_ebpf, check_ebpf, project, shell};

/// Everything that needs no running kernel, then all tests.
pub(crate) fn ci() -> Result<()> {
    check()?;
    test(&Arguments::default())
}

/// Formatting, lints of both targets, the committed object, and the documentation.
pub(crate) fn check() -> Result<()> {
    step("formatting", cargo().args(["fmt", "--all", "--check"]))?;
    step(
        "formatting of the fuzz targets",
        cargo().args(["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]),
    )?;
    step(
        "lints",
        cargo()
            .args([
                "clippy",
                "--quiet",
                "--workspace",
                "--exclude",
                "latency-ebpf",
            ])
            .args(["--features", "latency-user/fuzz"])
            .args(["--all-targets", "--", "-D", "warnings"]),
    )?;
    step(
        "lints of the BPF programs",
        build_ebpf::cargo(project::root(), &setup()?, "clippy")?.args([
            "--release",
            "--",
            "-D",
            "warnings",
        ]),
    )?;
    println!("check: the committed object");
    check_ebpf::check_ebpf()?;
    step(
        "documentation",
        cargo()
            .args([
                "doc",
                "--quiet",
                "--workspace",
                "--exclude",
                "latency-ebpf",
                "--no-deps",
            ])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn cargo() -> Command {
    let mut cargo = shell::cargo();
    cargo.current_dir(project::root());
    cargo
}

fn step(name: &str, command: &mut Command) -> Result<()> {
    println!("check: {name}");
    shell::run(command).with_context(|| format!("check of {name} failed"))
}
