//! Culprits that find no row in the storage of the task that waited for them: user space keeps them.

use aya_ebpf::maps::ring_buf::RingBufEntry;
use latency_common::{
    attribution::{Attribution, Culprit, N_CULPRIT_TASKS},
    loss::Loss,
    record::{BlameRecord, RecordTag},
    timeline::Face,
};

use crate::{
    blame::merge,
    given::{given, given_mut},
    maps::{RECORDS, SENDERS, count_loss},
    ring::{is_used, urgency},
    words::{add_atomically, copy_name},
};

/// Sends one stretch of a culprit that has not even a row of its name; 0 where there is no room.
///
/// VERIFIER: exported, so that it is verified once.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn send_stretch(
    attribution: *mut Attribution,
    face: *const Face,
    runner: u32,
    kind: u16,
    ns: u64,
) -> u32 {
    let (Some(attribution), Some(face)) = (given_mut(attribution), given(face)) else {
        return 0;
    };
    let Some(mut entry) = reserve() else {
        return 0;
    };
    // SAFETY: the reserved record is ours until it is submitted, and every field is written.
    let record = unsafe { &mut *entry.as_mut_ptr() };
    begin(record, attribution, ns);
    let row = &mut record.culprit;
    row.sum_ns = ns;
    row.max_ns = ns;
    row.count = 1;
    row.tid = runner;
    row.tgid = face.tgid;
    row.kind = kind;
    row.prio = face.prio;
    row.cgroup_id = face.cgroup_id;
    copy_name(&mut row.comm, &face.comm);
    entry.submit(urgency().into());
    1
}

/// Sends a row, or counts it as dropped; that of a name then holds the culprit in row `heir`, which is
/// about to lose its own.
///
/// VERIFIER: as above.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn send_row(attribution: *mut Attribution, heir: u32, row: u32) -> u32 {
    let Some(attribution) = given_mut(attribution) else {
        return 0;
    };
    let Some(&Culprit { sum_ns, .. }) = attribution.culprits.get(row as usize) else {
        return 0;
    };
    if let Some(mut entry) = reserve() {
        // SAFETY: the reserved record is ours until it is submitted, and every field is written.
        let record = unsafe { &mut *entry.as_mut_ptr() };
        begin(record, attribution, sum_ns);
        if let Some(from) = attribution.culprits.get(row as usize) {
            copy_row(&mut record.culprit, from);
        }
        entry.submit(urgency().into());
    } else {
        attribution.dropped_culprits_ns += sum_ns;
    }
    let (tasks, names) = attribution.culprits.split_at_mut(N_CULPRIT_TASKS);
    let name = (row as usize).wrapping_sub(N_CULPRIT_TASKS);
    if let (Some(name), Some(heir)) = (names.get_mut(name), tasks.get(heir as usize)) {
        name.sum_ns = 0;
        name.max_ns = 0;
        name.count = 0;
        merge(name, heir);
    }
    0
}

/// Room for a record: half of the ring is left to what ended tasks and long waits tell.
#[inline(always)]
fn reserve() -> Option<RingBufEntry<BlameRecord>> {
    let entry = if is_used(2) { None } else { RECORDS.reserve(0) };
    if entry.is_none() {
        count_loss(Loss::BlameRecords);
    }
    entry
}

#[inline(always)]
fn begin(record: &mut BlameRecord, attribution: &mut Attribution, ns: u64) {
    if attribution.sender == 0 {
        attribution.sender = new_sender();
    }
    attribution.sent_culprits_ns += ns;
    record.tag = RecordTag::Blame as u64;
    record.sender = attribution.sender;
    record.sent_ns = attribution.sent_culprits_ns;
}

/// A thread id would not do: a task that executes a program may take over that of another.
#[inline(always)]
fn new_sender() -> u64 {
    let Some(n_senders) = SENDERS.get_ptr_mut(0) else {
        return 0;
    };
    1 + add_atomically(n_senders, 1)
}

#[inline(always)]
fn copy_row(to: &mut Culprit, from: &Culprit) {
    to.sum_ns = from.sum_ns;
    to.max_ns = from.max_ns;
    to.cgroup_id = from.cgroup_id;
    to.count = from.count;
    to.tid = from.tid;
    to.tgid = from.tgid;
    to.kind = from.kind;
    to.prio = from.prio;
    copy_name(&mut to.comm, &from.comm);
}
