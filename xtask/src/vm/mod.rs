//! `cargo xtask vm`: runs the guest's checks on other kernels, in emulated machines.
//!
//! Promises: each kernel ends in a verdict of its own guest, or in a failure that shows the end of
//! its console; the whole console is kept under `target/vm`.
//! Leaves to others: what each machine is ([`plan`]), the kernels ([`kernel`]), what the machine boots ([`initramfs`]), running it
//! ([`machine`]), and the checks themselves, which are the package `latency-tests`.

use std::path::Path;
use std::sync::Mutex;
use std::thread;

use anyhow::{Result, bail};
use clap::Args;

use crate::debian::install::{Program, ensure_installed};
use crate::{project, release};

mod clock;
mod initramfs;
mod kernel;
mod machine;
mod plan;

use kernel::Kernel;
use plan::Plan;

/// The programs that running a machine needs.
pub(crate) const PROGRAMS: [Program; 2] = [
    Program::of("qemu-system-x86_64", "qemu-system-x86"),
    Program::of("busybox", "busybox-static"),
];

/// Kernels that schedlat works on: the oldest that Debian has, the one of the current stable, and the
/// newest there is, each with its real-time build; those that it has to refuse; and a machine with
/// more than one kind of neighbour. The longest run first, so that they end together.
const MATRIX: [&str; 8] = [
    "6.12-topology",
    "newest-rt",
    "newest",
    "6.12-rt",
    "6.12",
    "6.1",
    "6.1-rt",
    "5.10",
];

/// Which kernels to run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Arguments {
    /// Kernel series as Debian packages them, or `newest`; with `-rt` the real-time build, with
    /// `-topology` on two sockets of two cores of two threads
    #[arg(value_name = "KERNEL", default_values = MATRIX)]
    series: Vec<String>,
    /// Do not fail when a kernel cannot be fetched
    #[arg(long)]
    allow_missing: bool,
    /// Run only the checks whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            series: MATRIX.map(str::to_owned).to_vec(),
            allow_missing: false,
            only: None,
        }
    }
}

/// Boots each kernel and reports its verdict.
pub(crate) fn vm(arguments: &Arguments) -> Result<()> {
    ensure_installed(&PROGRAMS)?;
    let image = project::target("vm").join("initramfs.cpio");
    initramfs::write(&image, &release::build()?)?;

    let mut failed = Vec::new();
    let mut kernels = Vec::new();
    // One after the other, since several series come from the same suites.
    for series in &arguments.series {
        let plan = Plan::of(series, arguments.only.as_deref());
        match kernel::fetch(plan) {
            Ok(kernel) => kernels.push((plan, kernel)),
            Err(error) if arguments.allow_missing || plan.is_optional() => {
                println!("vm {series}: skipped: {error:#}");
            }
            Err(error) => {
                eprintln!("vm {series}: cannot fetch the kernel: {error:#}");
                failed.push(series.as_str());
            }
        }
    }
    failed.extend(run_all(&kernels, &image));
    if !failed.is_empty() {
        bail!(
            "{} of {} machines failed: {}\nhelp: cargo xtask vm {}",
            failed.len(),
            arguments.series.len(),
            failed.join(", "),
            failed.join(" ")
        );
    }
    Ok(())
}

/// Downloads the kernels of the matrix. [`vm`] tells of one that cannot be had, when it asks for it again.
pub(crate) fn fetch_ahead() {
    for series in MATRIX {
        drop(kernel::fetch(Plan::of(series, None)));
    }
}

/// Runs as many machines at once as there are CPUs, since each keeps one busy, and returns the
/// series that failed.
fn run_all<'a>(kernels: &[(Plan<'a>, Kernel)], image: &Path) -> Vec<&'a str> {
    let queue = Mutex::new(kernels.iter());
    let next = || queue.lock().ok()?.next();
    let work = || {
        let mut failed = Vec::new();
        while let Some((plan, kernel)) = next() {
            // An emulator is at the mercy of its host: a fault of ours fails twice.
            let outcome = machine::run(*plan, kernel, image).or_else(|error| {
                println!("vm {}: failed, and run once more: {error:#}", plan.name);
                machine::run(*plan, kernel, image)
            });
            if let Err(error) = outcome {
                eprintln!("vm {}: {error:#}", plan.name);
                failed.push(plan.name);
            }
        }
        failed
    };
    let n_workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..n_workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_default())
            .collect()
    })
}
