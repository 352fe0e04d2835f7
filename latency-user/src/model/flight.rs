//! What the flight recorder held when it was dumped, and what the report says of the dumps.

use std::collections::BTreeMap;

use latency_common::flight::FlightRecord;
use serde::Serialize;

use super::Autopsy;

/// A copy of one CPU's ring.
#[derive(Clone, Debug, Default)]
pub struct FlightRing {
    /// Which CPU.
    pub cpu: u32,
    /// Its events, oldest first but for those of interrupts in between.
    pub records: Vec<FlightRecord>,
    /// Earlier events were overwritten.
    pub is_overwritten: bool,
    /// Events that were not complete yet when they were copied.
    pub n_torn: u64,
    /// Events that found no place since the recording began.
    pub n_refused: u64,
}

/// The events of one CPU that are in a dump, by time.
#[derive(Clone, Debug, Default)]
pub struct FlightCpu {
    /// Which CPU.
    pub cpu: u32,
    /// Its events.
    pub events: Vec<FlightRecord>,
    /// From when on every event of this CPU is there.
    pub from_ns: u64,
    /// See [`FlightRing::n_torn`].
    pub n_torn: u64,
    /// See [`FlightRing::n_refused`].
    pub n_refused: u64,
}

/// Why a dump was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DumpReason {
    /// A wait was over the threshold.
    Wait,
    /// SIGUSR1.
    Signal,
    /// The recording ended.
    End,
}

/// A thread that occurs in a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlightThread {
    /// Its process; unknown for one that ended without being switched out in the dump.
    pub tgid: Option<u32>,
    /// Its last name. Any bytes.
    pub comm: [u8; 16],
}

/// How far other clocks are ahead of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffsets {
    /// `CLOCK_BOOTTIME`: the time that the machine was suspended.
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME`.
    pub realtime_ns: u64,
}

/// Everything that a dump tells.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Why.
    pub reason: DumpReason,
    /// From when on events were asked for.
    pub from_ns: u64,
    /// When it was dumped: no event is later.
    pub at_ns: u64,
    /// Events, by CPU.
    pub cpus: Vec<FlightCpu>,
    /// Threads that occur, by id.
    pub threads: BTreeMap<u32, FlightThread>,
    /// Names of their processes, by id. Any bytes.
    pub processes: BTreeMap<u32, Vec<u8>>,
    /// Names of the host's interrupts, by number.
    pub interrupts: BTreeMap<u32, String>,
    /// Waits to mark, each on the track of the thread that waited.
    pub marked: Vec<Autopsy>,
    /// To tell times of other clocks.
    pub clocks: ClockOffsets,
    /// Release of the kernel, which says how to read its states.
    pub kernel: String,
    /// Its architecture.
    pub arch: String,
}

/// What the report says of a dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlightDump {
    /// The file.
    pub file: String,
    /// Why it was made.
    pub reason: DumpReason,
    /// From when on events were asked for, `CLOCK_MONOTONIC`.
    pub from_ns: u64,
    /// Until when, `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Waits over the threshold that are marked in it.
    pub n_marked: u64,
    /// Each CPU's part.
    pub cpus: Vec<FlightDumpCpu>,
}

/// One CPU's part of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FlightDumpCpu {
    /// Which CPU.
    pub cpu: u32,
    /// Its events.
    pub n_events: u64,
    /// How far back they are complete.
    pub reaches_back_ns: u64,
    /// Earlier events that were asked for were overwritten.
    pub is_cut: bool,
    /// See [`FlightRing::n_torn`].
    pub n_torn: u64,
    /// See [`FlightRing::n_refused`].
    pub n_refused: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dump_keeps_its_contract() {
        let dump = FlightDump {
            file: "a.pftrace".into(),
            reason: DumpReason::Signal,
            from_ns: 1,
            at_ns: 5,
            n_marked: 3,
            cpus: vec![FlightDumpCpu {
                cpu: 1,
                n_events: 7,
                reaches_back_ns: 3,
                is_cut: true,
                n_torn: 0,
                n_refused: 2,
            }],
        };
        let expected = serde_json::json!({
            "file": "a.pftrace", "reason": "signal", "from_ns": 1, "at_ns": 5, "n_marked": 3,
            "cpus": [{
                "cpu": 1, "n_events": 7, "reaches_back_ns": 3, "is_cut": true, "n_torn": 0,
                "n_refused": 2,
            }],
        });
        assert_eq!(serde_json::to_value(&dump).unwrap(), expected);
    }
}
