//! Names of tasks and paths of groups: whatever bytes they are, every format keeps its form and the name.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use super::{dump, is_harmless};
use crate::{
    analysis::{Context, autopsy, escape, summarise},
    kernel::bytes::from_bytes,
    model::{
        AttributionTally, ClassTally, CulpritTally, Flight, FlightCpu, GroupBy, Host,
        InterruptTally, KernelNames, Observation, PreemptorTally, Report, StackTally, Tally,
        TaskIdent, TaskRow, WaitEvent, WakerTally,
    },
    report::{
        csv, folded, json,
        perfetto::proto::{Data, Event, FtraceEvent},
        text,
    },
};
use latency_common::{
    attribution::CulpritKind,
    class::WaitClass,
    flight::{FlightKind, FlightRecord},
    interrupt::{InterruptKind, Source},
    record::{WaitRecord, WaitStint},
    timeline::{Runner, StackHandle},
};

/// How the rows of a report can be made.
const GROUPINGS: [GroupBy; 4] = [GroupBy::Tid, GroupBy::Pid, GroupBy::Comm, GroupBy::Cgroup];

/// The weight of the only stack.
const STACK_NS: u64 = 1_234;

/// The number of the only stack, system call, work and interrupt.
const NUMBER: u32 = 1;

/// What the kernel calls things.
struct Names<'a> {
    comm: [u8; 16],
    path: &'a str,
}

/// Gives the bytes to every format: the first sixteen as the name of tasks, the rest as the path of a group
/// and as the name of what else has one.
///
/// # Panics
///
/// Where a format loses its form, its name, or a terminal its order.
pub fn names(bytes: &[u8]) {
    let (first, rest) = bytes.split_at(bytes.len().min(16));
    let mut comm = [0; 16];
    comm[..first.len()].copy_from_slice(first);
    let path = String::from_utf8_lossy(rest);
    let names = Names { comm, path: &path };
    // One of them each time, since a report has many documents.
    let grouping = bytes.len() % GROUPINGS.len();
    let report = report(&names, GROUPINGS[grouping]);
    check_text(&report, N_LINES[grouping]);
    check_json(&report);
    check_csv(&report);
    check_folded(&report);
    check_perfetto(&names);
}

/// Lines of the text with names of letters, by grouping.
static N_LINES: LazyLock<[usize; GROUPINGS.len()]> = LazyLock::new(|| {
    let plain = Names {
        comm: *b"name\0\0\0\0\0\0\0\0\0\0\0\0",
        path: "/path",
    };
    GROUPINGS.map(|by| text::render(&report(&plain, by), 10).lines().count())
});

/// As many lines as with names of letters, each harmless.
fn check_text(report: &Report, n_lines: usize) {
    let shown = text::render(report, 10);
    assert_eq!(shown.split_terminator('\n').count(), n_lines, "{shown}");
    for line in shown.split_terminator('\n') {
        assert!(is_harmless(line), "{line:?}");
    }
}

/// Each document is one line, which parses and has the names.
fn check_json(report: &Report) {
    let ident = &report.rows[0].ident;
    for line in [json::interval_line(report, 1), json::final_line(report)] {
        let line = line.strip_suffix('\n').expect("a line has an end");
        assert!(!line.contains(char::is_control), "{line:?}");
        let document: serde_json::Value = serde_json::from_str(line).expect("JSON parses");
        let is_by_task = report.by == GroupBy::Tid;
        let row = &document[if is_by_task { "tasks" } else { "groups" }][0];
        assert_eq!(row["comm"].as_str(), ident.comm.as_deref());
        assert_eq!(row["cgroup"].as_str(), ident.cgroup.as_deref());
    }
}

