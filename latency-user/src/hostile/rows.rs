//! Records as the kernel side hands them over: any bytes of any length are read, or counted as malformed.

use latency_common::{
    flight::{FlightKind, FlightRecord},
    hist::N_BUCKETS,
    record::{BlameRecord, CgroupRecord, RecordTag, TaskRecord, WaitRecord},
    trace::{TraceInterrupt, TraceTag, TraceWait},
};

use super::{dump, is_harmless};
use crate::{
    analysis::{autopsy, flight},
    kernel::{Record, bytes::from_bytes, record, trace},
    model::{FlightRing, KernelNames, TraceEvent, WaitEvent, Window},
    observe::{cgroups::CgroupNames, convert, sent::SentCulprits, threshold::Threshold},
    report::{perfetto::proto::Data, text},
};

/// The kinds of records of the ring, with their lengths.
const RECORDS: [(RecordTag, usize); 4] = [
    (RecordTag::Exit, size_of::<TaskRecord>()),
    (RecordTag::Cgroup, size_of::<CgroupRecord>()),
    (RecordTag::Wait, size_of::<WaitRecord>()),
    (RecordTag::Blame, size_of::<BlameRecord>()),
];

/// Those of the ring of traced threads.
const TRACES: [(TraceTag, usize); 2] = [
    (TraceTag::Wait, size_of::<TraceWait>()),
    (TraceTag::Interrupt, size_of::<TraceInterrupt>()),
];

/// Reads the bytes as what every ring holds: as they are, and with the tag and the length of each kind.
///
/// # Panics
///
/// Where what was read is not what the bytes hold.
pub fn rows(bytes: &[u8]) {
    let is_record = |(tag, len): &(RecordTag, usize)| {
        bytes.starts_with(&(*tag as u64).to_ne_bytes()) && bytes.len() == *len
    };
    let is_malformed = matches!(record::record(bytes), Record::Malformed);
    assert_eq!(is_malformed, !RECORDS.iter().any(is_record));
    for (tag, len) in RECORDS {
        check_record(tag, &shaped(bytes, &(tag as u64).to_ne_bytes(), len));
    }
    assert!(trace::event(bytes).is_err() || TRACES.iter().any(|(_, len)| bytes.len() == *len));
    for (tag, len) in TRACES {
        check_trace(tag, &shaped(bytes, &(tag as u32).to_ne_bytes(), len));
    }
    check_threshold(bytes);
    check_flight(bytes);
}

/// The bytes behind this tag, cut or filled up. Clocks and sums of nanoseconds stay far below the end of
/// their 64 bits, as they do for centuries.
fn shaped(bytes: &[u8], tag: &[u8], len: usize) -> Vec<u8> {
    let mut shaped = [tag, bytes].concat();
    shaped.resize(len, 0);
    for word in shaped.as_chunks_mut::<8>().0 {
        *word = (u64::from_ne_bytes(*word) & (u64::MAX >> 6)).to_ne_bytes();
    }
    shaped
}

fn check_record(tag: RecordTag, bytes: &[u8]) {
    let cgroups = CgroupNames::default();
    match (tag, record::record(bytes)) {
        (RecordTag::Exit, Record::Exit(record)) => check_row(&record, &cgroups),
        (RecordTag::Cgroup, Record::Cgroup(record)) => {
            let mut cgroups = cgroups;
            cgroups.learn(record.id, &record.path);
            assert!(is_harmless(&cgroups.path(record.id)));
            assert_eq!(record.path, bytes[16..]);
        }
        (RecordTag::Wait, Record::Wait(record)) => check_wait(&record),
        (RecordTag::Blame, Record::Blame(record)) => check_blame(&record, &cgroups),
        (_, other) => unreachable!("{tag:?} is read as {other:?}"),
    }
}

/// What goes on adds to what was counted, once; rows of tables that are used stay.
fn check_row(record: &TaskRecord, cgroups: &CgroupNames) {
    let row = convert::without_hists(record, cgroups, 1);
    let (counters, tally) = (&record.counters, &row.tally);
    assert_eq!(
        (row.ident.tid, row.ident.comm),
        (record.header.tid, record.header.comm)
    );
    assert!(tally.on_cpu_ns >= counters.on_cpu_ns);
    assert!(tally.on_cpu_ns == counters.on_cpu_ns || tally.open.is_empty());
    let n_preemptors = counters.preemptors.iter().filter(|row| row.count > 0);
    assert_eq!(tally.preemptors.len(), n_preemptors.count());
    let n_culprits = counters.attribution.culprits.iter();
    let n_culprits = n_culprits.filter(|row| row.count > 0).count();
    assert_eq!(tally.attribution.culprits.len(), n_culprits);
}

