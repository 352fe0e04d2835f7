//! The messages of Perfetto's trace format that a dump uses, with the official names and numbers.
//!
//! They are a part of `protos/perfetto/trace/trace.proto` of <https://github.com/google/perfetto>, written
//! out because the whole is some hundred messages; the tests on the live kernel decode a dump with the
//! official definitions. What a message has more than this is optional there.

use prost::{Message, Oneof};

/// `BuiltinClock`.
pub(crate) mod clock {
    pub(crate) const REALTIME: u32 = 1;
    pub(crate) const MONOTONIC: u32 = 3;
    pub(crate) const BOOTTIME: u32 = 6;
}

/// `TrackEvent.Type`.
pub(crate) mod event_type {
    pub(crate) const SLICE_BEGIN: i32 = 1;
    pub(crate) const SLICE_END: i32 = 2;
}

/// `TracePacket.SequenceFlags`.
pub(crate) const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub(crate) packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub(crate) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "58")]
    pub(crate) timestamp_clock_id: Option<u32>,
    #[prost(uint32, optional, tag = "10")]
    pub(crate) trusted_packet_sequence_id: Option<u32>,
    #[prost(uint32, optional, tag = "13")]
    pub(crate) sequence_flags: Option<u32>,
    #[prost(oneof = "Data", tags = "1, 2, 6, 11, 45, 60")]
    pub(crate) data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Data {
    #[prost(message, tag = "1")]
    FtraceEvents(FtraceEventBundle),
    #[prost(message, tag = "2")]
    ProcessTree(ProcessTree),
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    #[prost(message, tag = "45")]
    SystemInfo(SystemInfo),
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")]
    pub(crate) clocks: Vec<Clock>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) primary_trace_clock: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Clock {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) timestamp: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub(crate) utsname: Option<Utsname>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Utsname {
    #[prost(string, optional, tag = "1")]
    pub(crate) sysname: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) release: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(crate) machine: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub(crate) processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) threads: Vec<Thread>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Process {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) cmdline: Vec<String>,
    #[prost(bool, optional, tag = "9")]
    pub(crate) cmdline_is_comm: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub(crate) tid: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) tgid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) uuid: Option<u64>,
    #[prost(message, optional, tag = "4")]
    pub(crate) thread: Option<ThreadDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    pub(crate) thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(crate) debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub(crate) r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub(crate) track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub(crate) categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub(crate) name: Option<String>,
}

/// Its name and its value are each one of several kinds, of which at most one may be set.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    pub(crate) uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub(crate) string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) event: Vec<FtraceEvent>,
    #[prost(bool, optional, tag = "3")]
    pub(crate) lost_events: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub(crate) pid: Option<u32>,
    #[prost(
        oneof = "Event",
        tags = "4, 17, 20, 24, 25, 36, 37, 114, 491, 559, 560"
    )]
    pub(crate) event: Option<Event>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Event {
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    #[prost(message, tag = "17")]
    SchedWakeup(SchedWakeup),
    #[prost(message, tag = "20")]
    SchedWaking(SchedWakeup),
    #[prost(message, tag = "24")]
    SoftirqEntry(Softirq),
    #[prost(message, tag = "25")]
    SoftirqExit(Softirq),
    #[prost(message, tag = "36")]
    IrqHandlerEntry(IrqHandlerEntry),
    #[prost(message, tag = "37")]
    IrqHandlerExit(IrqHandlerExit),
    #[prost(message, tag = "114")]
    SchedWakeupNew(SchedWakeup),
    #[prost(message, tag = "491")]
    SchedMigrateTask(SchedMigrateTask),
    #[prost(message, tag = "559")]
    LocalTimerEntry(LocalTimer),
    #[prost(message, tag = "560")]
    LocalTimerExit(LocalTimer),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedSwitch {
    #[prost(string, optional, tag = "1")]
    pub(crate) prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub(crate) prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub(crate) next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub(crate) next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub(crate) next_prio: Option<i32>,
}

/// `SchedWakeupFtraceEvent`, `SchedWakingFtraceEvent` and `SchedWakeupNewFtraceEvent` are alike.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedWakeup {
    #[prost(string, optional, tag = "1")]
    pub(crate) comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) success: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(crate) target_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SchedMigrateTask {
    #[prost(string, optional, tag = "1")]
    pub(crate) comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub(crate) orig_cpu: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub(crate) dest_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Softirq {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) vec: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct IrqHandlerEntry {
    #[prost(int32, optional, tag = "1")]
    pub(crate) irq: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct IrqHandlerExit {
    #[prost(int32, optional, tag = "1")]
    pub(crate) irq: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) ret: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LocalTimer {
    #[prost(int32, optional, tag = "1")]
    pub(crate) vector: Option<i32>,
}
