//! A machine whose CPUs are siblings, share a cache, or share nothing.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::checks::{FEW, check_counts, is_named};
use crate::{check, load::Load, probe, report::Report, schedlat::Schedlat};

/// A relation of two CPUs, in the words of `--placement`.
const PLACEMENTS: [&str; 4] = ["same", "smt", "llc", "cross"];

/// How two CPUs are related, by what the machine was made of: a socket has one last-level cache.
fn relation(one: u64, other: u64) -> Result<&'static str> {
    let of = |cpu: u64, file: &str| -> Result<String> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
        fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    };
    let is_same = |file| Ok::<_, anyhow::Error>(of(one, file)? == of(other, file)?);
    Ok(if one == other {
        "same"
    } else if !is_same("physical_package_id")? {
        "cross"
    } else if is_same("core_id")? {
        "smt"
    } else {
        "llc"
    })
}

/// Two CPUs of each relation, the first one far from CPU 0, which has the machine's interrupts.
fn pairs() -> Result<Vec<(&'static str, [u64; 2])>> {
    let pair = |wanted| {
        for other in (0..8).rev() {
            if relation(7, other)? == wanted {
                return Ok((wanted, [7, other]));
            }
        }
        anyhow::bail!("this machine has no two CPUs {wanted}")
    };
    PLACEMENTS.into_iter().map(pair).collect()
}

/// The probe finds every placement by itself, its threads run there, and wakeups go there.
pub(super) fn pingpong() -> Result<String> {
    let line = format!(
        "pingpong --cpu 0-7 --transport pipe --placement {} --runs 1 --for 1s --strict",
        PLACEMENTS.join(",")
    );
    let document = probe::probe(&line).run()?.success()?.only_document()?;
    let warnings = document["warnings"].to_string();
    ensure!(!warnings.contains("no_placement"), "{warnings}");
    let series = document["series"].as_array().context("no series")?;
    let mut said = Vec::new();
    for placement in PLACEMENTS {
        let is_it = |it: &&Value| it["placement"] == placement;
        let mut of_it = series.iter().filter(is_it);
        let one = of_it.next().with_context(|| format!("no {placement}"))?;
        ensure!(of_it.next().is_none(), "{placement} twice");
        said.push(is_placed(placement, one)?);
    }
    Ok(said.join(", "))
}

fn is_placed(placement: &str, series: &Value) -> Result<String> {
    let cpus = series["cpus"].as_array().context("no CPUs")?;
    let cpus: Vec<u64> = cpus.iter().filter_map(Value::as_u64).collect();
    let [one, other] = cpus[..] else {
        anyhow::bail!("{placement}: {cpus:?}");
    };
    let is_really = relation(one, other)?;
    ensure!(
        is_really == placement,
        "{cpus:?} are {is_really}, not {placement}"
    );
    let (verdict, share) = if placement == "same" {
        ("on one CPU", "local_pct")
    } else {
        ("across CPUs", "remote_pct")
    };
    ensure!(series["verdict"] == verdict, "{series}");
    let share = series[share].as_f64().context("no share of wakeups")?;
    ensure!(share > 99.0, "{placement}: {share} % of the wakeups");
    ensure!(series["migrations"] == 0, "{series}");
    Ok(format!("{placement} {one}-{other}"))
}

/// Each wakeup of a pair of processes is booked to the class of the two CPUs.
pub(super) fn wakeups() -> Result<String> {
    let mut said = Vec::new();
    for (placement, [one, other]) in pairs()? {
        let line = format!("pipe 3600 --cpu {one} --peer-cpu {other}");
        let load = Load::workload(&line)?;
        let report = record(&load, 1_500)?;
        let (mut all, mut of_class) = (0, 0);
        for tid in load.tids.iter().copied().chain([load.pid()]) {
            let placements = report.task(tid)?.stats.attribution.wake_path()?.placements;
            let (same, cache, far) = (
                placements.same_cpu.count,
                placements.same_cache.count,
                placements.other_cache.count,
            );
            all += same + cache + far;
            of_class += match placement {
                "same" => same,
                "cross" => far,
                _ => cache,
            };
        }
        ensure!(all > FEW, "{placement}: {all} wakeups");
        // A signal of the recorder's or a timer may wake one of them, too.
        check::share(placement, of_class, all, 0.98)?;
        said.push(format!("{placement} {of_class}/{all}"));
    }
    Ok(said.join(", "))
}

fn record(load: &Load, for_ms: u64) -> Result<Report> {
    let mut recorder = Schedlat::record().pid(load.pid());
    for tid in &load.tids {
        recorder = recorder.args(&format!("--tid {tid}"));
    }
    let recording = recorder.start()?;
    thread::sleep(Duration::from_millis(for_ms));
    let report = recording.stop()?;
    check_counts(&report)?;
    Ok(report)
}

/// A task on one socket wakes a real-time task on the other one, which takes the CPU from a burner:
/// the cause is seen although it happens on another CPU than the wakeup.
pub(super) fn remote_preemption() -> Result<String> {
    let pairs = pairs()?;
    let (_, [there, here]) = pairs.last().context("no pair across")?;
    let burner = Load::workload(&format!("burn 3600 --cpu {there}"))?;
    let waker =
        format!("wake 100000 --interval-us 10000 --fifo 50 --cpu {here} --peer-cpu {there}");
    let _waker = Load::workload(&waker)?;
    let report = record(&burner, 4_000)?;
    let row = report.task(burner.pid())?;
    let count = row.stats.cause("higher_class").count;
    ensure!(count > FEW, "{:?}", row.stats.causes);
    let named = is_named(row, "higher_class", "wakee");
    check::share("losses to the woken task", named, count, 0.9)?;
    Ok(format!("{count} waits"))
}
