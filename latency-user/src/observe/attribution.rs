//! From the kernel side's attribution to the model.

use latency_common::attribution::{Attribution, CulpritKind};

use super::cgroups::CgroupNames;
use crate::model::{AttributionTally, CulpritTally, InterruptTally, WakerTally};

/// What a task's waits were made of; free rows are left out.
pub(super) fn tally(attribution: &Attribution, cgroups: &CgroupNames) -> AttributionTally {
    AttributionTally {
        parts: attribution.parts,
        dropped_culprits_ns: attribution.dropped_culprits_ns,
        stolen: attribution.stolen,
        culprits: culprits(attribution, cgroups),
        interrupts: interrupts(attribution),
        wake_path: attribution.wake_path,
        wakers: wakers(attribution),
    }
}

fn culprits(attribution: &Attribution, cgroups: &CgroupNames) -> Vec<CulpritTally> {
    let used = attribution.culprits.iter().filter(|row| row.count > 0);
    used.map(|row| CulpritTally {
        tid: row.tid,
        tgid: row.tgid,
        comm: row.comm,
        kind: kind(row.kind),
        cgroup: cgroups.path(row.cgroup_id),
        count: row.count.into(),
        sum_ns: row.sum_ns,
        max_ns: row.max_ns,
    })
    .collect()
}

fn kind(number: u16) -> CulpritKind {
    CulpritKind::ALL
        .into_iter()
        .find(|kind| *kind as u16 == number)
        .unwrap_or(CulpritKind::Foreign)
}

fn interrupts(attribution: &Attribution) -> Vec<InterruptTally> {
    let used = attribution.interrupts.iter().filter(|row| row.count > 0);
    used.map(|row| InterruptTally {
        source: row.source,
        count: row.count.into(),
        sum_ns: row.sum_ns,
    })
    .collect()
}

fn wakers(attribution: &Attribution) -> Vec<WakerTally> {
    let used = attribution.wakers.iter().filter(|row| row.count > 0);
    used.map(|row| WakerTally {
        source: row.source,
        tid: row.tid,
        tgid: row.tgid,
        comm: row.comm,
        count: row.count,
        latency_sum_ns: row.latency_sum_ns,
    })
    .collect()
}
