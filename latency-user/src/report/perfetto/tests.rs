//! Dumps rendered, and read back with our own messages; the tests on the live kernel read them with the
//! official ones.

use std::collections::BTreeMap;

use latency_common::flight::{FlightKind, FlightRecord};

use super::{
    proto::{Event, FtraceEvent},
    *,
};
use crate::model::{ClockOffsets, DumpReason, FlightThread, PartStats, Parts, Victim};

/// How long the machine was suspended.
const SUSPENDED_NS: u64 = 7_000;

fn name(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

fn switch(at_ns: u64) -> FlightRecord {
    FlightRecord {
        at_ns,
        kind: FlightKind::Switch as u8,
        value: 1,
        tid: 10,
        tgid: 9,
        prio: 120,
        comm: name("victim"),
        other_tid: 20,
        other_prio: 0xff,
        other_comm: name("\x1b[31m"),
        ..FlightRecord::default()
    }
}

fn flight(events: Vec<FlightRecord>) -> Flight {
    let thread = FlightThread {
        tgid: Some(9),
        comm: name("victim"),
    };
    Flight {
        reason: DumpReason::End,
        from_ns: 1_000,
        at_ns: 5_000,
        cpus: vec![FlightCpu {
            cpu: 3,
            events,
            from_ns: 1_000,
            ..FlightCpu::default()
        }],
        threads: BTreeMap::from([(0, FlightThread::default()), (10, thread)]),
        processes: BTreeMap::from([(9, b"leader".to_vec())]),
        interrupts: BTreeMap::from([(24, "virtio0-input.0".to_owned())]),
        marked: Vec::new(),
        clocks: ClockOffsets {
            boottime_ns: SUSPENDED_NS,
            realtime_ns: 1 << 60,
        },
        kernel: "6.18.44".into(),
        arch: "x86_64".into(),
    }
}

/// The packets' contents.
fn rendered(flight: &Flight) -> Vec<Data> {
    let trace = Trace::decode(&render(flight)[..]).unwrap();
    let data = trace.packet.into_iter().map(|packet| packet.data.unwrap());
    data.collect()
}

fn events(flight: &Flight) -> Vec<FtraceEvent> {
    let events = rendered(flight).into_iter().filter_map(|data| match data {
        Data::FtraceEvents(bundle) => Some(bundle.event),
        _ => None,
    });
    events.flatten().collect()
}

#[test]
fn trace_begins_with_its_clocks_of_which_ours_is_the_first() {
    let Data::ClockSnapshot(snapshot) = &rendered(&flight(Vec::new()))[0] else {
        panic!("no clocks");
    };
    assert_eq!(snapshot.primary_trace_clock, Some(clock::MONOTONIC));
    let readings: Vec<_> = snapshot
        .clocks
        .iter()
        .map(|clock| clock.timestamp)
        .collect();
    let realtime_ns = (1 << 60) + 5_000;
    assert_eq!(readings, [Some(5_000), Some(12_000), Some(realtime_ns)]);
}

#[test]
fn switch_is_told_on_the_clock_of_ftrace_with_both_tasks_and_escaped_names() {
    let [event] = &events(&flight(vec![switch(2_000)]))[..] else {
        panic!("not one event");
    };
    assert_eq!(event.timestamp, Some(2_000 + SUSPENDED_NS));
    assert_eq!(event.pid, Some(10));
    let Some(Event::SchedSwitch(switch)) = &event.event else {
        panic!("no switch: {event:?}");
    };
    let prev = (switch.prev_pid, switch.prev_prio, switch.prev_state);
    assert_eq!(prev, (Some(10), Some(120), Some(1)));
    assert_eq!((switch.next_pid, switch.next_prio), (Some(20), Some(-1)));
    assert_eq!(switch.prev_comm.as_deref(), Some("victim"));
    assert_eq!(switch.next_comm.as_deref(), Some("\\x1b[31m"));
}

#[test]
fn each_kind_becomes_its_own_event() {
    let record = |kind| FlightRecord {
        at_ns: 2_000,
        kind,
        value: 24,
        tid: 10,
        other_tid: 20,
        ..FlightRecord::default()
    };
    let kinds = FlightKind::ALL.map(|kind| record(kind as u8));
    let events = events(&flight(kinds.to_vec()));
    let has = |is: fn(&Event) -> bool| events.iter().filter_map(|e| e.event.as_ref()).any(is);
    assert_eq!(events.len(), FlightKind::ALL.len());
    assert!(has(
        |e| matches!(e, Event::SchedWaking(w) if w.pid == Some(10) && w.target_cpu == Some(24))
    ));
    assert!(has(|e| matches!(e, Event::SchedWakeup(_))));
    assert!(has(|e| matches!(e, Event::SchedWakeupNew(_))));
    assert!(has(
        |e| matches!(e, Event::SchedMigrateTask(m) if (m.orig_cpu, m.dest_cpu) == (Some(24), Some(20)))
    ));
    assert!(has(
        |e| matches!(e, Event::IrqHandlerEntry(i) if i.name.as_deref() == Some("virtio0-input.0"))
    ));
    assert!(has(
        |e| matches!(e, Event::IrqHandlerExit(i) if i.ret == Some(20))
    ));
    assert!(has(
        |e| matches!(e, Event::SoftirqEntry(s) if s.vec == Some(24))
    ));
    assert!(has(|e| matches!(e, Event::SoftirqExit(_))));
    assert!(has(
        |e| matches!(e, Event::LocalTimerEntry(t) if t.vector == Some(24))
    ));
    assert!(has(|e| matches!(e, Event::LocalTimerExit(_))));
    // A wakeup is done by whatever runs, all else happens to the task itself.
    let pids: Vec<_> = events.iter().map(|event| event.pid.unwrap()).collect();
    assert_eq!(pids, [10, 20, 20, 20, 10, 10, 10, 10, 10, 10, 10]);
}

#[test]
fn idle_tasks_belong_to_no_process() {
    let data = rendered(&flight(Vec::new()));
    let tree = data.iter().find_map(|data| match data {
        Data::ProcessTree(tree) => Some(tree),
        _ => None,
    });
    let tree = tree.unwrap();
    assert_eq!(tree.processes[0].cmdline, ["leader"]);
    let threads: Vec<_> = tree.threads.iter().map(|thread| thread.tid).collect();
    assert_eq!(threads, [Some(10)]);
    assert_eq!(tree.threads[0].tgid, Some(9));
}

#[test]
fn history_that_is_too_short_is_marked_in_the_cpus_first_bundle() {
    let mut flight = flight((1_000..1_000 + 2 * 1024).map(switch).collect());
    let lost = |flight: &Flight| -> Vec<_> {
        let data = rendered(flight).into_iter();
        data.filter_map(|data| match data {
            Data::FtraceEvents(bundle) => Some(bundle.lost_events),
            _ => None,
        })
        .collect()
    };
    assert_eq!(lost(&flight), [None, None]);
    flight.cpus[0].from_ns = 1_001;
    assert_eq!(lost(&flight), [Some(true), None]);
}

#[test]
fn marked_wait_is_a_slice_on_the_victims_track_on_our_clock() {
    let mut flight = flight(Vec::new());
    flight.marked = vec![Autopsy {
        victim: Victim {
            tid: 10,
            tgid: 9,
            comm: "victim".into(),
            ..Victim::default()
        },
        cause: "tick",
        at_ns: 2_000,
        wait_ns: 2_500,
        parts: Parts {
            tick: PartStats { sum_ns: 500 },
            ..Parts::default()
        },
        hint: Some("pinned".into()),
        ..Autopsy::default()
    }];
    let packets = Trace::decode(&render(&flight)[..]).unwrap().packet;
    let [.., track, begin, end] = &packets[..] else {
        panic!("too few packets");
    };
    let Some(Data::TrackDescriptor(track)) = &track.data else {
        panic!("no track: {track:?}");
    };
    let thread = track.thread.as_ref().unwrap();
    assert_eq!((thread.pid, thread.tid), (Some(9), Some(10)));
    let edge = |packet: &TracePacket| {
        assert_eq!(packet.timestamp_clock_id, Some(clock::MONOTONIC));
        let Some(Data::TrackEvent(event)) = packet.data.clone() else {
            panic!("no event: {packet:?}");
        };
        assert_eq!(event.track_uuid, track.uuid);
        (packet.timestamp.unwrap(), event)
    };
    let (at_ns, begin) = edge(begin);
    assert_eq!(
        (at_ns, begin.r#type),
        (2_000, Some(event_type::SLICE_BEGIN))
    );
    assert_eq!(begin.name.as_deref(), Some("waited: tick"));
    let said = begin.debug_annotations.into_iter();
    let said: Vec<_> = said
        .map(|it| (it.name.unwrap(), it.uint_value, it.string_value))
        .collect();
    let expected = [
        ("wait_ns".to_owned(), Some(2_500), None),
        ("tick_ns".to_owned(), Some(500), None),
        ("hint".to_owned(), None, Some("pinned".to_owned())),
    ];
    assert_eq!(said, expected);
    let (at_ns, end) = edge(end);
    assert_eq!((at_ns, end.r#type), (4_500, Some(event_type::SLICE_END)));
}
