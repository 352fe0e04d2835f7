//! `schedlat probe pingpong`: same CPU and across differ as the kernel's counters say, and every switch
//! of the two threads is in both counts.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use latency_tests::{check, load::is_installed, schedlat::Schedlat};
use serde_json::Value;

/// The report of a probe on CPUs 0 and 1.
fn measure(line: &str) -> Result<Value> {
    let probe = Schedlat::command("probe").args("pingpong --format json --strict --cpu 0-1");
    let mut documents = probe.args(line).run()?.success()?.documents()?;
    documents.pop().context("no document")
}

fn series<'a>(report: &'a Value, transport: &str, placement: &str) -> Result<&'a Value> {
    let all = report["series"].as_array().context("no series")?;
    let mut found = all
        .iter()
        .filter(|it| it["transport"] == transport && it["placement"] == placement);
    let one = found.next();
    ensure!(found.next().is_none(), "{transport} {placement} twice");
    one.with_context(|| format!("no {transport} {placement}"))
}

fn number(series: &Value, key: &str) -> Result<f64> {
    let value = key.split('.').fold(series, |value, key| &value[key]);
    value
        .as_f64()
        .with_context(|| format!("no {key} in {series}"))
}

fn count(series: &Value, key: &str) -> Result<u64> {
    let value = key.split('.').fold(series, |value, key| &value[key]);
    value
        .as_u64()
        .with_context(|| format!("no {key} in {series}"))
}

/// Where two CPUs are: the name of the placement for CPUs 0 and 1.
fn placement_of_two() -> Result<&'static str> {
    let first = |path: &str| fs::read_to_string(format!("/sys/devices/system/cpu/cpu1/{path}"));
    let has_first = |list: &str| list.trim().split([',', '-']).next() == Some("0");
    if has_first(&first("topology/thread_siblings_list")?) {
        return Ok("smt");
    }
    let caches =
        (0..).map_while(|index| first(&format!("cache/index{index}/shared_cpu_list")).ok());
    Ok(match caches.last() {
        Some(last) if has_first(&last) => "llc",
        _ => "cross",
    })
}

/// What holds for every series that is not disturbed: both counts agree, and each run is there.
fn check_series(series: &Value, n_runs: usize) -> Result<()> {
    let (seen, own) = (
        count(series, "switches.kernel_saw")?,
        count(series, "switches.own")?,
    );
    let n_round_trips = count(series, "round_trip.count")?;
    check::near("switches", seen, own, 0.001, 16)?;
    let per_round_trip = number(series, "switches_per_round_trip")?;
    let expected = check::ratio(seen, n_round_trips);
    ensure!(
        (per_round_trip - expected).abs() < 1e-9,
        "{per_round_trip}, not {expected}"
    );
    let runs = series["round_trip"]["runs_ns"]
        .as_array()
        .context("no runs")?;
    ensure!(runs.len() == n_runs, "{} runs", runs.len());
    let mut sorted: Vec<_> = runs.iter().filter_map(Value::as_u64).collect();
    sorted.sort_unstable();
    ensure!(count(series, "round_trip.median_ns")? == sorted[(n_runs - 1) / 2]);
    let (local, remote) = (number(series, "local_pct")?, number(series, "remote_pct")?);
    ensure!(
        (local + remote - 100.0).abs() < 1e-6,
        "{local} % and {remote} %"
    );
    Ok(())
}

/// How long the threads of a pair waited while one of it had the CPU, by the recorder's rows of them.
fn waited_for_other_ns(report: &Value, series: &Value) -> Result<u64> {
    let tids = series["tids"].as_array().context("no threads")?;
    ensure!(tids.len() == 2, "{tids:?}");
    let tasks = report["record"]["tasks"].as_array().context("no tasks")?;
    let rows = tasks.iter().filter(|row| tids.contains(&row["tid"]));
    let blame = rows.filter_map(|row| row["blame"].as_array()).flatten();
    let others = blame.filter(|blame| tids.contains(&blame["culprit"]["tid"]));
    Ok(others.filter_map(|blame| blame["sum_ns"].as_u64()).sum())
}

