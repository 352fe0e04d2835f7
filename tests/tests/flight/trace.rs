//! A dump of the flight recorder, read with Perfetto's own definitions of its format.
//!
//! The reading is strict: a field that the definitions do not know, an event without a time, or a
//! packet of a kind that no dump has is an error.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use perfetto_protos::{
    builtin_clock::BuiltinClock,
    clock_snapshot::ClockSnapshot,
    ftrace_event::ftrace_event::Event as Kind,
    ftrace_event_bundle::FtraceEventBundle,
    process_tree::ProcessTree,
    sched::SchedSwitchFtraceEvent,
    system_info::SystemInfo,
    trace::Trace,
    trace_packet::trace_packet::{Data, SequenceFlags},
    track_event::{TrackEvent, track_event},
};
use protobuf::{
    Message as _, MessageDyn,
    reflect::{ReflectFieldRef, ReflectValueRef},
};

/// A dump.
#[derive(Debug, Default)]
pub(crate) struct Dump {
    pub(crate) clocks: ClockSnapshot,
    pub(crate) system: SystemInfo,
    pub(crate) tree: ProcessTree,
    /// Waits that are marked.
    pub(crate) marks: Vec<Mark>,
    /// All events by time.
    pub(crate) events: Vec<Event>,
    /// CPUs that say that they lost events.
    pub(crate) cut_cpus: Vec<u32>,
}

/// A marked wait: a slice on the victim's track.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) tid: u32,
    pub(crate) name: String,
    pub(crate) from_ns: u64,
    pub(crate) until_ns: u64,
    /// What is said of it in numbers.
    pub(crate) numbers: BTreeMap<String, u64>,
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) cpu: u32,
    /// `CLOCK_MONOTONIC`.
    pub(crate) at_ns: u64,
    /// What ran there.
    pub(crate) pid: u32,
    pub(crate) kind: Kind,
}

impl Event {
    pub(crate) fn switch(&self) -> Option<&SchedSwitchFtraceEvent> {
        match &self.kind {
            Kind::SchedSwitch(switch) => Some(switch),
            _ => None,
        }
    }
}

