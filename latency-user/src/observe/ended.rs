//! Tasks that have ended.

use crate::{
    analysis,
    model::{Tally, TaskRow},
};

/// Rows that are kept; what ends later is only in the totals, and counted.
const MAX_ROWS: usize = 65_536;

/// Rows of tasks that have ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    rows: Vec<TaskRow>,
    folded: Tally,
    n_folded: u64,
}

impl Ended {
    /// Takes the row of a task that will not run again.
    pub(super) fn keep(&mut self, row: TaskRow) {
        if self.rows.len() < MAX_ROWS {
            self.rows.push(row);
        } else {
            self.n_folded += 1;
            self.folded = analysis::sum([&self.folded, &row.tally]);
        }
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
        for _ in 0..MAX_ROWS + 2 {
            ended.keep(row.clone());
        }
        assert_eq!(ended.rows().len(), MAX_ROWS);
        let (folded, n_folded) = ended.folded();
        assert_eq!((folded.voluntary, n_folded), (6, 2));
    }
}
