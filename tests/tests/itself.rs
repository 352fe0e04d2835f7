//! The recorder among the tasks it records: marked as itself, quiet, and not charged to others.

use std::time::Duration;

use anyhow::Result;
use latency_tests::{check, load::Load, observe::Observed, schedlat::Schedlat};

#[test]
fn c089_the_recorder_marks_itself_and_hardly_switches() -> Result<()> {
    let outcome = Schedlat::record()
        .args("--interval 1s --for 5s")
        .run()?
        .success()?;
    let report = outcome.report()?;
    check::sound(&report)?;
    let own: Vec<_> = report.tasks.iter().filter(|row| row.is_self).collect();
    assert!(!own.is_empty(), "the recorder does not find itself");
    for row in &own {
        assert!(
            row.process_comm
                .as_deref()
                .unwrap_or("schedlat")
                .contains("schedlat")
        );
    }
    // How often others preempt it says nothing of the recorder.
    let wakeups: u64 = own.iter().map(|row| row.stats.switches.voluntary).sum();
    assert!(wakeups < 50 * 5, "it slept {wakeups} times in 5 s");
    Ok(())
}

#[test]
fn c032_the_recorders_cost_is_not_charged_to_the_tasks() -> Result<()> {
    let load = Load::workload("pipe 20 --cpu 1 --peer-cpu 1 --nice -15")?;
    let observed = Observed::of(&[&load], Duration::from_secs(3))?;
    check::sound(&observed.report)?;
    check::on_cpu_agrees_with_proc(&observed)
}

#[test]
fn the_cost_is_stated_and_plausible() -> Result<()> {
    let _load = Load::workload("pipe 20 --cpu 1 --peer-cpu 1")?;
    let report = Schedlat::record().args("--for 3s").report()?;
    let cost = report.cost.ns_per_switch.unwrap_or_default();
    assert!((20.0..5_000.0).contains(&cost), "{cost} ns per switch");
    let share = report.cost.cpu_pct.unwrap_or_default();
    assert!((0.0..50.0).contains(&share), "{share} % of a CPU");
    Ok(())
}
