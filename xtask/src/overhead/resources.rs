//! What the recorder takes for itself: CPU, memory, and time to attach; and whether it kept up.
//!
//! Promises: medians of the rounds, but what was lost in the worst of them.

use anyhow::Result;
use serde_json::{Value, json};

use super::Setting;
use super::load::Load;
use super::outcome::{Column, Outcome};
use super::pairs::quantile;
use super::recording::Recording;

const LENGTH: &str = "5s";

/// Of one CPU, while the report is made in the kernel and whatever is switched.
const MAX_CPU_PCT: f64 = 0.5;

/// On a machine that does nothing else.
const MAX_ATTACH_MS: f64 = 300.0;

const N_SLEEPERS: usize = 20_000;

const COLUMNS: &[Column] = &[
    Column {
        key: "beside",
        title: "beside",
        digits: 0,
    },
    Column {
        key: "options",
        title: "`schedlat record`",
        digits: 0,
    },
    Column {
        key: "switches_per_s",
        title: "switches/s",
        digits: 0,
    },
    Column {
        key: "recorder_cpu_pct",
        title: "its CPU, %",
        digits: 2,
    },
    Column {
        key: "attach_ms",
        title: "attaching, ms",
        digits: 0,
    },
    Column {
        key: "resident_mib",
        title: "resident, MiB",
        digits: 0,
    },
    Column {
        key: "maps_mib",
        title: "maps, MiB",
        digits: 0,
    },
    Column {
        key: "slabs_mib",
        title: "slabs, MiB",
        digits: 0,
    },
    Column {
        key: "lost",
        title: "lost",
        digits: 0,
    },
];

/// What runs beside the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    PingPongs,
    Forks,
    Sleepers,
}

impl Beside {
    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::PingPongs => "a ping-pong on each CPU",
            Self::Forks => "a loop of forks on each CPU",
            Self::Sleepers => "20,000 tasks that sleep",
        }
    }

    fn start(self, setting: &Setting) -> Result<Option<Load>> {
        let workload = &setting.programs.workload;
        let cpus = 0..setting.n_cpus;
        Ok(match self {
            Self::Nothing => None,
            Self::PingPongs => Some(Load::ping_pongs(workload, cpus)?),
            Self::Forks => Some(Load::forks(workload, cpus)?),
            Self::Sleepers => Some(Load::sleepers(workload, N_SLEEPERS)?),
        })
    }
}

/// One row.
struct Point {
    beside: Beside,
    options: &'static [&'static str],
    recordings: Vec<Recording>,
}

/// Every load, and the busiest of them with every detail.
pub(super) fn measure(setting: &Setting) -> Result<Outcome> {
    let mut points: Vec<_> = [
        (Beside::Nothing, &[][..]),
        (Beside::PingPongs, &["--detail", "basic"]),
        (Beside::PingPongs, &["--detail", "causes"]),
        (Beside::PingPongs, &[]),
        (Beside::PingPongs, &["--flight", "1s"]),
        (Beside::Forks, &[]),
        (Beside::Sleepers, &[]),
    ]
    .map(|(beside, options)| Point {
        beside,
        options,
        recordings: Vec::new(),
    })
    .into();
    setting.every_round(&mut points, |point| {
        let load = point.beside.start(setting)?;
        let command = setting.record(&[point.options, &["--for", LENGTH]].concat());
        point.recordings.push(Recording::run(&command)?);
        load.map_or(Ok(()), Load::stop)
    })?;
    let rows: Result<Vec<_>> = points.iter().map(row).collect();
    let rows = rows?;
    let exceeded = points
        .iter()
        .zip(&rows)
        .flat_map(|(point, row)| exceeded(point, row));
    let exceeded = exceeded.collect();
    Ok(Outcome {
        columns: COLUMNS,
        rows,
        exceeded,
    })
}

fn row(point: &Point) -> Result<Value> {
    let median = |figure: &dyn Fn(&Recording) -> Result<f64>| -> Result<f64> {
        let figures: Result<Vec<_>> = point.recordings.iter().map(figure).collect();
        Ok(quantile(&figures?, 0.5))
    };
    let lost = worst_loss(&point.recordings)?;
    Ok(json!({
        "beside": point.beside.name(),
        "options": point.options.join(" "),
        "switches_per_s": median(&|recording| recording.per_second("/audit/switches/all_ours"))?,
        "recorder_cpu_pct": median(&|recording| recording.number("/cost/recorder_cpu_pct"))?,
        "attach_ms": median(&|recording| Ok(recording.number("/cost/attach_ns")? / 1e6))?,
        "resident_mib": median(&|recording| Ok(mib(recording.memory().resident)))?,
        "maps_mib": median(&|recording| Ok(mib(recording.memory().maps)))?,
        "slabs_mib": median(&|recording| Ok(mib(recording.memory().slabs)))?,
        "lost": kinds(&lost),
        "lost_of_itself": kinds(&of_itself(point.beside, lost)),
    }))
}