/// A header and two rows of the same columns, with the names.
fn check_csv(report: &Report) {
    let shown = csv::render(report);
    let mut reader = ::csv::Reader::from_reader(shown.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let rows: Vec<_> = reader.records().collect::<Result<_, _>>().expect("rows");
    assert_eq!(rows.len(), 2, "{shown}");
    let cell = |key| {
        let at = header.iter().position(|it| it == key).expect("a column");
        &rows[1][at]
    };
    let ident = &report.rows[0].ident;
    assert_eq!(cell("comm"), ident.comm.as_deref().unwrap_or_default());
    assert_eq!(cell("cgroup"), ident.cgroup.as_deref().unwrap_or_default());
    assert!(shown.split_terminator('\n').all(is_harmless), "{shown:?}");
}

/// One line of as many frames as there are, and one figure.
fn check_folded(report: &Report) {
    let shown = folded::render(report);
    let line = shown.strip_suffix('\n').expect("a line has an end");
    let (frames, weight) = line.rsplit_once(' ').expect("a figure");
    assert_eq!(weight.parse(), Ok(STACK_NS));
    assert!(is_harmless(frames) && !frames.contains(char::is_whitespace));
    assert_eq!(frames.split(';').count(), 4, "{frames:?}");
}

/// The trace decodes, and has the names.
fn check_perfetto(names: &Names<'_>) {
    let comm = escape::bytes(&names.comm);
    let (mut n_threads, mut n_events, mut n_tracks) = (0, 0, 0);
    for data in dump::decoded(&flight(names)) {
        match data {
            Data::ProcessTree(tree) => {
                for thread in tree.threads {
                    assert_eq!(thread.name.as_deref(), Some(&*comm));
                    n_threads += 1;
                }
            }
            Data::FtraceEvents(bundle) => {
                n_events += bundle.event.len();
                bundle
                    .event
                    .iter()
                    .for_each(|event| check_event(event, names));
            }
            Data::TrackDescriptor(track) => {
                let thread = track.thread.expect("a thread's track");
                assert_eq!(thread.thread_name.as_deref(), Some(&*comm));
                n_tracks += 1;
            }
            _ => {}
        }
    }
    assert_eq!(
        (n_threads, n_events, n_tracks),
        (1, FlightKind::ALL.len(), 1)
    );
}

fn check_event(event: &FtraceEvent, names: &Names<'_>) {
    let comm = escape::bytes(&names.comm);
    match event.event.as_ref().expect("a kind") {
        Event::SchedSwitch(switch) => {
            assert_eq!(switch.prev_comm.as_deref(), Some(&*comm));
            assert_eq!(switch.next_comm.as_deref(), Some(&*comm));
        }
        Event::SchedWakeup(wakeup) => assert_eq!(wakeup.comm.as_deref(), Some(&*comm)),
        Event::IrqHandlerEntry(entry) => {
            assert_eq!(entry.name, Some(escape::text(names.path)));
        }
        _ => {}
    }
}

/// A report in which everything that has a name has these.
fn report(names: &Names<'_>, by: GroupBy) -> Report {
    let host = Host::default();
    let context = Context {
        host: &host,
        target: names.path,
        by,
        detail: latency_common::config::Detail::Full,
        degraded: &[],
        flight: &[],
        over: None,
        recorder_cpu_pct: 0.0,
    };
    summarise(&observation(names), &context)
}

fn observation(names: &Names<'_>) -> Observation {
    let frame: Arc<str> = format!("f{}", names.path).into();
    Observation {
        end_at_ns: 1_000_000,
        rows: vec![row(names)],
        irq_names: BTreeMap::from([(NUMBER, names.path.to_owned())]),
        longest: vec![wait(names)],
        stacks: vec![StackTally {
            comm: names.comm,
            is_kernel_thread: false,
            stack: stack(),
            sum_ns: STACK_NS,
            count: 1,
        }],
        names: KernelNames {
            paths: BTreeMap::from([(NUMBER, vec![Arc::clone(&frame), Arc::clone(&frame)])]),
            works: BTreeMap::from([(NUMBER, frame)]),
        },
        ..Observation::default()
    }
}

fn stack() -> StackHandle {
    StackHandle::new(NUMBER, 1)
}

fn irq() -> Source {
    Source::new(InterruptKind::HardIrq, NUMBER)
}

/// A task that waited once, behind a task and an interrupt, and once more for who took its CPU.
fn row(names: &Names<'_>) -> TaskRow {
    let class = ClassTally {
        count: 1,
        sum_ns: 20_000,
        min_ns: 20_000,
        max_ns: 20_000,
        kernel_ns: 20_000,
    };
    let mut tally = Tally {
        preemptors: vec![PreemptorTally {
            class: Some(WaitClass::Tick),
            comm: names.comm,
            tid: 8,
            count: 1,
            sum_ns: 20_000,
        }],
        attribution: attribution(names),
        ..Tally::default()
    };
    tally.classes[WaitClass::Wakeup as usize] = class;
    tally.classes[WaitClass::Tick as usize] = class;
    tally.latency = class;
    TaskRow {
        ident: TaskIdent {
            tid: 7,
            tgid: 7,
            start_time_ns: 1,
            comm: names.comm,
            leader_comm: names.comm,
            cgroup: names.path.into(),
            has_exited: false,
            is_self: false,
        },
        tally,
    }
}

fn attribution(names: &Names<'_>) -> AttributionTally {
    let waker = |tid, source| WakerTally {
        source,
        tid,
        tgid: tid,
        comm: names.comm,
        count: 1,
        latency_sum_ns: 20_000,
    };
    AttributionTally {
        parts: [5_000; _],
        culprits: vec![CulpritTally {
            tid: 8,
            work: NUMBER,
            tgid: 8,
            prio: 120,
            comm: names.comm,
            kind: CulpritKind::Foreign,
            cgroup: names.path.into(),
            count: 1,
            sum_ns: 5_000,
            max_ns: 5_000,
        }],
        interrupts: vec![InterruptTally {
            source: irq(),
            count: 1,
            sum_ns: 5_000,
        }],
        wakers: vec![waker(9, Source::default()), waker(0, irq())],
        ..AttributionTally::default()
    }
}

/// The longest wait, through the stint of a worker.
fn wait(names: &Names<'_>) -> WaitEvent {
    let zeros = [0; size_of::<WaitRecord>()];
    let mut record: WaitRecord = from_bytes(&zeros);
    record.until_ns = 20_000;
    record.tid = 7;
    record.waker_tid = 9;
    (record.comm, record.leader_comm, record.waker_comm) = (names.comm, names.comm, names.comm);
    record.n_stints = 1;
    record.stints[0] = WaitStint {
        tid: Runner::new(8, NUMBER).0,
        tgid: 8,
        stack: stack(),
        comm: names.comm,
        ..WaitStint::default()
    };
    WaitEvent {
        record,
        cgroup: names.path.into(),
    }
}

/// A dump with an event of each kind, and the wait marked.
fn flight(names: &Names<'_>) -> Flight {
    let record = |kind| FlightRecord {
        at_ns: 2_000,
        kind: kind as u8,
        tid: 7,
        tgid: 7,
        value: NUMBER,
        comm: names.comm,
        other_comm: names.comm,
        ..FlightRecord::default()
    };
    let observation = observation(names);
    let irqs = observation.irq_names;
    Flight {
        processes: BTreeMap::from([(7, names.comm.to_vec())]),
        marked: vec![autopsy(&wait(names), &irqs, &observation.names)],
        interrupts: irqs,
        ..dump::of(FlightCpu {
            events: FlightKind::ALL.map(record).to_vec(),
            ..FlightCpu::default()
        })
    }
}
