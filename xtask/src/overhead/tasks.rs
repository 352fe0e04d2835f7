//! What observing adds to a ping-pong beside tasks that exist and sleep.
//!
//! Promises: a bare and an observed run beside the same crowd, one after the other, in every round; the
//! crowd is gone when the measurement is.

use anyhow::Result;
use rustix::thread::gettid;
use serde_json::{Value, json};

use super::load::Load;
use super::outcome::{Column, Outcome};
use super::pairs::{ADDED, OF_FIRST, Pairs, QUARTILES};
use super::recorder::Recorder;
use super::{Setting, ping_pong};

const SIZES: [usize; 5] = [10, 100, 1_000, 10_000, 20_000];

/// How far the cost beside many tasks may be from that beside few.
const FLAT_WITHIN: f64 = 0.1;

const COLUMNS: &[Column] = &[
    Column {
        key: "sleeping_tasks",
        title: "sleeping tasks",
        digits: 0,
    },
    Column {
        key: "measured",
        title: "measured",
        digits: 0,
    },
    ADDED,
    QUARTILES,
    OF_FIRST,
];

/// A crowd and how it is observed.
struct Point {
    n_tasks: usize,
    measured: &'static str,
    command: Vec<String>,
    pairs: Pairs,
}

/// The default beside each crowd, and with one other task selected beside the largest.
pub(super) fn measure(setting: &Setting) -> Result<Outcome> {
    let mut points = points(setting);
    setting.every_round(&mut points, |point| {
        let crowd = Load::sleepers(&setting.programs.workload, point.n_tasks)?;
        let run = || ping_pong::on_cpu(setting.cpu, setting.loops);
        point
            .pairs
            .add(run()?, Recorder::around(&point.command, true, run)?);
        crowd.stop()
    })?;
    Ok(outcome(&points))
}

fn points(setting: &Setting) -> Vec<Point> {
    let point = |n_tasks, measured, options: &[&str]| Point {
        n_tasks,
        measured,
        command: setting.record(options),
        pairs: Pairs::default(),
    };
    let one = gettid().as_raw_nonzero().to_string();
    let all = SIZES.into_iter().map(|n| point(n, "all", &[]));
    let one = point(SIZES[SIZES.len() - 1], "one", &["--tid", &one]);
    all.chain([one]).collect()
}

fn outcome(points: &[Point]) -> Outcome {
    let first = points.first().map(|point| &point.pairs);
    let of_first = |point: &Point| point.pairs.of(first);
    let rows = points.iter().map(|point| {
        let mut row = point.pairs.row();
        row.insert("sleeping_tasks".into(), json!(point.n_tasks));
        row.insert("measured".into(), json!(point.measured));
        row.insert("of_first".into(), json!(of_first(point)));
        Value::Object(row)
    });
    let judged = points.iter().filter(|point| point.measured == "all");
    let exceeded = judged.filter_map(|point| exceeded(point.n_tasks, of_first(point)));
    Outcome {
        columns: COLUMNS,
        rows: rows.collect(),
        exceeded: exceeded.collect(),
    }
}

/// What is wrong with the cost beside so many tasks, in words.
fn exceeded(n_tasks: usize, of_first: Option<f64>) -> Option<String> {
    let Some(ratio) = of_first else {
        return Some(format!(
            "schedlat added nothing measurable beside {} tasks, so that {n_tasks} cannot be judged",
            SIZES[0]
        ));
    };
    ((ratio - 1.0).abs() > FLAT_WITHIN).then(|| {
        format!(
            "beside {n_tasks} tasks schedlat adds {ratio:.3} of what it adds beside {}, more than \
             {FLAT_WITHIN} apart",
            SIZES[0]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(measured: &'static str, added_us: f64) -> Point {
        let mut pairs = Pairs::default();
        pairs.add(4.0, 4.0 + added_us);
        Point {
            n_tasks: 7,
            measured,
            command: Vec::new(),
            pairs,
        }
    }

    #[test]
    fn cost_that_grows_with_the_tasks_is_told() {
        let flat = outcome(&[point("all", 1.0), point("all", 1.09), point("one", 0.4)]);
        assert_eq!(flat.exceeded, [""; 0]);
        assert_eq!(flat.rows.len(), 3);
        let steep = outcome(&[point("all", 1.0), point("all", 1.11)]);
        assert_eq!(steep.exceeded.len(), 1);
        let nothing = outcome(&[point("all", 0.0), point("all", 1.0)]);
        assert_eq!(nothing.exceeded.len(), 2);
    }
}
