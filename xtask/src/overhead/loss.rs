//! At how many waits that are told one by one the first is lost.
//!
//! Counts are kept in the kernel and cannot be lost; a wait over `--over` is sent, and every wait here is.
//! Promises: each rate in every round; the most that was lost in any of them.

use anyhow::Result;
use serde_json::{Value, json};

use super::Setting;
use super::load::Load;
use super::outcome::{Column, Outcome};
use super::pairs::quantile;
use super::recording::Recording;

const LENGTH: &str = "3s";

/// Round trips a second, of two waits each.
const RATES: [u64; 8] = [500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];

const COLUMNS: &[Column] = &[
    Column {
        key: "waits_per_s",
        title: "waits/s",
        digits: 0,
    },
    Column {
        key: "lost_pct",
        title: "not told, %",
        digits: 3,
    },
    Column {
        key: "recorder_cpu_pct",
        title: "the recorder's CPU, %",
        digits: 2,
    },
];

/// One rate.
struct Point {
    rate: u64,
    recordings: Vec<Recording>,
}

/// Every wait told, at each rate.
pub(super) fn measure(setting: &Setting) -> Result<Outcome> {
    let command = setting.record(&["--over", "1ns", "--for", LENGTH]);
    let mut points = RATES.map(|rate| Point {
        rate,
        recordings: Vec::new(),
    });
    setting.every_round(&mut points, |point| {
        let load = Load::paced_ping_pong(&setting.programs.workload, setting.cpu, point.rate)?;
        point.recordings.push(Recording::run(&command)?);
        load.stop()
    })?;
    let rows: Result<Vec<_>> = points.iter().map(row).collect();
    Ok(Outcome {
        columns: COLUMNS,
        rows: rows?,
        exceeded: Vec::new(),
    })
}

fn row(point: &Point) -> Result<Value> {
    let mut rates = Vec::new();
    let mut lost_pcts = Vec::new();
    let mut cpu_pcts = Vec::new();
    for recording in &point.recordings {
        let told = recording.number("/over/count")?;
        let lost = recording.number("/loss/wait_records")?;
        rates.push((told + lost) / recording.number("/window/seconds")?);
        lost_pcts.push(100.0 * lost / (told + lost));
        cpu_pcts.push(recording.number("/cost/recorder_cpu_pct")?);
    }
    Ok(json!({
        "round_trips_per_s": point.rate,
        "waits_per_s": quantile(&rates, 0.5),
        "lost_pct": quantile(&lost_pcts, 1.0),
        "recorder_cpu_pct": quantile(&cpu_pcts, 0.5),
    }))
}
