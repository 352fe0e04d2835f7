//! Rows of the kernel side's small tables: who, how often, how long.
//!
//! A table has few rows. What finds none, or loses its own to another, joins a row of several, its
//! heir: so a row may shrink or vanish although nothing was undone. Subtracted by the rules here,
//! what an interval shows was not shown before.

mod tables;

use std::{cmp::Reverse, collections::BTreeMap};

/// How often and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) count: u64,
    pub(crate) sum_ns: u64,
}

impl Amount {
    fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum_ns: self.sum_ns + other.sum_ns,
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_sub(other.count),
            sum_ns: self.sum_ns.saturating_sub(other.sum_ns),
        }
    }

    const fn holds(self, other: Self) -> bool {
        self.count >= other.count && self.sum_ns >= other.sum_ns
    }
}

/// A row of a table.
pub(crate) trait TableRow: Clone {
    /// What makes two rows one.
    type Key: Copy + Ord;

    fn key(&self) -> Self::Key;

    /// The row that gets what this one held when it loses its place.
    fn heir(&self) -> Option<Self::Key>;

    fn amount(&self) -> Amount;

    /// The same row with another amount, which is a part of its own.
    fn with(&self, amount: Amount) -> Self;

    /// Adds a row of the same key.
    fn absorb(&mut self, from: &Self);

    /// What rows are ordered by, the largest first.
    fn weight(&self) -> u64 {
        self.amount().sum_ns
    }
}

/// Equal rows as one, the largest first.
pub(crate) fn merged<R: TableRow>(mut rows: Vec<R>) -> Vec<R> {
    rows.sort_by_key(TableRow::key);
    rows.dedup_by(|from, into| {
        let is_same = from.key() == into.key();
        if is_same {
            into.absorb(from);
        }
        is_same
    });
    // The sort is stable: equal ones stay in the order of their keys.
    rows.sort_by_key(|row| Reverse(row.weight()));
    rows
}

