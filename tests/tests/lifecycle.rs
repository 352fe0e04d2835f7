//! Tasks that begin, end, change their name or program, and ids that are used again.

use std::{collections::HashSet, thread, time::Duration};

use anyhow::Result;
use latency_tests::{
    check,
    load::{Load, workload_binary},
    report::{Report, Row},
    schedlat::Schedlat,
};

/// No two rows are the same task.
fn check_identities(report: &Report) {
    let mut seen = HashSet::new();
    for row in &report.tasks {
        let identity = (row.tid, row.start_time_ns);
        assert!(seen.insert(identity), "two rows for {identity:?}");
    }
}

fn check_every_new_task_waited_once(report: &Report, n: u64) -> Result<()> {
    let first = report.totals.waits.new_task;
    // The switch that ends a first wait may be one of those that fire no event.
    let unmeasured = report.lost("unmeasured_waits")?;
    assert!(
        (n.saturating_sub(unmeasured)..=n).contains(&first.count),
        "{} first waits of {n} new tasks, {unmeasured} waits unmeasured",
        first.count
    );
    for row in &report.tasks {
        assert!(
            row.stats.waits.new_task.count <= 1,
            "{:?} was born twice",
            row.comm
        );
    }
    Ok(())
}

#[test]
fn c040_a_thousand_children_of_a_shell_are_all_there_with_their_names() -> Result<()> {
    const CHILDREN: u64 = 1000;
    let script = format!("i=0; while [ $i -lt {CHILDREN} ]; do /bin/true; i=$((i+1)); done");
    let rival = ["burn 60 --cpu 0", "burn 60 --cpu 1"].map(Load::workload);
    let report = Schedlat::record()
        .running_words(&["sh", "-c", &script])
        .report()?;
    drop(rival);
    check::sound(&report)?;
    check_identities(&report);
    assert_eq!(
        report.tasks.len() as u64,
        CHILDREN + 1,
        "the shell and its children"
    );
    // The shell itself is a child of the recorder, seen from its first instruction.
    check_every_new_task_waited_once(&report, CHILDREN + 1)?;
    let named = report.named("true").len() as u64;
    check::share("children with their own name", named, CHILDREN, 0.99)?;
    assert_eq!(report.named("sh").len(), 1, "the shell");
    assert!(
        report.tasks.iter().all(|row| row.exited),
        "some have not ended"
    );
    Ok(())
}

#[test]
fn c020_twenty_thousand_threads_are_all_counted() -> Result<()> {
    const THREADS: u64 = 20_000;
    let load = workload_binary()?.display().to_string();
    let line = format!("{load} threads {THREADS} --name crowd");
    let report = Schedlat::record().running(&line).report()?;
    check::sums_are_conserved(&report)?;
    check_identities(&report);
    // Whatever has no row of its own is counted, and its waits are in the totals.
    let lost = report.lost("exit_records")? + report.lost("untracked_tasks")?;
    let distinct = report.tasks.len() as u64;
    assert_eq!(distinct + lost, THREADS + 1, "{distinct} rows, {lost} lost");
    assert_eq!(report.lost("untracked_tasks")?, 0);
    check_every_new_task_waited_once(&report, THREADS + 1)?;
    // Each sleeps forty times; the last sleeps of all are seen to their end.
    assert!(
        report.totals.switches.voluntary >= THREADS * 40,
        "{:?}",
        report.totals.switches
    );
    assert!(
        report.totals.waits.wakeup.count >= THREADS * 40,
        "{:?}",
        report.totals.waits
    );
    Ok(())
}

#[test]
fn c003_c006_process_ids_that_wrap_twice_are_different_tasks() -> Result<()> {
    let load = Load::workload("pid-wraps 2 --name wrap")?;
    let recording = Schedlat::record().comm("wrap").start()?;
    let truth = load.truth()?;
    let report = recording.stop()?;
    check::sums_are_conserved(&report)?;
    check_identities(&report);
    let forks = truth.number("forks")?;
    let lost = report.lost("exit_records")?;
    let rows = report.tasks.len() as u64;
    // The load was running when the recorder attached: some forks came before.
    assert!(
        rows + lost <= forks + 1,
        "{rows} rows and {lost} lost of {forks} forks"
    );
    assert!(
        rows + lost >= forks / 2,
        "{rows} rows and {lost} lost of {forks} forks"
    );
    let distinct: HashSet<_> = report.tasks.iter().filter_map(|row| row.tid).collect();
    if truth.number("wraps")? == 2 && lost == 0 {
        assert!((distinct.len() as u64) < rows, "no id was used twice");
    }
    // A child lives for a moment: a longer wait would have begun with the last holder of its id.
    for row in report.tasks.iter().filter(|row| row.exited) {
        let waited = row.stats.waits.max_ns();
        assert!(waited < 1_000_000_000, "{:?} waited {waited} ns", row.tid);
    }
    // None of them is left in the maps (C091): what is not exited is alive.
    let alive = report.tasks.iter().filter(|row| !row.exited).count();
    assert!(
        alive <= 1,
        "{alive} rows of tasks that have ended are kept as live"
    );
    Ok(())
}

