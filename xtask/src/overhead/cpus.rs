//! What observing adds to a ping-pong when other CPUs have one too.
//!
//! Promises: a bare and an observed run on the same CPUs, one after the other, in every round.

use anyhow::Result;
use serde_json::{Value, json};

use super::outcome::{Column, Outcome};
use super::pairs::{ADDED, OF_FIRST, Pairs, QUARTILES, US_PER_OP};
use super::recorder::Recorder;
use super::{Setting, ping_pong};

const COLUMNS: &[Column] = &[
    Column {
        key: "cpus",
        title: "CPUs with a ping-pong",
        digits: 0,
    },
    US_PER_OP,
    ADDED,
    QUARTILES,
    OF_FIRST,
];

/// So many CPUs at once.
struct Point {
    cpus: Vec<usize>,
    pairs: Pairs,
}

/// The default on 1, 2, 4 … and all CPUs.
pub(super) fn measure(setting: &Setting) -> Result<Outcome> {
    let command = setting.record(&[]);
    let mut points: Vec<_> = sizes(setting.n_cpus)
        .into_iter()
        .map(|n| Point {
            cpus: (0..setting.n_cpus).rev().take(n).collect(),
            pairs: Pairs::default(),
        })
        .collect();
    setting.every_round(&mut points, |point| {
        let run = || ping_pong::on_each(&point.cpus, setting.loops);
        let (bare, observed) = (run()?, Recorder::around(&command, true, run)?);
        point.pairs.add(bare, observed);
        Ok(())
    })?;
    let first = points.first().map(|point| &point.pairs);
    let rows = points.iter().map(|point| {
        let mut row = point.pairs.row();
        row.insert("cpus".into(), json!(point.cpus.len()));
        row.insert("of_first".into(), json!(point.pairs.of(first)));
        Value::Object(row)
    });
    Ok(Outcome {
        columns: COLUMNS,
        rows: rows.collect(),
        exceeded: Vec::new(),
    })
}

/// Powers of two, and all.
fn sizes(n_cpus: usize) -> Vec<usize> {
    let doubled = std::iter::successors(Some(1), |n| Some(n * 2));
    doubled
        .take_while(|&n| n < n_cpus)
        .chain([n_cpus])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::sizes;

    #[test]
    fn sizes_double_up_to_all() {
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(2), [1, 2]);
        assert_eq!(sizes(6), [1, 2, 4, 6]);
    }
}
