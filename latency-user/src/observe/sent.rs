//! Culprits that found no row in the kernel: kept here, by name, until their victim's own row is made.
//!
//! A row counts what its task has sent. So what came while a snapshot read the rows is left to the next
//! one where the row was read before it: blame and parts are of one moment.

use std::collections::{BTreeMap, HashMap};

use latency_common::{attribution::Attribution, record::BlameRecord};

use super::{attribution::culprit, cgroups::CgroupNames};
use crate::{
    analysis::{TableRow, merged},
    model::{CulpritTally, TaskRow},
};

/// Names kept, of all tasks together.
const MAX_NAMES: usize = 1 << 18;

/// What the rows of tasks lack, by their `sender`.
#[derive(Debug, Default)]
pub(crate) struct SentCulprits {
    tasks: HashMap<u64, Sent>,
    /// What came since the rows of a snapshot are read, likewise.
    late: HashMap<u64, Vec<BlameRecord>>,
    is_snapshot: bool,
    n_names: usize,
    n_dropped: u64,
}

/// What one task has sent.
#[derive(Debug, Default)]
struct Sent {
    names: BTreeMap<<CulpritTally as TableRow>::Key, CulpritTally>,
    /// Time of those that found no room here either.
    dropped_ns: u64,
}

impl SentCulprits {
    /// Takes a record in.
    pub(crate) fn add(&mut self, record: &BlameRecord, cgroups: &CgroupNames) {
        if self.is_snapshot {
            self.late.entry(record.sender).or_default().push(*record);
        } else {
            self.keep(record, cgroups);
        }
    }

    /// From now on rows are read.
    pub(crate) fn begin_snapshot(&mut self) {
        self.is_snapshot = true;
    }

    /// Rows were read, and what is late as well.
    pub(crate) fn end_snapshot(&mut self, cgroups: &CgroupNames) {
        self.is_snapshot = false;
        for record in std::mem::take(&mut self.late).into_values().flatten() {
            self.keep(&record, cgroups);
        }
    }

    /// Completes the row of a task that lives.
    pub(crate) fn complete(&self, row: &mut TaskRow, from: &Attribution, cgroups: &CgroupNames) {
        if from.sender == 0 {
            return;
        }
        let is_counted = |record: &&BlameRecord| record.sent_ns <= from.sent_culprits_ns;
        let late = self.late.get(&from.sender).into_iter().flatten();
        let late = late.filter(is_counted).map(|record| name(record, cgroups));
        add(row, self.tasks.get(&from.sender), late);
    }

    /// Completes the row of a task that has ended.
    pub(crate) fn complete_last(
        &mut self,
        row: &mut TaskRow,
        from: &Attribution,
        cgroups: &CgroupNames,
    ) {
        if from.sender == 0 {
            return;
        }
        let late = self.late.remove(&from.sender).into_iter().flatten();
        let late = late.map(|record| name(&record, cgroups));
        let sent = self.tasks.remove(&from.sender);
        self.n_names -= sent.as_ref().map_or(0, |sent| sent.names.len());
        add(row, sent.as_ref(), late);
    }

    /// Those that found no room here.
    pub(crate) const fn n_dropped(&self) -> u64 {
        self.n_dropped
    }

    fn keep(&mut self, record: &BlameRecord, cgroups: &CgroupNames) {
        let sent = self.tasks.entry(record.sender).or_default();
        let row = name(record, cgroups);
        if let Some(known) = sent.names.get_mut(&row.key()) {
            known.absorb(&row);
        } else if self.n_names < MAX_NAMES {
            self.n_names += 1;
            sent.names.insert(row.key(), row);
        } else {
            self.n_dropped += 1;
            sent.dropped_ns += row.sum_ns;
        }
    }
}

/// The record as a row of its name.
fn name(record: &BlameRecord, cgroups: &CgroupNames) -> CulpritTally {
    CulpritTally {
        tid: 0,
        tgid: 0,
        ..culprit(&record.culprit, cgroups)
    }
}

