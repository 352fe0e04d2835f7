//! A dump of the flight recorder as a Perfetto trace, for <https://ui.perfetto.dev> and `trace_processor`.
//!
//! The trace's clock is `CLOCK_MONOTONIC`, as in all of our figures. Events of ftrace are on
//! `CLOCK_BOOTTIME` by definition of the format, so they are told on that clock, and the snapshot of
//! both at the beginning of the trace leads back to ours to the nanosecond.

mod events;
pub(crate) mod proto;
#[cfg(test)]
mod tests;

use prost::Message as _;

use self::proto::{
    Clock, ClockSnapshot, Data, DebugAnnotation, FtraceEventBundle, Process, ProcessTree,
    SEQ_INCREMENTAL_STATE_CLEARED, SystemInfo, Thread, ThreadDescriptor, Trace, TracePacket,
    TrackDescriptor, TrackEvent, Utsname, clock, event_type,
};
use crate::{
    analysis::escape,
    model::{Autopsy, Flight, FlightCpu},
};

/// Events of one packet: Perfetto's own stay of that order, and a reader need not hold more.
const EVENTS_PER_PACKET: usize = 1024;

/// We are the only writer of the trace.
const SEQUENCE: u32 = 1;

/// The trace.
#[must_use]
pub fn render(flight: &Flight) -> Vec<u8> {
    let mut bytes = Vec::new();
    let head = [clocks(flight), system(flight), processes(flight)];
    let events = flight.cpus.iter().flat_map(|cpu| bundles(flight, cpu));
    let marked = flight.marked.iter().flat_map(marks);
    for (index, mut packet) in head.into_iter().chain(events).chain(marked).enumerate() {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        packet.sequence_flags = (index == 0).then_some(SEQ_INCREMENTAL_STATE_CLEARED);
        let trace = Trace {
            packet: vec![packet],
        };
        // Traces behind one another are one trace. SANITY: memory takes every write.
        trace.encode(&mut bytes).unwrap_or_default();
    }
    bytes
}

fn packet(data: Data) -> TracePacket {
    TracePacket {
        data: Some(data),
        ..TracePacket::default()
    }
}

/// All clocks at the time of the dump, and which one is the trace's.
fn clocks(flight: &Flight) -> TracePacket {
    let reading = |clock_id, ahead_ns| Clock {
        clock_id: Some(clock_id),
        timestamp: Some(flight.at_ns.saturating_add(ahead_ns)),
    };
    packet(Data::ClockSnapshot(ClockSnapshot {
        clocks: vec![
            reading(clock::MONOTONIC, 0),
            reading(clock::BOOTTIME, flight.clocks.boottime_ns),
            reading(clock::REALTIME, flight.clocks.realtime_ns),
        ],
        primary_trace_clock: Some(clock::MONOTONIC),
    }))
}

/// The kernel: the meaning of a task's state depends on its release.
fn system(flight: &Flight) -> TracePacket {
    packet(Data::SystemInfo(SystemInfo {
        utsname: Some(Utsname {
            sysname: Some("Linux".to_owned()),
            release: Some(flight.kernel.clone()),
            machine: Some(flight.arch.clone()),
        }),
    }))
}

/// Names, and which thread belongs to which process.
fn processes(flight: &Flight) -> TracePacket {
    let processes = flight.processes.iter().map(|(tgid, name)| Process {
        pid: Some(tgid.cast_signed()),
        cmdline: vec![escape::bytes(name)],
        cmdline_is_comm: Some(true),
    });
    // The idle tasks, one per CPU, share thread id 0 and are known by it.
    let threads = flight.threads.iter().filter(|(tid, _)| **tid != 0);
    let threads = threads.map(|(tid, thread)| Thread {
        tid: Some(tid.cast_signed()),
        name: Some(escape::bytes(&thread.comm)),
        tgid: thread.tgid.map(u32::cast_signed),
    });
    packet(Data::ProcessTree(ProcessTree {
        processes: processes.collect(),
        threads: threads.collect(),
    }))
}

/// One CPU's events. The first bundle says when earlier events that were asked for are missing.
fn bundles(flight: &Flight, cpu: &FlightCpu) -> impl Iterator<Item = TracePacket> {
    let is_cut = cpu.from_ns > flight.from_ns || cpu.n_torn > 0 || cpu.n_refused > 0;
    let number = cpu.cpu;
    let chunks = cpu.events.chunks(EVENTS_PER_PACKET).enumerate();
    chunks.map(move |(index, records)| {
        let ahead_ns = flight.clocks.boottime_ns;
        let events = records
            .iter()
            .filter_map(|record| events::event(record, ahead_ns, &flight.interrupts));
        packet(Data::FtraceEvents(FtraceEventBundle {
            cpu: Some(number),
            event: events.collect(),
            lost_events: (index == 0 && is_cut).then_some(true),
        }))
    })
}

/// A marked wait: a slice on the track of the thread that waited, with what the report says of it.
fn marks(wait: &Autopsy) -> [TracePacket; 3] {
    let victim = &wait.victim;
    // The number only has to be the track's own, and a thread has one.
    let track_uuid = Some(u64::from(victim.tid));
    let track = packet(Data::TrackDescriptor(TrackDescriptor {
        uuid: track_uuid,
        thread: Some(ThreadDescriptor {
            pid: Some(victim.tgid.cast_signed()),
            tid: Some(victim.tid.cast_signed()),
            thread_name: Some(victim.comm.clone()),
        }),
    }));
    let edge = |at_ns, event| TracePacket {
        timestamp: Some(at_ns),
        timestamp_clock_id: Some(clock::MONOTONIC),
        ..packet(Data::TrackEvent(TrackEvent {
            track_uuid,
            categories: vec!["wait".to_owned()],
            ..event
        }))
    };
    let begin = TrackEvent {
        r#type: Some(event_type::SLICE_BEGIN),
        name: Some(format!("waited: {}", wait.cause)),
        debug_annotations: annotations(wait),
        ..TrackEvent::default()
    };
    let end = TrackEvent {
        r#type: Some(event_type::SLICE_END),
        ..TrackEvent::default()
    };
    let end_at_ns = wait.at_ns.saturating_add(wait.wait_ns);
    [track, edge(wait.at_ns, begin), edge(end_at_ns, end)]
}

/// The length of a wait, its parts, and what would have helped.
fn annotations(wait: &Autopsy) -> Vec<DebugAnnotation> {
    let number = |name: &str, value| DebugAnnotation {
        name: Some(name.to_owned()),
        uint_value: Some(value),
        string_value: None,
    };
    let parts = wait.parts.list().into_iter().filter(|(_, ns)| *ns > 0);
    let parts = parts.map(|(key, ns)| number(&format!("{key}_ns"), ns));
    let hint = wait.hint.iter().map(|hint| DebugAnnotation {
        name: Some("hint".to_owned()),
        uint_value: None,
        string_value: Some(hint.clone()),
    });
    [number("wait_ns", wait.wait_ns)]
        .into_iter()
        .chain(parts)
        .chain(hint)
        .collect()
}
