//! Who had the CPU while a thread of a probe waited for it.

use crate::model::{Row, probe::RanInstead};

/// Those whom the recorder blames for the waits of a thread, the largest sum first.
pub(super) fn ran_instead(row: Option<&Row>, peer_tid: Option<u32>) -> Vec<RanInstead> {
    let blame = row.map_or(&[][..], |row| &row.stats.blame);
    blame
        .iter()
        .map(|blame| RanInstead {
            comm: blame.culprit.comm.clone(),
            tid: blame.culprit.tid,
            tgid: blame.culprit.tgid,
            kind: blame.culprit.kind,
            is_peer: Some(blame.culprit.tid) == peer_tid,
            count: blame.count,
            sum_ns: blame.sum_ns,
            mean_ns: blame.sum_ns / blame.count.max(1),
            max_ns: blame.max_ns,
        })
        .collect()
}