#[test]
fn same_cpu_and_across_differ_as_the_kernel_columns_explain() -> Result<()> {
    let across = placement_of_two()?;
    let transports = ["pipe", "unix", "eventfd", "futex"];
    let line = format!(
        "--transport {} --placement same,{across} --runs 3 --for 200ms",
        transports.join(",")
    );
    let report = measure(&line)?;
    ensure!(report["schema"] == "schedlat.probe.pingpong");
    for transport in transports {
        let same = series(&report, transport, "same")?;
        check_series(same, 3)?;
        ensure!(same["verdict"] == "on one CPU", "{same}");
        ensure!(number(same, "local_pct")? > 99.0, "{same}");
        // Each thread leaves the CPU to the other once in a round trip.
        // Each thread leaves the CPU to the other once in a round trip, and once more where the one it
        // wakes takes the CPU from it before it sleeps.
        let switches = number(same, "switches_per_round_trip")?;
        ensure!(
            (1.9..4.1).contains(&switches),
            "{switches} switches: {same}"
        );
        ensure!(count(same, "migrations")? == 0, "{same}");

        let across = series(&report, transport, across)?;
        check_series(across, 3)?;
        ensure!(across["verdict"] == "across CPUs", "{across}");
        ensure!(number(across, "remote_pct")? > 99.0, "{across}");
        ensure!(count(across, "migrations")? == 0, "{across}");
        // On one CPU each waits for the other; across, for an idle CPU or for somebody else.
        ensure!(waited_for_other_ns(&report, same)? > 0, "{same}");
        ensure!(waited_for_other_ns(&report, across)? == 0, "{across}");
    }
    for transport in ["pipe", "unix"] {
        for place in ["same", across] {
            let mb_s = number(series(&report, transport, place)?, "bandwidth_mb_s")?;
            ensure!(mb_s > 10.0, "{transport} {place}: {mb_s} MB/s");
        }
    }
    ensure!(series(&report, "futex", "same")?["bandwidth_mb_s"].is_null());
    Ok(())
}

#[test]
fn places_that_the_machine_has_not_are_told() -> Result<()> {
    let across = placement_of_two()?;
    let report = measure("--transport futex --runs 1 --for 50ms")?;
    let warnings = report["warnings"].as_array().context("no warnings")?;
    let told: Vec<_> = warnings
        .iter()
        .filter(|it| it["kind"] == "no_placement")
        .filter_map(|it| it["message"].as_str())
        .collect();
    for placement in ["smt", "llc", "cross"] {
        let is_told = told.iter().any(|text| text.contains(placement));
        let is_measured = series(&report, "futex", placement).is_ok();
        ensure!(is_told != is_measured, "{placement}: {told:?}");
        ensure!(is_measured == (placement == across), "{placement}");
    }
    ensure!(series(&report, "futex", "auto")?["cpus"].is_null());
    let missing = if across == "smt" { "cross" } else { "smt" };
    let alone = format!("pingpong --cpu 0-1 --placement {missing}");
    let outcome = Schedlat::command("probe").args(&alone).run()?;
    outcome.fails_with(2, &[missing])
}

#[test]
fn round_trips_are_as_long_as_those_of_perf() -> Result<()> {
    ensure!(
        is_installed("perf"),
        "install linux-perf: `cargo xtask test` does"
    );
    let output = Command::new("taskset")
        .args([
            "-c", "1", "perf", "bench", "-f", "simple", "sched", "pipe", "-T", "-l", "50000",
        ])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let seconds: f64 = text
        .trim()
        .parse()
        .with_context(|| format!("perf said '{text}'"))?;
    let perf_ns = seconds * 1e9 / 50_000.0;
    let report = measure("--transport pipe --placement same --runs 3 --for 300ms")?;
    let ours_ns = number(series(&report, "pipe", "same")?, "round_trip.median_ns")?;
    // Ours is recorded, perf's is not; a factor of three would be another quantity.
    let factor = ours_ns / perf_ns;
    ensure!(
        (0.33..3.0).contains(&factor),
        "{ours_ns} ns, perf has {perf_ns} ns"
    );
    Ok(())
}

#[test]
fn ctrl_c_ends_with_what_was_measured() -> Result<()> {
    let line =
        "pingpong --format json --cpu 0-1 --transport pipe --placement same --runs 11 --for 10s";
    let running = Schedlat::command("probe").args(line).spawn()?;
    std::thread::sleep(std::time::Duration::from_secs(3));
    let documents = running.interrupt()?.success()?.documents()?;
    let report = documents.first().context("no document")?;
    let series = series(report, "pipe", "same")?;
    ensure!(count(series, "round_trip.count")? > 1_000, "{series}");
    let warnings = report["warnings"].as_array().context("no warnings")?;
    ensure!(
        warnings.iter().any(|it| it["kind"] == "ended_early"),
        "{warnings:?}"
    );
    Ok(())
}

#[test]
fn text_has_a_line_for_each_series() -> Result<()> {
    let line = "pingpong --cpu 0-1 --transport futex,pipe --placement same --runs 1 --for 100ms --load pipe";
    let outcome = Schedlat::command("probe").args(line).run()?.success()?;
    let text = outcome.output();
    let n_lines = |transport: &str| {
        let begins = format!("{transport} ");
        text.lines()
            .filter(|line| line.starts_with(&begins) && line.contains("on one CPU"))
            .count()
    };
    ensure!((n_lines("futex"), n_lines("pipe")) == (2, 2), "{text}");
    ensure!(text.contains("load pipe: "), "{text}");
    let wrong = Schedlat::command("probe")
        .args("pingpong --transport tcp")
        .run()?;
    ensure!(
        wrong.code() == 2 && wrong.messages.contains("eventfd"),
        "{}",
        wrong.messages
    );
    Ok(())
}