/// What the recording lost that lost most, by kind.
fn worst_loss(recordings: &[Recording]) -> Result<Vec<(String, u64)>> {
    let lost: Result<Vec<_>> = recordings.iter().map(Recording::lost).collect();
    let total = |kinds: &Vec<(String, u64)>| kinds.iter().map(|(_, count)| count).sum::<u64>();
    Ok(lost?.into_iter().max_by_key(total).unwrap_or_default())
}

/// Without the paths of tasks that have ended before those that waited for them ran: they have no name left.
fn of_itself(beside: Beside, mut lost: Vec<(String, u64)>) -> Vec<(String, u64)> {
    lost.retain(|(kind, _)| beside != Beside::Forks || kind != "stacks");
    lost
}

/// Losses in words.
fn kinds(lost: &[(String, u64)]) -> String {
    let kinds = lost.iter().map(|(kind, count)| format!("{count} {kind}"));
    let kinds: Vec<_> = kinds.collect();
    if kinds.is_empty() {
        "0".to_owned()
    } else {
        kinds.join(", ")
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The budgets of a row that it does not keep, in words.
fn exceeded(point: &Point, row: &Value) -> Vec<String> {
    let number = |key: &str| row[key].as_f64().unwrap_or(f64::INFINITY);
    let mut exceeded = Vec::new();
    let is_aggregate = point.beside == Beside::PingPongs && !point.options.contains(&"--flight");
    let cpu_pct = number("recorder_cpu_pct");
    if is_aggregate && cpu_pct > MAX_CPU_PCT {
        let rate = number("switches_per_s");
        exceeded.push(format!(
            "at {rate:.0} switches a second the recorder takes {cpu_pct:.2} % of a CPU, its budget is {MAX_CPU_PCT:.2} %"
        ));
    }
    let attach_ms = number("attach_ms");
    if point.beside == Beside::Nothing && attach_ms > MAX_ATTACH_MS {
        exceeded.push(format!(
            "attaching takes {attach_ms:.0} ms, its budget is {MAX_ATTACH_MS:.0} ms"
        ));
    }
    let lost = row["lost_of_itself"].as_str().unwrap_or_default();
    if lost != kinds(&[]) {
        let (beside, options) = (point.beside.name(), point.options.join(" "));
        exceeded.push(format!("lost beside {beside} {options}: {lost}"));
    }
    exceeded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(beside: Beside, options: &'static [&'static str], row: &Value, n_exceeded: usize) {
        let point = Point {
            beside,
            options,
            recordings: Vec::new(),
        };
        let exceeded = exceeded(&point, row);
        assert_eq!(exceeded.len(), n_exceeded, "{exceeded:?}");
    }

    #[test]
    fn budgets_are_those_of_their_rows() {
        let row = |cpu: f64, attach: f64, lost: &str| json!({ "switches_per_s": 6e5, "recorder_cpu_pct": cpu, "attach_ms": attach, "lost_of_itself": lost });
        check(Beside::PingPongs, &[], &row(0.49, 900.0, "0"), 0);
        check(Beside::PingPongs, &[], &row(0.51, 200.0, "0"), 1);
        check(
            Beside::PingPongs,
            &["--flight", "1s"],
            &row(0.51, 200.0, "0"),
            0,
        );
        check(Beside::Nothing, &[], &row(0.1, 301.0, "0"), 1);
        check(Beside::Forks, &[], &row(5.0, 301.0, "1 exit_records"), 1);
    }

    #[test]
    fn tasks_that_have_ended_have_no_path_and_everything_else_is_a_loss() {
        let lost = || vec![("exit_records".to_owned(), 2), ("stacks".to_owned(), 17)];
        let check = |beside, expected| assert_eq!(kinds(&of_itself(beside, lost())), expected);
        check(Beside::Forks, "2 exit_records");
        check(Beside::PingPongs, "2 exit_records, 17 stacks");
        assert_eq!(kinds(&[]), "0");
    }
}