fn add(row: &mut TaskRow, sent: Option<&Sent>, late: impl Iterator<Item = CulpritTally>) {
    let attribution = &mut row.tally.attribution;
    let mut culprits = std::mem::take(&mut attribution.culprits);
    culprits.extend(late);
    if let Some(sent) = sent {
        culprits.extend(sent.names.values().cloned());
        attribution.dropped_culprits_ns += sent.dropped_ns;
    }
    attribution.culprits = merged(culprits);
}

#[cfg(test)]
mod tests {
    use latency_common::attribution::{Culprit, CulpritKind};

    use super::*;
    use crate::analysis::fixture::{comm, row};
    use crate::model::Tally;

    /// Of the first sender, which has now sent `sent_ns`.
    fn record(name: &str, sum_ns: u64, sent_ns: u64) -> BlameRecord {
        BlameRecord {
            sender: 1,
            sent_ns,
            culprit: Culprit {
                tid: 9,
                sum_ns,
                max_ns: sum_ns,
                count: 1,
                kind: CulpritKind::Foreign as u16,
                comm: comm(name),
                ..Culprit::default()
            },
            ..BlameRecord::default()
        }
    }

    /// What the kernel counts of that sender.
    fn has_sent(sender: u64, ns: u64) -> Attribution {
        Attribution {
            sender,
            sent_culprits_ns: ns,
            ..Attribution::default()
        }
    }

    fn task() -> TaskRow {
        row(7, 7, "victim", Tally::default())
    }

    fn shown(row: &TaskRow) -> Vec<(u32, &[u8], u64)> {
        let culprits = row.tally.attribution.culprits.iter();
        culprits
            .map(|row| (row.tid, &row.comm[..1], row.sum_ns))
            .collect()
    }

    #[test]
    fn snapshot_has_what_its_rows_count_and_the_next_one_the_rest() {
        let cgroups = CgroupNames::default();
        let mut sent = SentCulprits::default();
        sent.add(&record("a", 5, 5), &cgroups);
        sent.begin_snapshot();
        sent.add(&record("b", 2, 7), &cgroups);
        sent.add(&record("a", 3, 10), &cgroups);
        let mut early = task();
        sent.complete(&mut early, &has_sent(1, 7), &cgroups);
        assert_eq!(shown(&early), [(0, &b"a"[..], 5), (0, b"b", 2)]);
        sent.end_snapshot(&cgroups);
        let mut late = task();
        sent.complete(&mut late, &has_sent(1, 10), &cgroups);
        assert_eq!(shown(&late), [(0, &b"a"[..], 8), (0, b"b", 2)]);
        let mut other = task();
        sent.complete(&mut other, &has_sent(2, 10), &cgroups);
        assert_eq!(shown(&other), []);
    }

    #[test]
    fn task_that_ends_takes_all_it_sent_with_it() {
        let cgroups = CgroupNames::default();
        let mut sent = SentCulprits::default();
        sent.add(&record("a", 5, 5), &cgroups);
        sent.begin_snapshot();
        sent.add(&record("a", 2, 7), &cgroups);
        let mut ended = task();
        sent.complete_last(&mut ended, &has_sent(1, 7), &cgroups);
        assert_eq!(shown(&ended), [(0, &b"a"[..], 7)]);
        sent.end_snapshot(&cgroups);
        assert!(sent.tasks.is_empty() && sent.n_names == 0);
    }

    #[test]
    fn what_finds_no_room_here_has_no_name() {
        let cgroups = CgroupNames::default();
        let mut sent = SentCulprits {
            n_names: MAX_NAMES - 1,
            ..SentCulprits::default()
        };
        for (name, sent_ns) in [("a", 5), ("b", 10), ("a", 15)] {
            sent.add(&record(name, 5, sent_ns), &cgroups);
        }
        let mut row = task();
        sent.complete(&mut row, &has_sent(1, 15), &cgroups);
        assert_eq!(shown(&row), [(0, &b"a"[..], 10)]);
        assert_eq!(row.tally.attribution.dropped_culprits_ns, 5);
        assert_eq!(sent.n_dropped(), 1);
    }
}
