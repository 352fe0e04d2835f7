//! The way from waking to running: who woke the task, where it was queued, and what that took.

use latency_common::{
    attribution::{N_WAKERS, Placement, Sync, Waker, WakeupCounters},
    cpu::CpuState,
    interrupt::Source,
};

use crate::{
    counters::add_sample_of,
    maps::{cpu_state, timeline},
    state::TaskState,
    task::Task,
    timeline::active,
};

/// The interrupt that is active on a CPU, none for a task's own doing.
#[inline(always)]
pub(crate) fn active_interrupt(cpu: u32) -> Source {
    timeline(cpu)
        .and_then(|timeline| active(timeline))
        .map_or(Source::default(), |active| active.source)
}

/// Lets the task remember the waking that is going on here; `current` is the waker or what its
/// interrupt came upon.
#[inline(always)]
pub(crate) fn note_waker(state: &mut TaskState, waking: &CpuState, here: u32) {
    let source = Source(waking.waking_source);
    state.waker_cpu = here;
    state.sync = if waking.waking_sync == Sync::Yes as u32 {
        Sync::Yes
    } else if waking.waking_sync == Sync::No as u32 {
        Sync::No
    } else {
        Sync::NotSampled
    } as u8;
    let current = Task::current();
    let tid = if source.0 == 0 { current.tid() } else { 0 };
    let [first, ..] = &state.counters.attribution.wakers;
    state.waker_row = if first.count != 0 && first.tid == tid && first.source == source {
        1
    } else {
        another_row(state, source, tid, current)
    };
}

/// The number of the last row, plus one.
const OTHERS_ROW: u8 = 6;
const _: () = assert!(OTHERS_ROW as usize == N_WAKERS);

/// The task was woken by somebody of whom nothing is known; counted among the others.
#[inline(always)]
pub(crate) fn note_unknown_waker(state: &mut TaskState, here: u32) {
    state.waker_cpu = here;
    state.sync = Sync::NotSampled as u8;
    let [.., others] = &mut state.counters.attribution.wakers;
    others.source = Source::SEVERAL;
    state.waker_row = OTHERS_ROW;
}

/// The number of the waker's row, plus one.
#[inline(never)]
fn another_row(state: &mut TaskState, source: Source, tid: u32, current: Task) -> u8 {
    let rows = &mut state.counters.attribution.wakers;
    for (number, row) in (1..).zip(rows) {
        if usize::from(number) == N_WAKERS {
            row.source = Source::SEVERAL;
            return number;
        }
        if row.count == 0 {
            *row = Waker {
                source,
                tid,
                ..Waker::default()
            };
            if source.0 == 0 {
                row.tgid = current.tgid();
                row.comm = current.comm();
            }
            return number;
        }
        if row.tid == tid && row.source == source {
            return number;
        }
    }
    0
}

/// The task was queued on `cpu`, after the waking that `state` remembers.
#[inline(always)]
pub(crate) fn note_placement(state: &mut TaskState, cpu: u32) {
    let placement = if state.waker_cpu == cpu {
        Placement::SameCpu
    } else if cache_of(state.waker_cpu) == cache_of(cpu) {
        Placement::SameCache
    } else {
        Placement::OtherCache
    };
    state.placement = placement as u8;
}

#[inline(always)]
fn cache_of(cpu: u32) -> u32 {
    cpu_state(cpu).map_or(u32::MAX, |cpu: &mut CpuState| cpu.cache)
}

/// Books the way of a wakeup that has ended in running.
#[inline(always)]
pub(crate) fn book_wakeup(state: &mut TaskState, wait_ns: u64, latency_ns: u64) {
    let row = (state.waker_row as usize).wrapping_sub(1);
    state.waker_row = 0;
    let attribution = &mut state.counters.attribution;
    if let Some(waker) = attribution.wakers.get_mut(row) {
        waker.count += 1;
        waker.latency_sum_ns += latency_ns;
    }
    let path = &mut attribution.wake_path;
    add_sample_of(&mut path.to_queued, latency_ns.saturating_sub(wait_ns));
    let is_same_cpu = state.placement == Placement::SameCpu as u8;
    if let Some(counters) = path.placements.get_mut(state.placement as usize) {
        add(counters, is_same_cpu, latency_ns);
    }
    let sampled = (state.sync as usize).wrapping_sub(Sync::No as usize);
    if let Some(counters) = path.sampled.get_mut(sampled) {
        add(counters, is_same_cpu, latency_ns);
    }
}

#[inline(always)]
fn add(counters: &mut WakeupCounters, is_same_cpu: bool, latency_ns: u64) {
    counters.count += 1;
    counters.same_cpu += u64::from(is_same_cpu);
    counters.latency_sum_ns += latency_ns;
    counters.latency_max_ns = counters.latency_max_ns.max(latency_ns);
}
