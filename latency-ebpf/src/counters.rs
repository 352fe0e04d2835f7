//! Booking a wait that ended, in both accounts.

use latency_common::{
    class::WaitClass,
    counters::{CLASS_SEVERAL, N_PREEMPTORS, Preemptor, WaitCounters},
    hist::HistKind,
};

use crate::{hist::add_sample, state::TaskState, task::Task};

/// Adds a sample.
#[inline(always)]
pub(crate) fn add_sample_of(counters: &mut WaitCounters, ns: u64) {
    if counters.count == 0 || ns < counters.min_ns {
        counters.min_ns = ns;
    }
    if ns > counters.max_ns {
        counters.max_ns = ns;
    }
    counters.count += 1;
    counters.sum_ns += ns;
}

/// Books a wait by the class under which it began.
#[inline(always)]
pub(crate) fn book_wait(state: &mut TaskState, task: Task, ns: u64) {
    let class = state.class;
    if let Some(counters) = state.counters.classes.get_mut(class as usize) {
        add_sample_of(counters, ns);
    }
    if class == WaitClass::Wakeup as u8 {
        add_sample(state, task, HistKind::Wakeup, ns);
    } else if is_preemption(class) {
        add_sample(state, task, HistKind::Preemption, ns);
        book_preemptor(state, ns);
    }
}

/// Whether the class follows losing the CPU.
#[inline(always)]
const fn is_preemption(class: u8) -> bool {
    class >= WaitClass::Tick as u8 && class <= WaitClass::Unknown as u8
}

/// Books a wait of which only the kernel knows.
#[inline(always)]
pub(crate) fn book_unmeasured(state: &mut TaskState) {
    state.class = WaitClass::Unmeasured as u8;
    if let Some(counters) = state
        .counters
        .classes
        .get_mut(WaitClass::Unmeasured as usize)
    {
        counters.count += 1;
    }
}

/// Books the time from waking to running.
#[inline(always)]
pub(crate) fn book_latency(state: &mut TaskState, task: Task, ns: u64) {
    add_sample_of(&mut state.counters.latency, ns);
    add_sample(state, task, HistKind::Latency, ns);
}

/// Adds the kernel's account of the wait that preceded the stint which ends now.
#[inline(always)]
pub(crate) fn book_kernel_wait(state: &mut TaskState, task: Task) {
    let run_delay = task.run_delay();
    let ns = run_delay.wrapping_sub(state.last_run_delay);
    state.last_run_delay = run_delay;
    if let Some(kernel_ns) = state.counters.kernel_ns.get_mut(state.class as usize) {
        *kernel_ns += ns;
    }
}

/// Remembers who takes the CPU, for when the wait ends.
#[inline(always)]
pub(crate) fn note_preemptor(state: &mut TaskState, next: Task, class: WaitClass) {
    state.preemptor_row = 0;
    let tid = next.tid();
    if tid == 0 {
        return;
    }
    for (number, row) in (1..).zip(&mut state.counters.preemptors) {
        if usize::from(number) == N_PREEMPTORS {
            break;
        }
        if row.tid == 0 {
            row.tid = tid;
            row.class = class as u32;
            row.comm = next.comm();
        } else if row.tid != tid || row.class != class as u32 {
            continue;
        }
        state.preemptor_row = number;
        return;
    }
    replace_preemptor(state, next, class);
}

/// Gives a new preemptor the row of the one that cost least so far, which joins the others.
///
/// Who costs much stays, however many come and go.
#[inline(never)]
fn replace_preemptor(state: &mut TaskState, next: Task, class: WaitClass) {
    let [named @ .., others] = &mut state.counters.preemptors;
    let mut least = 0_u8;
    let mut least_ns = u64::MAX;
    for (index, row) in (0..).zip(named.iter()) {
        if row.sum_ns < least_ns {
            least_ns = row.sum_ns;
            least = index;
        }
    }
    if let Some(row) = named.get_mut(usize::from(least)) {
        others.class = CLASS_SEVERAL;
        others.count += row.count;
        others.sum_ns += row.sum_ns;
        *row = Preemptor {
            count: 0,
            sum_ns: 0,
            tid: next.tid(),
            class: class as u32,
            comm: next.comm(),
        };
        state.preemptor_row = least + 1;
    }
}

#[inline(always)]
fn book_preemptor(state: &mut TaskState, ns: u64) {
    let row = (state.preemptor_row as usize).wrapping_sub(1);
    if let Some(preemptor) = state.counters.preemptors.get_mut(row) {
        preemptor.count += 1;
        preemptor.sum_ns += ns;
    }
}
