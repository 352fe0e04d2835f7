//! All maps: what each holds, how large it is, and what happens when it is full.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, HashMap, PerCpuArray, PerCpuHashMap, RingBuf, Stack, StackTrace},
};
use latency_common::{
    counters::TaskCounters,
    cpu::CpuState,
    flight::{FlightHead, FlightRecord},
    hist::{HistSlot, N_HISTS},
    idle::{IdleCounts, IdleSums},
    interrupt::{InterruptCounters, N_SOURCES},
    loss::{Loss, N_LOSS},
    record::{Exits, N_LONGEST, TaskRecord},
    select::{Control, Glob, N_GLOBS},
    timeline::{N_STACKS, N_WORKS, StackKey, StackWeight, Timeline},
    trace::YieldCalls,
};

use crate::state::TaskState;

/// A BTF map definition of task storage, for which aya has no type.
#[repr(C)]
pub(crate) struct TaskStorage<T> {
    r#type: *const [i32; 29],
    key: *const i32,
    value: *const T,
    max_entries: *const [i32; 0],
    map_flags: *const [i32; 1],
}

// SAFETY: the pointers only carry types for BTF and are never followed.
unsafe impl<T> Sync for TaskStorage<T> {}

impl<T> TaskStorage<T> {
    const fn new() -> Self {
        Self {
            r#type: core::ptr::null(),
            key: core::ptr::null(),
            value: core::ptr::null(),
            max_entries: core::ptr::null(),
            map_flags: core::ptr::null(),
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }
}

/// The state and counters of each selected task, about 1 KiB; freed with the task.
#[unsafe(link_section = ".maps")]
#[unsafe(export_name = "TASKS")]
pub(crate) static TASKS: TaskStorage<TaskState> = TaskStorage::new();

/// One entry per possible CPU; user space sets the number.
#[map]
pub(crate) static CPUS: Array<CpuState> = Array::with_max_entries(1, 0);

/// The recent past of each possible CPU; user space sets the number.
#[map]
static TIMELINES: Array<Timeline> = Array::with_max_entries(1, 0);

/// All interrupts, by `Source::row`.
#[map]
pub(crate) static SOURCES: PerCpuArray<InterruptCounters> =
    PerCpuArray::with_max_entries(N_SOURCES, 0);

/// Kernel stacks of tasks that others waited for. Full or hit by another's hash: counted as loss.
#[map]
pub(crate) static STACKS: StackTrace = StackTrace::with_max_entries(N_STACKS, 0);

/// The time that others waited, by stack. Full: counted as loss.
#[map]
pub(crate) static STACK_WEIGHTS: PerCpuHashMap<StackKey, StackWeight> =
    PerCpuHashMap::with_max_entries(2 * N_STACKS, 0);

/// The longest waits that ended on each CPU, in no order.
#[map]
pub(crate) static LONGEST: PerCpuArray<[u64; N_LONGEST]> = PerCpuArray::with_max_entries(1, 0);

/// The histogram pool, 4 KiB each; user space sets the number and reads it through a memory map.
#[map]
pub(crate) static HISTS: Array<HistSlot> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Indexes of unused slots of `HISTS`. Empty: samples go to `SHARED_HISTS`, counted as loss.
#[map]
pub(crate) static FREE_HISTS: Stack<u32> = Stack::with_max_entries(1, 0);

/// Histograms of the tasks that found the pool empty, by `HistKind`.
#[map]
pub(crate) static SHARED_HISTS: PerCpuArray<HistSlot> =
    PerCpuArray::with_max_entries(word(N_HISTS), 0);

/// Counters of ended tasks whose record found the ring full.
#[map]
pub(crate) static UNSENT: PerCpuArray<TaskCounters> = PerCpuArray::with_max_entries(1, 0);

/// Records of ended tasks, new cgroups, long waits and culprits without a row; user space sets the size. Full: counted as loss.
#[map]
pub(crate) static RECORDS: RingBuf = RingBuf::with_byte_size(4096, 0);

/// Events of traced tasks; user space sets the size. Full: counted as loss.
#[map]
pub(crate) static TRACE_RECORDS: RingBuf = RingBuf::with_byte_size(4096, 0);

/// Threads of a yield probe, by thread id; user space fills it, and nothing is added later.
#[map]
pub(crate) static YIELD_CALLS: HashMap<u32, YieldCalls> = HashMap::with_max_entries(1, 0);

/// Where the iterator puts a row together; one snapshot is taken at a time.
#[map]
pub(crate) static ROW: PerCpuArray<TaskRecord> = PerCpuArray::with_max_entries(1, 0);

/// Losses by kind.
#[map]
pub(crate) static LOSSES: PerCpuArray<u64> = PerCpuArray::with_max_entries(word(N_LOSS), 0);

/// Ends of measured tasks, begun and seen.
#[map]
pub(crate) static EXITS: PerCpuArray<Exits> = PerCpuArray::with_max_entries(1, 0);

/// What user space changes while programs run.
#[map]
static CONTROL: Array<Control> = Array::with_max_entries(1, 0);

/// Selected process ids. User space sizes this and the next three before load.
#[map]
pub(crate) static TARGET_TGIDS: HashMap<u32, u8> = HashMap::with_max_entries(1, 0);

/// Selected thread ids, and whether they are traced.
#[map]
pub(crate) static TARGET_TIDS: HashMap<u32, u8> = HashMap::with_max_entries(1, 0);

/// Selected user ids.
#[map]
pub(crate) static TARGET_UIDS: HashMap<u32, u8> = HashMap::with_max_entries(1, 0);

/// Selected cgroups, by id; their descendants are selected too.
#[map]
pub(crate) static TARGET_CGROUPS: HashMap<u64, u8> = HashMap::with_max_entries(1, 0);

/// Compiled globs on the thread's name.
#[map]
pub(crate) static GLOBS: Array<Glob> = Array::with_max_entries(word(N_GLOBS), 0);

/// The flight recorder's rings, one CPU's after the other; user space sets the number of records
/// and reads them through a memory map. Full: the oldest are overwritten.
#[map]
pub(crate) static FLIGHT_RECORDS: Array<FlightRecord> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// The heads of those rings, one entry per possible CPU.
#[map]
pub(crate) static FLIGHT_HEADS: Array<FlightHead> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Functions that workers of the kernel run, by number. Full: they have no name.
#[map]
pub(crate) static WORKS: Array<u64> = Array::with_max_entries(N_WORKS, 0);

/// How many tasks have sent culprits.
#[map]
pub(crate) static SENDERS: Array<u64> = Array::with_max_entries(1, 0);

/// How many CPUs are idle and how many tasks wait; user space reads it through a memory map.
#[map]
pub(crate) static IDLE_COUNTS: Array<IdleCounts> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// What each possible CPU added to the time that some were idle while others waited; likewise.
#[map]
pub(crate) static IDLE_SUMS: Array<IdleSums> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// A count as maps and helpers take it.
pub(crate) const fn word(n: usize) -> u32 {
    assert!(n <= u32::MAX as usize, "no table here is that long");
    #[expect(clippy::cast_possible_truncation, reason = "just checked")]
    {
        n as u32
    }
}

/// Counts one loss. Out of line: it is rare.
#[inline(never)]
pub(crate) fn count_loss(loss: Loss) {
    if let Some(count) = LOSSES.get_ptr_mut(loss as u32) {
        // SAFETY: a per-CPU value; a nested run may lose one increment, never memory safety.
        unsafe { *count += 1 };
    }
}

/// What user space changes at run time.
#[inline(always)]
pub(crate) fn control() -> Control {
    CONTROL.get(0).copied().unwrap_or_default()
}

/// The recent past of a CPU.
#[inline(always)]
pub(crate) fn timeline(cpu: u32) -> Option<&'static mut Timeline> {
    // SAFETY: the pointer comes from the map and is valid as long as the map is.
    TIMELINES
        .get_ptr_mut(cpu)
        .map(|timeline| unsafe { &mut *timeline })
}

/// What this CPU remembers.
#[inline(always)]
pub(crate) fn cpu_state(cpu: u32) -> Option<&'static mut CpuState> {
    // SAFETY: the pointer comes from the map and is valid as long as the map is.
    CPUS.get_ptr_mut(cpu).map(|state| unsafe { &mut *state })
}
