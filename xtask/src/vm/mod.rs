//! `cargo xtask vm`: runs the guest's checks on other kernels, in emulated machines.
//!
//! Promises: each kernel ends in a verdict of its own guest, or in a failure that shows the end of
//! its console; the whole console is kept under `target/vm`.
//! Leaves to others: what each machine is ([`plan`]), what its architecture takes ([`architecture`]), the
//! kernels ([`kernel`]), what the machine boots ([`initramfs`]), running it ([`machine`]), and the checks
//! themselves, which are the package `latency-tests`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use anyhow::{Result, bail};
use clap::Args;

mod architecture;
mod clock;
mod initramfs;
mod kernel;
mod lockdep;
mod machine;
mod plan;

use architecture::Architecture;
use kernel::Kernel;
use plan::Plan;

/// Kernels that schedlat works on: the oldest that Debian has, the one of the current stable, and the
/// newest there is, each with its real-time build; those that it has to refuse; a machine with more than
/// one kind of neighbour; and one of another architecture. The longest run first, so that they end together.
const MATRIX: [&str; 9] = [
    "6.12-topology",
    "6.12-arm64",
    "newest-rt",
    "newest",
    "6.12-rt",
    "6.12",
    "6.1",
    "6.1-rt",
    "5.10",
];

/// Which machines to run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// Kernel series as Debian packages them, or `newest`; with `-rt` the real-time build, with
    /// `-lockdep` one that watches its locks, built here from the sources, with `-arm64`
    /// that architecture, with `-topology` on two sockets of two cores of two threads (in this order);
    /// none is the whole matrix
    #[arg(value_name = "MACHINE")]
    names: Vec<String>,
    /// Do not fail when what a machine needs cannot be had
    #[arg(long)]
    allow_missing: bool,
    /// Run only the checks whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// A machine, its kernel, and what that boots.
type Ready<'a> = (Plan<'a>, Kernel, PathBuf);

/// Boots each machine and reports its verdict.
pub(crate) fn vm(arguments: &Arguments) -> Result<()> {
    let names: Vec<_> = arguments.names.iter().map(String::as_str).collect();
    let is_matrix = names.is_empty();
    let names = if is_matrix { MATRIX.to_vec() } else { names };

    let mut failed = Vec::new();
    let mut machines = Vec::new();
    let mut images = BTreeMap::new();
    // One after the other, since several kernels come from the same suites.
    for name in &names {
        let plan = Plan::of(name, arguments.only.as_deref());
        match make_ready(plan, &mut images) {
            Ok(machine) => machines.push(machine),
            Err(error) if arguments.allow_missing || (is_matrix && plan.is_optional()) => {
                println!("vm {name}: skipped: {error:#}");
            }
            Err(error) => {
                eprintln!("vm {name}: cannot get what it needs: {error:#}");
                failed.push(*name);
            }
        }
    }
    failed.extend(run_all(&machines));
    if !failed.is_empty() {
        bail!(
            "{} of {} machines failed: {}\nhelp: cargo xtask vm {}",
            failed.len(),
            names.len(),
            failed.join(", "),
            failed.join(" ")
        );
    }
    Ok(())
}

/// The kernel of a machine, and the programs to build and run the rest of it.
fn fetch(plan: Plan<'_>) -> Result<Kernel> {
    plan.architecture.ensure_buildable()?;
    kernel::fetch(plan)
}

fn make_ready<'a>(
    plan: Plan<'a>,
    images: &mut BTreeMap<Architecture, PathBuf>,
) -> Result<Ready<'a>> {
    let kernel = fetch(plan)?;
    Ok((plan, kernel, image_of(plan, images)?))
}

/// The machines of an architecture boot the same, which is built once.
fn image_of(plan: Plan<'_>, images: &mut BTreeMap<Architecture, PathBuf>) -> Result<PathBuf> {
    let architecture = plan.architecture;
    if let Some(image) = images.get(&architecture) {
        return Ok(image.clone());
    }
    let image = initramfs::build(architecture)?;
    images.insert(architecture, image.clone());
    Ok(image)
}

/// Gets what the machines of the matrix need. [`vm`] tells of what cannot be had, when it asks again.
pub(crate) fn fetch_ahead() {
    for name in MATRIX {
        drop(fetch(Plan::of(name, None)));
    }
}

/// Runs as many machines at once as there are CPUs, since each keeps one busy, and returns the
/// names of those that failed.
fn run_all<'a>(machines: &[Ready<'a>]) -> Vec<&'a str> {
    let queue = Mutex::new(machines.iter());
    let next = || queue.lock().ok()?.next();
    let work = || {
        let mut failed = Vec::new();
        while let Some((plan, kernel, image)) = next() {
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