impl Dump {
    /// Reads a dump and checks that each CPU's events are in order.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let whole = Trace::parse_from_bytes(&bytes).context("this is no Perfetto trace")?;
        check_known(&whole)?;
        let first = whole.packet.first().context("the trace is empty")?;
        ensure!(
            first.sequence_flags() == SequenceFlags::SEQ_INCREMENTAL_STATE_CLEARED as u32,
            "the sequence does not begin with the first packet"
        );
        let mut dump = Self::default();
        let mut bundles = Vec::new();
        let mut tracks = BTreeMap::new();
        for packet in whole.packet {
            ensure!(packet.trusted_packet_sequence_id() != 0, "no sequence");
            let (clock, at_ns) = (packet.timestamp_clock_id(), packet.timestamp());
            match packet.data.context("an empty packet")? {
                Data::TrackDescriptor(track) => {
                    tracks.insert(track.uuid(), track.thread.tid().cast_unsigned());
                }
                Data::TrackEvent(event) => {
                    ensure!(
                        clock == BuiltinClock::BUILTIN_CLOCK_MONOTONIC as u32,
                        "a mark on another clock"
                    );
                    let tid = tracks.get(&event.track_uuid()).context("no such track")?;
                    dump.mark(*tid, at_ns, &event)?;
                }
                Data::ClockSnapshot(clocks) => dump.clocks = clocks,
                Data::SystemInfo(system) => dump.system = system,
                Data::ProcessTree(tree) => dump.tree = tree,
                Data::FtraceEvents(bundle) => bundles.push(bundle),
                other => bail!("no dump has such a packet: {other:?}"),
            }
        }
        for bundle in bundles {
            dump.add(bundle)?;
        }
        dump.events.sort_by_key(|event| event.at_ns);
        Ok(dump)
    }

    /// Begins are followed by their ends.
    fn mark(&mut self, tid: u32, at_ns: u64, event: &TrackEvent) -> Result<()> {
        if event.type_() == track_event::Type::TYPE_SLICE_BEGIN {
            let numbers = event.debug_annotations.iter();
            let numbers = numbers.filter(|it| it.has_uint_value());
            self.marks.push(Mark {
                tid,
                name: event.name().to_owned(),
                from_ns: at_ns,
                until_ns: 0,
                numbers: numbers
                    .map(|it| (it.name().to_owned(), it.uint_value()))
                    .collect(),
            });
            return Ok(());
        }
        let mark = self.marks.last_mut().context("an end without a begin")?;
        ensure!(
            event.type_() == track_event::Type::TYPE_SLICE_END
                && (mark.tid, mark.until_ns) == (tid, 0),
            "{event:?} does not end {mark:?}"
        );
        mark.until_ns = at_ns;
        Ok(())
    }

    fn add(&mut self, bundle: FtraceEventBundle) -> Result<()> {
        let cpu = bundle.cpu.context("a bundle without a CPU")?;
        // Unset, its clock is the boot clock.
        ensure!(bundle.ftrace_clock.is_none(), "events of another clock");
        if bundle.lost_events() {
            self.cut_cpus.push(cpu);
        }
        let ahead_ns = self.reading(BuiltinClock::BUILTIN_CLOCK_BOOTTIME)? - self.taken_at_ns()?;
        let mut last_ns = self.events_of(cpu).last().map_or(0, |event| event.at_ns);
        for event in bundle.event {
            let at_ns = event.timestamp.context("an event without a time")? - ahead_ns;
            ensure!(
                at_ns >= last_ns,
                "CPU {cpu} goes back from {last_ns} to {at_ns}"
            );
            last_ns = at_ns;
            self.events.push(Event {
                cpu,
                at_ns,
                pid: event.pid.context("an event without a thread")?,
                kind: event.event.context("an event of no kind")?,
            });
        }
        Ok(())
    }

    /// When the dump was made, `CLOCK_MONOTONIC`.
    pub(crate) fn taken_at_ns(&self) -> Result<u64> {
        self.reading(BuiltinClock::BUILTIN_CLOCK_MONOTONIC)
    }

    fn reading(&self, clock: BuiltinClock) -> Result<u64> {
        let mut clocks = self.clocks.clocks.iter();
        let reading = clocks.find(|reading| reading.clock_id() == clock as u32);
        let reading = reading.with_context(|| format!("the snapshot has no {clock:?}"))?;
        reading.timestamp.context("a clock without a reading")
    }

    pub(crate) fn events_of(&self, cpu: u32) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.cpu == cpu)
    }

    pub(crate) fn switches(&self) -> impl Iterator<Item = (&Event, &SchedSwitchFtraceEvent)> {
        let switches = self.events.iter();
        switches.filter_map(|event| Some((event, event.switch()?)))
    }

    /// Switches to a task that is not the one that leaves next on that CPU: those in between fired no
    /// event.
    pub(crate) fn n_breaks(&self) -> u64 {
        let mut cpus: Vec<_> = self.events.iter().map(|event| event.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let breaks = cpus.into_iter().map(|cpu| {
            let switches: Vec<_> = self.events_of(cpu).filter_map(Event::switch).collect();
            let pairs = switches.windows(2);
            pairs
                .filter(|pair| pair[0].next_pid() != pair[1].prev_pid())
                .count() as u64
        });
        breaks.sum()
    }
}

/// Fails on a field that the definitions do not know, at any depth.
fn check_known(message: &dyn MessageDyn) -> Result<()> {
    let descriptor = message.descriptor_dyn();
    ensure!(
        message.unknown_fields_dyn().iter().next().is_none(),
        "{} has a field that it does not know",
        descriptor.name()
    );
    for field in descriptor.fields() {
        match field.get_reflect(message) {
            ReflectFieldRef::Optional(value) => {
                if let Some(ReflectValueRef::Message(inner)) = value.value() {
                    check_known(&*inner)?;
                }
            }
            ReflectFieldRef::Repeated(values) => {
                for value in values {
                    if let ReflectValueRef::Message(inner) = value {
                        check_known(&*inner)?;
                    }
                }
            }
            ReflectFieldRef::Map(_) => {}
        }
    }
    Ok(())
}
