//! aya's `Pod` for the types that cross the boundary, each `repr(C)`, without padding, every bit pattern valid.

use crate::{
    attribution::{Attribution, N_CULPRITS, N_INTERRUPTS, N_PARTS, N_WAKERS},
    counters::TaskCounters,
    cpu::CpuState,
    flight::{FlightHead, FlightRecord},
    hist::HistSlot,
    idle::{IdleCounts, IdleSums},
    interrupt::InterruptCounters,
    record::{CgroupRecord, Exits, N_WAIT_STINTS, TaskRecord, WaitRecord},
    select::{Control, Glob},
    timeline::{
        MAX_DEPTH, N_FACES, N_RECENT_INTERRUPTS, N_STINTS, StackKey, StackWeight, Timeline,
    },
    trace::{TraceInterrupt, TraceWait, YieldCalls},
};

macro_rules! pod {
    ($($type:ty = $size:expr),+ $(,)?) => {$(
        const _: () = assert!(size_of::<$type>() == $size);
        // SAFETY: `repr(C)` integers and arrays of them; the assertion above proves that nothing pads them.
        unsafe impl aya::Pod for $type {}
    )+};
}

pod! {
    Attribution = N_PARTS * 8 + 8 + 48 + N_CULPRITS * 56 + N_INTERRUPTS * 16 + 32 + 5 * 32 + 8 + N_WAKERS * 48,
    TaskCounters = 8 * 8 + 32 + 12 * 32 + 4 * 8 + 12 * 8 + 8 * 40 + size_of::<Attribution>(),
    TaskRecord = 6 * 8 + 4 * 4 + 16 + 32 + N_PARTS * 8 + 48 + size_of::<TaskCounters>(),
    WaitRecord = 7 * 8 + N_PARTS * 8 + 8 + 10 * 4 + 3 * 16 + N_WAIT_STINTS * (56 + 32),
    InterruptCounters = 24,
    Exits = 16,
    StackKey = 24,
    StackWeight = 16,
    Timeline = 64 + MAX_DEPTH * 24 + 64 + N_STINTS * 24 + N_FACES * 48 + N_RECENT_INTERRUPTS * 32,
    CgroupRecord = 16 + 256,
    CpuState = 128,
    FlightHead = 64,
    FlightRecord = 64,
    HistSlot = 4096,
    IdleCounts = 64,
    IdleSums = 64,
    Glob = 258 * 8,
    Control = 16,
    TraceWait = 6 * 4 + 6 * 8 + N_PARTS * 8,
    TraceInterrupt = 6 * 4 + 3 * 8,
    YieldCalls = 16,
}
