//! Events of traced threads, as the ring holds them.

use latency_common::{
    class::WaitClass,
    trace::{Firing, TraceInterrupt, TraceTag, TraceWait},
};

use super::bytes::from_bytes;
use crate::model::{TimerFiring, TraceEvent, TracedInterrupt, TracedWait};

/// A record of a shape that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedRecord;

/// Reads a record.
pub(crate) fn event(bytes: &[u8]) -> Result<TraceEvent, MalformedRecord> {
    let tag = bytes
        .first_chunk()
        .map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    match (tag, bytes.len()) {
        (tag, len) if tag == TraceTag::Wait as u32 && len == size_of::<TraceWait>() => {
            wait(&from_bytes(bytes)).map(TraceEvent::Wait)
        }
        (tag, len) if tag == TraceTag::Interrupt as u32 && len == size_of::<TraceInterrupt>() => {
            Ok(TraceEvent::Interrupt(interrupt(&from_bytes(bytes))))
        }
        _ => Err(MalformedRecord),
    }
}

fn wait(record: &TraceWait) -> Result<TracedWait, MalformedRecord> {
    let class = usize::try_from(record.class).ok();
    Ok(TracedWait {
        tid: record.tid,
        cpu: record.cpu,
        class: class
            .and_then(WaitClass::from_index)
            .ok_or(MalformedRecord)?,
        waking_at_ns: (record.waking_at_ns != 0).then_some(record.waking_at_ns),
        queued_at_ns: record.queued_at_ns,
        running_at_ns: record.running_at_ns,
        parts_ns: record.parts,
        timer: firing(&record.firing),
        previous_tid: record.previous_tid,
    })
}

fn firing(firing: &Firing) -> Option<TimerFiring> {
    (firing.fired_at_ns != 0).then_some(TimerFiring {
        programmed_ns: firing.programmed_ns,
        expires_ns: firing.expires_ns,
        fired_at_ns: firing.fired_at_ns,
    })
}

fn interrupt(record: &TraceInterrupt) -> TracedInterrupt {
    TracedInterrupt {
        tid: record.tid,
        cpu: record.cpu,
        source: record.source,
        since_ns: record.since_ns,
        until_ns: record.until_ns,
        own_ns: record.own_ns,
        asked_for_switch: record.asked_for_switch != 0,
    }
}
