//! Rows of tasks to rows of a report: by thread, process, name or cgroup.
//!
//! Every task is in exactly one group, so the groups of any kind have the same grand total.
//! A process is its id: two processes that had the same id within one recording are one row.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{escape, merge};
use crate::model::{GroupBy, RowIdent, Tally, TaskIdent, TaskRow};

/// What tasks of one group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Tid(u32, u64),
    Pid(u32),
    Comm(&'a [u8]),
    Cgroup(&'a str),
}

/// The groups of `rows` with their sums, longest waited first.
pub(super) fn groups(rows: &[TaskRow], by: GroupBy) -> Vec<(RowIdent, Tally)> {
    let mut members: BTreeMap<Key<'_>, Vec<&TaskRow>> = BTreeMap::new();
    for row in rows {
        members.entry(key(&row.ident, by)).or_default().push(row);
    }
    let mut groups: Vec<_> = members
        .into_values()
        .map(|rows| {
            (
                ident(&rows, by),
                merge::sum(rows.iter().map(|row| &row.tally)),
            )
        })
        .collect();
    // The map gave them in the order of their keys, which decides ties.
    groups.sort_by_key(|(_, tally)| Reverse(tally.waited_ns()));
    groups
}

fn key(ident: &TaskIdent, by: GroupBy) -> Key<'_> {
    match by {
        GroupBy::Tid => Key::Tid(ident.tid, ident.start_time_ns),
        GroupBy::Pid => Key::Pid(ident.tgid),
        GroupBy::Comm => Key::Comm(escape::up_to_nul(&ident.comm)),
        GroupBy::Cgroup => Key::Cgroup(&ident.cgroup),
    }
}

/// Who a group of at least one task is.
fn ident(rows: &[&TaskRow], by: GroupBy) -> RowIdent {
    let shown = representative(rows, by);
    let comm = Some(escape::bytes(&shown.comm));
    let process_comm = Some(escape::bytes(&shown.leader_comm));
    let cgroup = Some(escape::text(&shown.cgroup));
    let group = RowIdent {
        exited: rows.iter().all(|row| row.ident.has_exited),
        is_self: rows.iter().all(|row| row.ident.is_self),
        n_tasks: rows.len() as u64,
        ..RowIdent::default()
    };
    match by {
        GroupBy::Tid => RowIdent {
            tid: Some(shown.tid),
            tgid: Some(shown.tgid),
            comm,
            process_comm,
            cgroup,
            start_time_ns: Some(shown.start_time_ns),
            ..group
        },
        GroupBy::Pid => RowIdent {
            tgid: Some(shown.tgid),
            comm: process_comm,
            ..group
        },
        GroupBy::Comm => RowIdent { comm, ..group },
        GroupBy::Cgroup => RowIdent { cgroup, ..group },
    }
}

/// The task that a group's name is taken from. All tasks of a process saw its leader's name at
/// different times; the leader, and else a task that lives, knows the last one.
fn representative<'a>(rows: &[&'a TaskRow], by: GroupBy) -> &'a TaskIdent {
    let rank = |row: &&&TaskRow| match by {
        GroupBy::Pid => (row.ident.tid == row.ident.tgid, !row.ident.has_exited),
        _ => (false, false),
    };
    // SANITY: a group is made for its first task.
    let row = rows.iter().max_by_key(rank).expect("a group has a task");
    &row.ident
}

#[cfg(test)]
mod tests {
    use latency_common::class::WaitClass;

    use super::*;
    use crate::analysis::fixture::{comm, row, tally_of};
    use crate::model::OpenWait;

    /// C120: two processes of one name with four threads each.
    fn eight_threads() -> Vec<TaskRow> {
        (0..8_u32)
            .map(|index| {
                let tgid = 100 + index / 4 * 4;
                let wait_ns = u64::from(index) * 10;
                row(
                    100 + index,
                    tgid,
                    "worker",
                    tally_of(WaitClass::Tick, &[wait_ns]),
                )
            })
            .collect()
    }

    #[track_caller]
    fn check(by: GroupBy, n_groups: usize) {
        let groups = groups(&eight_threads(), by);
        assert_eq!(groups.len(), n_groups);
        let waited: Vec<_> = groups.iter().map(|(_, tally)| tally.waited_ns()).collect();
        assert_eq!(waited.iter().sum::<u64>(), 280);
        assert!(waited.is_sorted_by(|longer, shorter| longer >= shorter));
        assert_eq!(
            groups.iter().map(|(ident, _)| ident.n_tasks).sum::<u64>(),
            8
        );
    }

    #[test]
    fn each_task_is_in_one_group() {
        check(GroupBy::Tid, 8);
        check(GroupBy::Pid, 2);
        check(GroupBy::Comm, 1);
        check(GroupBy::Cgroup, 1);
    }

    #[test]
    fn equal_waits_are_ordered_by_thread_id() {
        let rows = [9, 3, 5].map(|tid| row(tid, tid, "a", Tally::default()));
        let tids: Vec<_> = groups(&rows, GroupBy::Tid)
            .iter()
            .filter_map(|(ident, _)| ident.tid)
            .collect();
        assert_eq!(tids, [3, 5, 9]);
    }

    #[test]
    fn one_thread_id_used_twice_is_two_tasks() {
        let mut rows = [
            row(7, 7, "a", Tally::default()),
            row(7, 7, "a", Tally::default()),
        ];
        rows[1].ident.start_time_ns += 1;
        assert_eq!(groups(&rows, GroupBy::Tid).len(), 2);
    }

    #[test]
    fn task_that_still_waits_ranks_by_the_time_it_has_waited() {
        let mut waiting = Tally::default();
        waiting.open.push(OpenWait {
            class: WaitClass::Tick,
            ns: 1000,
        });
        let rows = [
            row(1, 1, "a", tally_of(WaitClass::Tick, &[999])),
            row(2, 2, "b", waiting),
        ];
        assert_eq!(groups(&rows, GroupBy::Tid)[0].0.tid, Some(2));
    }

    #[test]
    fn process_has_the_name_of_its_leader() {
        let mut rows = eight_threads();
        for row in &mut rows {
            row.ident.leader_comm = comm("old");
        }
        rows[0].ident.leader_comm = comm("new");
        let groups = groups(&rows[..4], GroupBy::Pid);
        assert_eq!(groups[0].0.comm.as_deref(), Some("new"));
        assert_eq!((groups[0].0.tgid, groups[0].0.tid), (Some(100), None));
    }

    #[test]
    fn group_has_ended_when_all_its_tasks_have() {
        let mut rows = eight_threads();
        rows[0].ident.has_exited = true;
        assert!(!groups(&rows, GroupBy::Comm)[0].0.exited);
        for row in &mut rows {
            row.ident.has_exited = true;
        }
        assert!(groups(&rows, GroupBy::Comm)[0].0.exited);
    }
}
