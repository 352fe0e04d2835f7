//! What the ring of records holds.

use latency_common::record::{BlameRecord, CgroupRecord, RecordTag, TaskRecord, WaitRecord};

use super::bytes::from_bytes;

/// A record of the ring.
#[derive(Debug)]
pub enum Record {
    /// A task has ended.
    Exit(Box<TaskRecord>),
    /// A cgroup was made.
    Cgroup(Box<CgroupRecord>),
    /// A long wait has ended.
    Wait(Box<WaitRecord>),
    /// A culprit found no row.
    Blame(BlameRecord),
    /// Of a shape that is not known.
    Malformed,
}

/// Reads a record.
pub(super) fn record(bytes: &[u8]) -> Record {
    let tag = bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    match (tag, bytes.len()) {
        (tag, len) if tag == RecordTag::Exit as u64 && len == size_of::<TaskRecord>() => {
            Record::Exit(Box::new(from_bytes(bytes)))
        }
        (tag, len) if tag == RecordTag::Cgroup as u64 && len == size_of::<CgroupRecord>() => {
            Record::Cgroup(Box::new(from_bytes(bytes)))
        }
        (tag, len) if tag == RecordTag::Wait as u64 && len == size_of::<WaitRecord>() => {
            Record::Wait(Box::new(from_bytes(bytes)))
        }
        (tag, len) if tag == RecordTag::Blame as u64 && len == size_of::<BlameRecord>() => {
            Record::Blame(from_bytes(bytes))
        }
        _ => Record::Malformed,
    }
}
