//! The names of preemptors: the last one, as for every other task.
//!
//! The kernel side keeps the name that a preemptor had when it was first seen, often the name of
//! the program that was about to execute another. Where the preemptor has a row of its own, that
//! knows the last name; a thread id that several tasks had is left as it was seen.

use std::collections::HashMap;

use super::merge;
use crate::model::{PreemptorTally, TaskRow};

/// Last names by thread id.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<u32, Option<[u8; 16]>>);

impl Names {
    /// The names of all tasks of `rows`.
    pub(super) fn of(rows: &[TaskRow]) -> Self {
        let mut names = HashMap::with_capacity(rows.len());
        for row in rows {
            names
                .entry(row.ident.tid)
                .and_modify(|name| *name = None)
                .or_insert(Some(row.ident.comm));
        }
        Self(names)
    }

    /// The same preemptors under their last names.
    pub(super) fn renamed(&self, mut preemptors: Vec<PreemptorTally>) -> Vec<PreemptorTally> {
        for preemptor in &mut preemptors {
            if let Some(Some(name)) = self.0.get(&preemptor.tid) {
                preemptor.comm = *name;
            }
        }
        merge::merged_preemptors(preemptors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::{comm, row};
    use crate::model::Tally;

    fn preemptor(name: &str, tid: u32) -> PreemptorTally {
        PreemptorTally {
            class: None,
            comm: comm(name),
            tid,
            count: 1,
            sum_ns: 1,
        }
    }

    #[track_caller]
    fn check(seen: &[(&str, u32)], expected: &[(&str, u32, u64)]) {
        let rows = [(7, "gzip"), (8, "a"), (8, "b")]
            .map(|(tid, name)| row(tid, tid, name, Tally::default()));
        let seen = seen.iter().map(|(name, tid)| preemptor(name, *tid));
        let found: Vec<_> = Names::of(&rows)
            .renamed(seen.collect())
            .into_iter()
            .map(|row| (row.comm, row.tid, row.count))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, tid, count)| (comm(name), *tid, *count))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn preemptor_has_the_last_name_of_its_task() {
        check(&[("sh", 7)], &[("gzip", 7, 1)]);
    }

    #[test]
    fn names_of_one_preemptor_become_one() {
        check(&[("sh", 7), ("timeout", 7)], &[("gzip", 7, 2)]);
    }

    #[test]
    fn name_stays_where_the_task_is_unknown_or_in_doubt() {
        check(&[("sh", 9)], &[("sh", 9, 1)]);
        check(&[("sh", 8)], &[("sh", 8, 1)]);
    }
}
