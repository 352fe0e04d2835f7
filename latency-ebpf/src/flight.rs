//! The flight recorder: each event as it is, into its CPU's ring, over the oldest one.
//!
//! Attached only when asked for. It records all tasks, idle ones too, because who waited for whom is
//! told by the others. An interrupt may come while a softirq's event is written; nothing is ever waited
//! for, and the event that finds no place, which takes an interrupt within two instructions, is counted.

use aya_ebpf::{
    helpers::bpf_ktime_get_ns, helpers::generated::bpf_get_smp_processor_id,
    macros::btf_tracepoint, programs::BtfTracePointContext,
};
use latency_common::flight::{FlightHead, FlightKind, FlightRecord};

use crate::{
    globals as g,
    maps::{FLIGHT_HEADS, FLIGHT_RECORDS},
    task::Task,
};

/// The next place of this CPU's ring, and the serial number that completes it.
#[inline(always)]
fn place() -> Option<(&'static mut FlightRecord, u32)> {
    // SAFETY: the helper has no precondition.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    // SAFETY: the pointer comes from the map and is valid as long as the map is.
    let head = unsafe { &mut *FLIGHT_HEADS.get_ptr_mut(cpu)? };
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    let index = next_event(head)? as u32;
    let mask = g::FLIGHT_MASK.read();
    // SAFETY: the pointer comes from the map; until the serial is written nobody reads the place.
    let record = unsafe { &mut *FLIGHT_RECORDS.get_ptr_mut(cpu * (mask + 1) + (index & mask))? };
    Some((record, index.wrapping_add(1)))
}

/// The number of this event. An interrupt that comes between the two stores of `is_taken` gets none
/// and is counted; one that comes at any other time has ended before the next step here.
#[inline(always)]
fn next_event(head: &mut FlightHead) -> Option<u64> {
    let is_taken = &raw mut head.is_taken;
    // SAFETY: the reference is valid; volatile, since interrupts on this CPU write it too.
    if unsafe { is_taken.read_volatile() } != 0 {
        head.n_refused += 1;
        return None;
    }
    // SAFETY: as above.
    unsafe { is_taken.write_volatile(1) };
    let n_events = &raw mut head.n_events;
    // SAFETY: as above.
    let index = unsafe { n_events.read_volatile() };
    // SAFETY: as above.
    unsafe { n_events.write_volatile(index + 1) };
    // SAFETY: as above.
    unsafe { is_taken.write_volatile(0) };
    Some(index)
}

/// Dates the record and makes it valid: user space compares its serial with the place.
///
/// The clock is read last because the compiler moves no store across the call of a helper, and there
/// is no fence for it on this target.
#[inline(always)]
fn complete(record: &mut FlightRecord, serial: u32) {
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    // SAFETY: the reference is valid; volatile, so that this store stays before the next.
    unsafe { (&raw mut record.at_ns).write_volatile(now) };
    // SAFETY: the reference is valid; volatile, since user space reads it meanwhile.
    unsafe { (&raw mut record.serial).write_volatile(serial) };
}

/// Notes something that happens to whatever runs here.
#[inline(always)]
fn note(kind: FlightKind, value: u32, result: u32) -> i32 {
    if let Some((record, serial)) = place() {
        record.kind = kind as u8;
        record.value = value;
        record.tid = Task::current().tid();
        record.other_tid = result;
        complete(record, serial);
    }
    0
}

/// Notes something about a task that need not run here.
#[inline(always)]
fn note_task(kind: FlightKind, task: Task, value: u32, other_tid: u32) -> i32 {
    if let Some((record, serial)) = place() {
        record.kind = kind as u8;
        record.value = value;
        record.tid = task.tid();
        record.tgid = task.tgid();
        record.prio = low_byte(task.prio());
        record.comm = task.comm();
        record.other_tid = other_tid;
        complete(record, serial);
    }
    0
}