#[test]
fn c091_slots_of_ended_tasks_are_used_again() -> Result<()> {
    // A thousand a second at most, and each needs a slot or two: far more tasks than slots, but few
    // of them between two readings of the ring.
    const TASKS: u64 = 3_000;
    let load = workload_binary()?.display().to_string();
    let line = format!("{load} forks {TASKS} --burn-us 1000 --kill-after-us 500");
    let report = Schedlat::record()
        .args("--max-histograms 1500")
        .running(&line)
        .report()?;
    check::sound(&report)?;
    assert_eq!(report.lost("task_histograms")?, 0);
    assert_eq!(report.tasks.len() as u64, TASKS + 1);
    Ok(())
}

#[test]
fn c037_exec_and_rename_show_the_last_name_in_one_row() -> Result<()> {
    let load = workload_binary()?.display().to_string();
    let script = format!("{load} burn 0.5; exec {load} rename 1 --name before --to after");
    let report = Schedlat::record()
        .running_words(&["sh", "-c", &script])
        .report()?;
    check::sound(&report)?;
    check_identities(&report);
    assert_eq!(
        report.tasks.len(),
        2,
        "the shell that became the load, and its child"
    );
    let after = report.named("after");
    assert_eq!(after.len(), 1, "{:?}", names(&report));
    // One second under two names, after what the shell did.
    check_at_least(after[0], 950_000_000);
    assert_eq!(report.named("workload").len(), 1, "{:?}", names(&report));
    Ok(())
}

#[test]
fn a_chain_of_execs_is_one_task() -> Result<()> {
    let load = workload_binary()?.display().to_string();
    let report = Schedlat::record()
        .running(&format!("{load} exec-chain 3 0.2"))
        .report()?;
    check::sound(&report)?;
    assert_eq!(report.tasks.len(), 1, "{:?}", names(&report));
    assert_eq!(names(&report), ["chain-0"]);
    // Four links of 0.2 s.
    check_at_least(&report.tasks[0], 780_000_000);
    Ok(())
}

/// It ran and waited so long, unless part of that was in the blind spot of this kind of host.
fn check_at_least(row: &Row, ns: u64) {
    let spent = row.stats.on_cpu_ns + row.stats.waited_ns;
    let unseen = row.audit.class("unmeasured").count;
    assert!(
        spent >= ns || unseen > 0,
        "{:?} ran and waited {spent} ns, not {ns}",
        row.comm
    );
}

fn names(report: &Report) -> Vec<&str> {
    report
        .tasks
        .iter()
        .filter_map(|row| row.comm.as_deref())
        .collect()
}

#[test]
fn c041_a_task_that_ends_keeps_its_totals() -> Result<()> {
    let rival = Load::workload("burn 20 --cpu 1 --nice -15")?;
    let recording = Schedlat::record().comm("short-lived").start()?;
    let load = Load::workload("burn 3 --cpu 1 --nice -15 --name short-lived")?;
    let tid = load.pid();
    let truth = load.truth()?;
    thread::sleep(Duration::from_millis(500));
    let report = recording.stop()?;
    drop(rival);
    check::sound(&report)?;
    let row = report.task(tid)?;
    assert!(row.exited, "the row does not say that it ended");
    check::waits_agree(row, &truth.counters)?;
    check::ran_as_long(&report, row.stats.on_cpu_ns, truth.counters.exec_ns)
}

#[test]
fn a_process_goes_on_without_its_first_thread() -> Result<()> {
    let load = Load::workload("headless 20")?;
    thread::sleep(Duration::from_millis(200));
    let report = Schedlat::record().pid(load.pid()).lasting(1.5).report()?;
    assert!(
        report.window_ns() > 1_400_000_000,
        "it ended after {} ns with the first thread's end",
        report.window_ns()
    );
    let switches: u64 = report
        .tasks
        .iter()
        .map(|row| row.stats.switches.voluntary)
        .sum();
    assert!(switches > 100, "{switches} switches of the other thread");
    Ok(())
}

#[test]
fn a_task_born_while_the_recorder_attaches_has_no_false_first_wait() -> Result<()> {
    // One child after the other, each asleep nearly all its life, so that one of them is born between
    // the attachment of the first program and the last.
    let script = "while :; do sleep 0.1; done";
    let _shell = Load::program("sh", &["-c", script])?;
    for _ in 0..5 {
        let report = Schedlat::record().lasting(0.5).report()?;
        for row in report.named("sleep") {
            let first = row.stats.waits.new_task;
            assert!(
                first.max_ns < 50_000_000,
                "{:?} waited {} ns before its first run: its sleep was taken for a wait",
                row.tid,
                first.max_ns
            );
        }
    }
    Ok(())
}
