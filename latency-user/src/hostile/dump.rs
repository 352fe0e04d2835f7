//! Dumps of the flight recorder with events of anybody's making, and what their traces decode to.

use std::{collections::BTreeMap, slice};

use prost::Message as _;

use crate::{
    analysis::flight::threads,
    model::{ClockOffsets, DumpReason, Flight, FlightCpu},
    report::perfetto::{
        self,
        proto::{Data, Trace},
    },
};

/// A dump of one CPU.
pub(super) fn of(cpu: FlightCpu) -> Flight {
    Flight {
        reason: DumpReason::End,
        from_ns: 0,
        at_ns: u64::MAX,
        threads: threads(slice::from_ref(&cpu)),
        cpus: vec![cpu],
        processes: BTreeMap::new(),
        interrupts: BTreeMap::new(),
        marked: Vec::new(),
        clocks: ClockOffsets::default(),
        kernel: "6.18.0".into(),
        arch: "x86_64".into(),
    }
}

/// What the packets of its trace hold.
pub(super) fn decoded(dump: &Flight) -> impl Iterator<Item = Data> + use<> {
    let bytes = perfetto::render(dump);
    let trace = Trace::decode(&bytes[..]).expect("a trace decodes");
    trace.packet.into_iter().filter_map(|packet| packet.data)
}