#[inline(always)]
const fn low_byte(prio: i32) -> u8 {
    prio.to_le_bytes()[0]
}

#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the kernel's field has 32 bits"
)]
fn state_bits(task: Task) -> u32 {
    task.state() as u32
}

/// A CPU goes from one task to the next.
#[btf_tracepoint(function = "sched_switch")]
pub(crate) fn flight_switch(ctx: BtfTracePointContext) -> i32 {
    let (prev, next) = (Task::new(ctx.arg(1)), Task::new(ctx.arg(2)));
    if let Some((record, serial)) = place() {
        record.kind = FlightKind::Switch as u8;
        record.is_preempt = ctx.arg(0);
        record.prio = low_byte(prev.prio());
        record.other_prio = low_byte(next.prio());
        record.tid = prev.tid();
        record.tgid = prev.tgid();
        record.value = state_bits(prev);
        record.other_tid = next.tid();
        record.comm = prev.comm();
        record.other_comm = next.comm();
        complete(record, serial);
    }
    0
}

/// A wakeup begins.
#[btf_tracepoint(function = "sched_waking")]
pub(crate) fn flight_waking(ctx: BtfTracePointContext) -> i32 {
    woken(FlightKind::Waking, Task::new(ctx.arg(0)))
}

/// A task was queued.
#[btf_tracepoint(function = "sched_wakeup")]
pub(crate) fn flight_wakeup(ctx: BtfTracePointContext) -> i32 {
    woken(FlightKind::Wakeup, Task::new(ctx.arg(0)))
}

/// A new task was queued.
#[btf_tracepoint(function = "sched_wakeup_new")]
pub(crate) fn flight_wakeup_new(ctx: BtfTracePointContext) -> i32 {
    woken(FlightKind::WakeupNew, Task::new(ctx.arg(0)))
}

#[inline(always)]
fn woken(kind: FlightKind, task: Task) -> i32 {
    note_task(kind, task, task.cpu(), Task::current().tid())
}

/// A task is moved to another CPU.
#[btf_tracepoint(function = "sched_migrate_task")]
pub(crate) fn flight_migrate(ctx: BtfTracePointContext) -> i32 {
    let task = Task::new(ctx.arg(0));
    note_task(FlightKind::Migrate, task, task.cpu(), ctx.arg(1))
}

/// A handler of an interrupt begins.
#[btf_tracepoint(function = "irq_handler_entry")]
pub(crate) fn flight_irq_entry(ctx: BtfTracePointContext) -> i32 {
    note(FlightKind::IrqEntry, ctx.arg(0), 0)
}

/// It ended.
#[btf_tracepoint(function = "irq_handler_exit")]
pub(crate) fn flight_irq_exit(ctx: BtfTracePointContext) -> i32 {
    note(FlightKind::IrqExit, ctx.arg(0), ctx.arg(2))
}

/// A softirq begins.
#[btf_tracepoint(function = "softirq_entry")]
pub(crate) fn flight_softirq_entry(ctx: BtfTracePointContext) -> i32 {
    note(FlightKind::SoftirqEntry, ctx.arg(0), 0)
}

/// It ended.
#[btf_tracepoint(function = "softirq_exit")]
pub(crate) fn flight_softirq_exit(ctx: BtfTracePointContext) -> i32 {
    note(FlightKind::SoftirqExit, ctx.arg(0), 0)
}

/// The local timer interrupts; it is no interrupt with a handler (x86).
#[btf_tracepoint(function = "local_timer_entry")]
pub(crate) fn flight_timer_entry(ctx: BtfTracePointContext) -> i32 {
    note(FlightKind::TimerEntry, ctx.arg(0), 0)
}

/// It ended.
#[btf_tracepoint(function = "local_timer_exit")]
pub(crate) fn flight_timer_exit(ctx: BtfTracePointContext) -> i32 {
    note(FlightKind::TimerExit, ctx.arg(0), 0)
}
