//! From the flight recorder's records to the events of ftrace, which is what Perfetto knows the
//! scheduler by.

use std::collections::BTreeMap;

use latency_common::flight::{FlightKind, FlightRecord, prio_of};

use super::proto::{
    Event, FtraceEvent, IrqHandlerEntry, IrqHandlerExit, LocalTimer, SchedMigrateTask, SchedSwitch,
    SchedWakeup, Softirq,
};
use crate::analysis::{escape, flight::left_state};

/// One event, its time on the clock that is so far ahead of ours. None of a kind that is not known.
pub(super) fn event(
    record: &FlightRecord,
    ahead_ns: u64,
    interrupts: &BTreeMap<u32, String>,
) -> Option<FtraceEvent> {
    let kind = FlightKind::of(record.kind)?;
    let event = match kind {
        FlightKind::Switch => Event::SchedSwitch(switch(record)),
        FlightKind::Waking => Event::SchedWaking(wakeup(record)),
        FlightKind::Wakeup => Event::SchedWakeup(wakeup(record)),
        FlightKind::WakeupNew => Event::SchedWakeupNew(wakeup(record)),
        FlightKind::Migrate => Event::SchedMigrateTask(migration(record)),
        FlightKind::IrqEntry => Event::IrqHandlerEntry(IrqHandlerEntry {
            irq: int(record.value),
            name: interrupts.get(&record.value).map(|name| escape::text(name)),
        }),
        FlightKind::IrqExit => Event::IrqHandlerExit(IrqHandlerExit {
            irq: int(record.value),
            ret: int(record.other_tid),
        }),
        FlightKind::SoftirqEntry => Event::SoftirqEntry(softirq(record)),
        FlightKind::SoftirqExit => Event::SoftirqExit(softirq(record)),
        FlightKind::TimerEntry => Event::LocalTimerEntry(timer(record)),
        FlightKind::TimerExit => Event::LocalTimerExit(timer(record)),
    };
    Some(FtraceEvent {
        timestamp: Some(record.at_ns.saturating_add(ahead_ns)),
        pid: Some(running(record, kind)),
        event: Some(event),
    })
}

/// The task that ran on the CPU when the event happened.
fn running(record: &FlightRecord, kind: FlightKind) -> u32 {
    match kind {
        FlightKind::Waking | FlightKind::Wakeup | FlightKind::WakeupNew => record.other_tid,
        _ => record.tid,
    }
}

fn switch(record: &FlightRecord) -> SchedSwitch {
    SchedSwitch {
        prev_comm: Some(escape::bytes(&record.comm)),
        prev_pid: int(record.tid),
        prev_prio: Some(prio_of(record.prio)),
        prev_state: Some(left_state(record).into()),
        next_comm: Some(escape::bytes(&record.other_comm)),
        next_pid: int(record.other_tid),
        next_prio: Some(prio_of(record.other_prio)),
    }
}

fn wakeup(record: &FlightRecord) -> SchedWakeup {
    SchedWakeup {
        comm: Some(escape::bytes(&record.comm)),
        pid: int(record.tid),
        prio: Some(prio_of(record.prio)),
        // The kernel has said so of every wakeup since 2011.
        success: Some(1),
        target_cpu: int(record.value),
    }
}

fn migration(record: &FlightRecord) -> SchedMigrateTask {
    SchedMigrateTask {
        comm: Some(escape::bytes(&record.comm)),
        pid: int(record.tid),
        prio: Some(prio_of(record.prio)),
        orig_cpu: int(record.value),
        dest_cpu: int(record.other_tid),
    }
}

fn softirq(record: &FlightRecord) -> Softirq {
    Softirq {
        vec: Some(record.value),
    }
}

fn timer(record: &FlightRecord) -> LocalTimer {
    LocalTimer {
        vector: int(record.value),
    }
}

/// The kernel's `int`, which a record keeps without its sign.
#[expect(
    clippy::unnecessary_wraps,
    reason = "every field of the format is optional"
)]
fn int(value: u32) -> Option<i32> {
    Some(value.cast_signed())
}
