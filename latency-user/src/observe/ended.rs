//! Tasks that have ended.

use std::collections::HashSet;

use crate::{
    analysis,
    model::{Tally, TaskRow},
};

/// A thread id, and when it began.
pub(super) type Identity = (u32, u64);

/// Rows that are kept; what ends later is only in the totals, and counted.
const MAX_ROWS: usize = 65_536;

/// Rows of tasks that have ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    rows: Vec<TaskRow>,
    /// Who has ended since [`Ended::watch`]; none where nobody watches.
    watched: Option<HashSet<Identity>>,
    folded: Tally,
    n_folded: u64,
}

impl Ended {
    /// Takes the row of a task that will not run again.
    pub(super) fn keep(&mut self, row: TaskRow) {
        if let Some(watched) = &mut self.watched {
            watched.insert(identity(&row));
        }
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.n_folded += 1;
            self.folded = analysis::sum([&self.folded, &row.tally]);
        }
    }

    /// From now on remembers who ends, whether their rows are kept or not.
    pub(super) fn watch(&mut self) {
        self.watched = Some(HashSet::new());
    }

    /// Who has ended since then.
    pub(super) fn watched(&mut self) -> HashSet<Identity> {
        self.watched.take().unwrap_or_default()
    }

    /// All rows, as they came.
    pub(super) fn rows(&self) -> &[TaskRow] {
        &self.rows
    }

    /// The same, to be kept by others.
    pub(super) fn take_rows(&mut self) -> Vec<TaskRow> {
        std::mem::take(&mut self.rows)
    }

    /// The sum of those that found no place, and how many they are.
    pub(super) fn folded(&self) -> (&Tally, u64) {
        (&self.folded, self.n_folded)
    }
}

/// Who a row is of.
pub(super) fn identity(row: &TaskRow) -> Identity {
    (row.ident.tid, row.ident.start_time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::fixture::row;

    #[test]
    fn what_finds_no_place_is_in_the_sum() {
        let mut ended = Ended::default();
        let tally = Tally {
            voluntary: 3,
            ..Tally::default()
        };
        let row = row(1, 1, "ended", tally);
        for _ in 0..=MAX_ROWS {
            ended.keep(row.clone());
        }
        ended.watch();
        ended.keep(row.clone());
        assert!(ended.watched().contains(&identity(&row)));
        assert!(ended.watched().is_empty());
        assert_eq!(ended.rows().len(), MAX_ROWS);
        let (folded, n_folded) = ended.folded();
        assert_eq!((folded.voluntary, n_folded), (6, 2));
    }
}