/// A wait's story is in the order of time, and for a terminal.
fn check_wait(record: &WaitRecord) {
    let mut record = *record;
    for recent in &mut record.interrupts {
        // An entry is of a second or two, since a wakeup begins another.
        for ns in [
            &mut recent.since_ns,
            &mut recent.until_ns,
            &mut recent.own_ns,
        ] {
            *ns &= u64::MAX >> 33;
        }
    }
    let event = WaitEvent {
        record,
        cgroup: "/".into(),
    };
    let story = autopsy(
        &event,
        &std::collections::BTreeMap::new(),
        &KernelNames::default(),
    );
    assert!(story.spans.is_sorted_by_key(|span| span.at_ns));
    let shown = text::autopsy(&story, &Window::default());
    assert!(shown.split_terminator('\n').all(is_harmless), "{shown:?}");
}

/// A culprit that was sent is its victim's, with all of its time.
fn check_blame(record: &BlameRecord, cgroups: &CgroupNames) {
    let mut sent = SentCulprits::default();
    sent.add(record, cgroups);
    let task: TaskRecord = from_bytes(&[0; size_of::<TaskRecord>()]);
    let mut from = task.counters.attribution;
    from.sender = record.sender;
    let mut row = convert::without_hists(&task, cgroups, 1);
    sent.complete_last(&mut row, &from, cgroups);
    let sum_ns: u64 = row
        .tally
        .attribution
        .culprits
        .iter()
        .map(|row| row.sum_ns)
        .sum();
    let expected_ns = if record.sender == 0 {
        0
    } else {
        record.culprit.sum_ns
    };
    assert_eq!((sum_ns, sent.n_dropped()), (expected_ns, 0));
}

fn check_trace(tag: TraceTag, bytes: &[u8]) {
    match trace::event(bytes) {
        Ok(event @ TraceEvent::Wait(wait)) => {
            assert!(tag == TraceTag::Wait && event.end_ns() == wait.running_at_ns);
        }
        Ok(TraceEvent::Interrupt(_)) => assert_eq!(tag, TraceTag::Interrupt),
        // Its class is not known.
        Err(_) => assert_eq!(tag, TraceTag::Wait),
    }
}

/// The threshold follows any waits within its bounds.
fn check_threshold(bytes: &[u8]) {
    let mut waits = [0; N_BUCKETS];
    for (count, bytes) in waits.iter_mut().zip(bytes.chunks_exact(4)) {
        *count = from_bytes::<u32>(bytes).into();
    }
    for over_ns in [None, Some(1), Some(5_000_000)] {
        let mut threshold = Threshold::new(None, over_ns);
        let before_ns = threshold.ns();
        let has_moved = threshold.follow(|| waits);
        assert_eq!(has_moved, threshold.ns() != before_ns);
        let most_ns = over_ns.map_or(u64::MAX, |over_ns| over_ns.max(100_000));
        assert!((100_000..=most_ns).contains(&threshold.ns()));
    }
    let mut given = Threshold::new(Some(1), None);
    assert!(!given.follow(|| waits) && given.ns() == 1);
}

/// The events of a ring are cut to the time, and all of known kinds are in the trace.
fn check_flight(bytes: &[u8]) {
    let records = bytes.chunks_exact(size_of::<FlightRecord>());
    let ring = FlightRing {
        records: records.map(from_bytes).collect(),
        ..FlightRing::default()
    };
    let (from_ns, at_ns) = (1 << 8, u64::MAX >> 8);
    let is_within = |record: &&FlightRecord| (from_ns..=at_ns).contains(&record.at_ns);
    let within = ring.records.iter().filter(is_within);
    let n_known = within
        .filter(|record| FlightKind::of(record.kind).is_some())
        .count();
    let cpu = flight::cut(ring, from_ns, at_ns);
    assert!(cpu.events.is_sorted_by_key(|record| record.at_ns));
    let n_events = dump::decoded(&dump::of(cpu)).map(|data| match data {
        Data::FtraceEvents(bundle) => bundle.event.len(),
        _ => 0,
    });
    assert_eq!(n_events.sum::<usize>(), n_known);
}
