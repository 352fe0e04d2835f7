//! The names of preemptors, culprits and wakers: the last one, as for every other task.
//!
//! The kernel side keeps the name that such a task had when it was first seen, often the name of
//! the program that was about to execute another. Where the task has a row of its own, that
//! knows the last name; a thread id that several tasks had is left as it was seen.

use std::collections::HashMap;

use super::{escape, merge};
use crate::model::{Autopsy, Tally, TaskRow};

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

    /// Gives everybody the last name.
    pub(super) fn rename(&self, tally: &mut Tally) {
        let preemptors = tally.preemptors.iter_mut();
        let preemptors = preemptors.map(|row| (row.tid, &mut row.comm));
        let culprits = tally.attribution.culprits.iter_mut();
        let culprits = culprits.map(|row| (row.tid, &mut row.comm));
        let wakers = tally.attribution.wakers.iter_mut();
        let wakers = wakers.map(|row| (row.tid, &mut row.comm));
        for (tid, comm) in preemptors.chain(culprits).chain(wakers) {
            if let Some(Some(name)) = self.0.get(&tid) {
                *comm = *name;
            }
        }
        merge::merge_rows(tally);
    }

    /// Names the tasks of a single wait that had ended before it did: the kernel side could not.
    pub(super) fn complete(&self, autopsy: &mut Autopsy) {
        for span in &mut autopsy.spans {
            let name = span.tid.and_then(|tid| *self.0.get(&tid)?);
            if let (Some(name), Some("")) = (name, span.comm.as_deref()) {
                span.comm = Some(escape::bytes(&name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::{comm, row};
    use crate::model::{PreemptorTally, Span};

    fn preemptor(name: &str, tid: u32) -> PreemptorTally {
        PreemptorTally {
            class: None,
            comm: comm(name),
            tid,
            count: 1,
            sum_ns: 1,
        }
    }

    fn rows() -> [TaskRow; 3] {
        [(7, "gzip"), (8, "a"), (8, "b")].map(|(tid, name)| row(tid, tid, name, Tally::default()))
    }

    #[track_caller]
    fn check(seen: &[(&str, u32)], expected: &[(&str, u32, u64)]) {
        let seen = seen.iter().map(|(name, tid)| preemptor(name, *tid));
        let mut tally = Tally {
            preemptors: seen.collect(),
            ..Tally::default()
        };
        Names::of(&rows()).rename(&mut tally);
        let found: Vec<_> = tally
            .preemptors
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
    fn task_that_had_ended_is_named_where_it_has_a_row() {
        let span = |comm: &str, tid| Span {
            comm: Some(comm.into()),
            tid: Some(tid),
            ..Span::default()
        };
        let mut autopsy = Autopsy {
            spans: vec![span("", 7), span("sh", 7), span("", 8), span("", 9)],
            ..Autopsy::default()
        };
        Names::of(&rows()).complete(&mut autopsy);
        let names = autopsy.spans.iter().map(|span| span.comm.as_deref());
        let expected = ["gzip", "sh", "", ""].map(Some);
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn name_stays_where_the_task_is_unknown_or_in_doubt() {
        check(&[("sh", 9)], &[("sh", 9, 1)]);
        check(&[("sh", 8)], &[("sh", 8, 1)]);
    }
}
