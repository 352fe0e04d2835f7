//! Control groups, v1 and v2: rows by path, descendants, and groups that come and go.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use latency_tests::{
    cgroup::Cgroup,
    check,
    load::Load,
    report::{Report, Row},
    schedlat::{Recording, Schedlat, binary},
    truth::nanos,
};

fn burner_in(group: &Cgroup, more: &str) -> Result<Load> {
    Load::workload(&format!(
        "burn 20 {more} --cgroup {}",
        group.directory().display()
    ))
}

/// The one row whose cgroup path ends like the directory of `group`.
fn row_of<'a>(report: &'a Report, group: &Cgroup) -> Result<&'a Row> {
    let name = group
        .directory()
        .file_name()
        .context("a group without a name")?;
    let name = name.to_string_lossy();
    let is_its = |row: &&Row| {
        row.cgroup
            .as_ref()
            .is_some_and(|path| path.ends_with(&*name))
    };
    let mut rows = report.groups.iter().filter(is_its);
    let row = rows.next().with_context(|| {
        let paths: Vec<_> = report.groups.iter().map(|row| row.cgroup.clone()).collect();
        format!("no row for {name}: {paths:?}")
    })?;
    assert!(rows.next().is_none(), "{name} has two rows");
    Ok(row)
}

#[test]
fn c044_groups_of_a_hybrid_host_are_rows_of_their_own() -> Result<()> {
    let groups = [
        Cgroup::with_cpu_controller("a")?,
        Cgroup::with_cpu_controller("b")?,
    ];
    let loads = [
        burner_in(&groups[0], "--cpu 1 --nice -15")?,
        burner_in(&groups[1], "--cpu 1 --nice -15")?,
    ];
    let report = Schedlat::record().args("--by cgroup --for 3s").report()?;
    check::sound(&report)?;
    for group in &groups {
        let row = row_of(&report, group)?;
        assert_eq!(row.n_tasks, 1);
        // Each is one burner: it runs or waits, and its rival has the other half.
        check::runs_or_waits_all_the_time(&report, row)?;
        check::share("waiting", row.stats.waited_ns, report.window_ns(), 0.4)?;
    }
    drop(loads);
    Ok(())
}

#[test]
fn a_cgroup_target_includes_its_descendants_and_nothing_else() -> Result<()> {
    for outer in [Cgroup::with_cpu_controller("outer")?, Cgroup::v2("outer2")?] {
        let inner = outer.child("inner")?;
        let loads = [
            burner_in(&outer, "")?,
            burner_in(&inner, "")?,
            Load::workload("burn 20")?,
        ];
        let report = Schedlat::record()
            .cgroup(outer.directory())
            .args("--for 1s")
            .report()?;
        check::sound(&report)?;
        let mut tids: Vec<_> = report.tasks.iter().filter_map(|row| row.tid).collect();
        tids.sort_unstable();
        let mut expected = vec![loads[0].pid(), loads[1].pid()];
        expected.sort_unstable();
        assert_eq!(tids, expected, "in {}", outer.directory().display());
        // The loads leave first, then the inner group, then the outer one.
        drop((loads, inner));
    }
    Ok(())
}

#[test]
fn a_task_that_joins_the_group_is_observed_from_then_on() -> Result<()> {
    let group = Cgroup::with_cpu_controller("joined")?;
    let load = Load::workload("team 20 --threads 3")?;
    let recording = Schedlat::record().cgroup(group.directory()).start()?;
    thread::sleep(Duration::from_millis(500));
    let moved = Instant::now();
    group.adopt(load.pid())?;
    thread::sleep(Duration::from_secs(1));
    let report = recording.stop()?;
    let since = nanos(moved.elapsed());
    check::sound(&report)?;
    // The whole process moved with one event.
    assert_eq!(report.tasks.len(), 4, "all threads of the process");
    for row in &report.tasks {
        let spent = row.stats.on_cpu_ns + row.stats.waited_ns;
        assert!(
            spent <= since,
            "{:?} was observed for {spent} ns in the {since} ns after it moved",
            row.comm
        );
    }
    Ok(())
}

#[test]
fn c047_a_group_that_came_and_went_has_its_name() -> Result<()> {
    let recording = Schedlat::record().args("--by cgroup").start()?;
    thread::sleep(Duration::from_millis(500));
    let group = Cgroup::with_cpu_controller("brief")?;
    let line = format!(
        "burn 0.7 --cpu 1 --nice -15 --cgroup {}",
        group.directory().display()
    );
    let truth = Load::workload(&line)?.truth()?;
    let name = group
        .directory()
        .file_name()
        .context("no name")?
        .to_string_lossy()
        .into_owned();
    drop(group);
    thread::sleep(Duration::from_millis(500));
    let report = recording.stop()?;
    check::sound(&report)?;
    let row = report.groups.iter().find(|row| {
        row.cgroup
            .as_ref()
            .is_some_and(|path| path.ends_with(&name))
    });
    let row = row.with_context(|| format!("no row for {name}"))?;
    check::ran_as_long(&report, row.stats.on_cpu_ns, truth.counters.exec_ns)
}

#[test]
fn c045_a_group_without_real_time_budget_is_named() -> Result<()> {
    let group = Cgroup::with_cpu_controller("no-budget")?;
    let has_budgets = group.directory().join("cpu.rt_runtime_us").exists();
    let line = "probe wake --policy fifo:80 --cpu 1 --for 200ms --format json";
    let mut command = group.command(binary()?);
    command.args(line.split(' '));
    let outcome = Recording::of(command)?.finish()?;
    // A kernel without such budgets has nothing to refuse.
    if has_budgets {
        return outcome.fails_with(1, &["fifo:80", "cpu.rt_runtime_us"]);
    }
    outcome.success().map(|_| ())
}