/// What rows grew by between two tables of one task.
pub(super) fn growth<R: TableRow>(later: &[R], earlier: &[R]) -> Vec<R> {
    let now: BTreeMap<_, _> = later.iter().map(|row| (row.key(), row.amount())).collect();
    let mut shown: BTreeMap<R::Key, Amount> = BTreeMap::new();
    for row in earlier {
        let amount = shown.entry(row.key()).or_default();
        *amount = amount.plus(row.amount());
    }
    for row in earlier {
        let Some(heir) = row.heir() else { continue };
        let before = shown.get(&row.key()).copied().unwrap_or_default();
        let is_whole = now.get(&row.key()).is_some_and(|now| now.holds(before));
        if !is_whole {
            // It lost its place; what is there now, if anything, came after that.
            shown.remove(&row.key());
            let amount = shown.entry(heir).or_default();
            *amount = amount.plus(before);
        }
    }
    let grown = later.iter().filter_map(|row| {
        let before = shown.get(&row.key()).copied().unwrap_or_default();
        let amount = row.amount().minus(before);
        (amount != Amount::default()).then(|| row.with(amount))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use latency_common::{attribution::CulpritKind, interrupt::Source};

    use super::*;
    use crate::{
        analysis::fixture::{Random, comm},
        model::{CulpritTally, InterruptTally, WakerTally},
    };

    fn culprit(tid: u32, name: &str, sum_ns: u64) -> CulpritTally {
        CulpritTally {
            tid,
            work: 0,
            tgid: tid,
            prio: 120,
            comm: comm(name),
            kind: CulpritKind::Foreign,
            cgroup: "/a".into(),
            count: 1,
            sum_ns,
            max_ns: sum_ns,
        }
    }

    fn sum(rows: &[CulpritTally]) -> u64 {
        rows.iter().map(|row| row.sum_ns).sum()
    }

    /// Two rows for tasks and one for names, filled as the kernel side does.
    #[derive(Clone, Default)]
    struct Table {
        tasks: Vec<CulpritTally>,
        names: Vec<CulpritTally>,
        dropped_ns: u64,
    }

    impl Table {
        fn blame(&mut self, row: CulpritTally) {
            if let Some(known) = self.tasks.iter_mut().find(|known| known.tid == row.tid) {
                known.absorb(&row);
                return;
            }
            if self.tasks.len() == 2 {
                let least = usize::from(self.tasks[1].sum_ns < self.tasks[0].sum_ns);
                let evicted = self.tasks.remove(least);
                self.join_name(CulpritTally { tid: 0, ..evicted });
            }
            self.tasks.push(row);
        }

        fn join_name(&mut self, row: CulpritTally) {
            match self.names.first_mut() {
                None => self.names.push(row),
                Some(known) if known.comm == row.comm => known.absorb(&row),
                Some(known) if known.sum_ns < row.sum_ns => {
                    self.dropped_ns += known.sum_ns;
                    *known = row;
                }
                Some(_) => self.dropped_ns += row.sum_ns,
            }
        }

        fn rows(&self) -> Vec<CulpritTally> {
            [self.tasks.clone(), self.names.clone()].concat()
        }
    }

    #[test]
    fn rows_that_lose_their_place_are_not_counted_twice() {
        let seed = 0x5eed_0005;
        let mut random = Random::new(seed);
        let mut table = Table::default();
        let mut n_evictions = 0;
        for round in 0..400 {
            let before = table.clone();
            let mut blamed_ns = 0;
            for _ in 0..random.below(6) {
                let tid = u32::try_from(1 + random.below(7)).unwrap();
                let row = culprit(
                    tid,
                    ["a", "b", "c"][tid as usize % 3],
                    random.durations(1)[0],
                );
                blamed_ns += row.sum_ns;
                table.blame(row);
            }
            let grown = growth(&table.rows(), &before.rows());
            let dropped_ns = table.dropped_ns - before.dropped_ns;
            n_evictions += u64::from(dropped_ns > 0);
            // What was dropped may have been shown before; what is shown now was not.
            let all = blamed_ns.saturating_sub(dropped_ns)..=blamed_ns;
            assert!(all.contains(&sum(&grown)), "seed {seed:#x}, round {round}");
            assert!(grown.iter().all(|row| row.max_ns <= row.sum_ns));
        }
        assert!(n_evictions > 20, "{n_evictions}");
    }

    #[test]
    fn row_that_moved_to_its_name_has_grown_by_nothing() {
        let named = culprit(0, "a", 5);
        let grown = growth(&[culprit(2, "b", 9), named], &[culprit(1, "a", 5)]);
        assert_eq!(grown, [culprit(2, "b", 9)]);
    }

    #[test]
    fn longest_of_a_grown_row_is_no_longer_than_its_sum() {
        let later = CulpritTally {
            count: 2,
            sum_ns: 12,
            max_ns: 9,
            ..culprit(1, "a", 9)
        };
        let grown = growth(&[later], &[culprit(1, "a", 9)]);
        assert_eq!(
            (grown[0].count, grown[0].sum_ns, grown[0].max_ns),
            (1, 3, 3)
        );
    }

    /// The record of an ended task was lost: all its rows are under the others now.
    #[test]
    fn rows_without_names_are_those_that_were_shown_before() {
        let row = |source: Source, count| InterruptTally {
            source,
            count,
            sum_ns: 10 * count,
        };
        let earlier = [row(Source(7), 2), row(Source(8), 3)];
        let grown = growth(&[row(Source::SEVERAL, 6)], &earlier);
        assert_eq!(grown, [row(Source::SEVERAL, 1)]);
    }

    #[test]
    fn equal_culprits_become_one_in_the_cgroup_that_cost_most() {
        let elsewhere = CulpritTally {
            cgroup: "/b".into(),
            ..culprit(1, "a", 7)
        };
        let rows = merged(vec![culprit(1, "a", 3), culprit(2, "a", 8), elsewhere]);
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (row.tid, row.count, row.sum_ns, row.max_ns, &*row.cgroup))
            .collect();
        assert_eq!(shown, [(1, 2, 10, 7, "/b"), (2, 1, 8, 8, "/a")]);
    }

    #[test]
    fn one_worker_with_two_functions_is_two_culprits() {
        let works_on = |work, sum_ns| CulpritTally {
            work,
            ..culprit(1, "kworker/0:2", sum_ns)
        };
        let rows = merged(vec![works_on(1, 3), works_on(2, 8), works_on(1, 4)]);
        let shown: Vec<_> = rows.iter().map(|row| (row.work, row.sum_ns)).collect();
        assert_eq!(shown, [(2, 8), (1, 7)]);
        // What the first held has moved to those of its name, with the function.
        let named = CulpritTally {
            tid: 0,
            count: 2,
            ..works_on(1, 7)
        };
        let later = CulpritTally {
            count: 2,
            ..works_on(2, 9)
        };
        assert_eq!(growth(&[later, named], &rows), [works_on(2, 1)]);
    }

    #[test]
    fn wakers_are_ordered_by_their_wakeups() {
        let waker = |tid, count, latency_sum_ns| WakerTally {
            source: Source::default(),
            tid,
            tgid: tid,
            comm: comm("w"),
            count,
            latency_sum_ns,
        };
        let rows = merged(vec![waker(1, 3, 900), waker(2, 2, 5), waker(2, 2, 5)]);
        assert_eq!(rows, [waker(2, 4, 10), waker(1, 3, 900)]);
    }
}
