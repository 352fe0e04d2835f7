//! aya's `Pod` for the types that cross the boundary, each `repr(C)`, without padding, every bit pattern valid.

use crate::{
    counters::TaskCounters,
    cpu::CpuState,
    flight::{FlightHead, FlightRecord},
    hist::HistSlot,
    record::{CgroupRecord, TaskRecord},
    select::{Control, Glob},
};

macro_rules! pod {
    ($($type:ty = $size:expr),+ $(,)?) => {$(
        const _: () = assert!(size_of::<$type>() == $size);
        // SAFETY: `repr(C)` integers and arrays of them; the assertion above proves that nothing pads them.
        unsafe impl aya::Pod for $type {}
    )+};
}

pod! {
    TaskCounters = 8 * 8 + 32 + 12 * 32 + 4 * 8 + 12 * 8 + 8 * 40,
    TaskRecord = 6 * 8 + 4 * 4 + 16 + 32 + size_of::<TaskCounters>(),
    CgroupRecord = 16 + 256,
    CpuState = 128,
    FlightHead = 64,
    FlightRecord = 64,
    HistSlot = 4096,
    Glob = 258 * 8,
    Control = 8,
}
