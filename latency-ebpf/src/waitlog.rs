//! The story of a wait that was among the longest of its CPU, or over the threshold.

use latency_common::{
    attribution::N_PARTS,
    class::WaitClass,
    cpu::CpuState,
    interrupt::Source,
    loss::Loss,
    record::{IS_KERNEL_THREAD, N_WAIT_STINTS, RecordTag, WaitRecord, WaitStint},
    timeline::{N_RECENT_INTERRUPTS, N_STINTS, Stint, Timeline},
};

use crate::{
    cgroup::cgroup_id,
    given::{given, given_mut},
    globals as g,
    maps::{LONGEST, RECORDS, count_loss, word},
    ring::urgency,
    state::TaskState,
    task::Task,
    timeline::face,
    words::{clear, copy, copy_name},
};

/// Records the wait that ends now where it is long enough; called before the next stint begins.
#[inline(always)]
pub(crate) fn record(
    state: &TaskState,
    task: Task,
    cpu: &mut CpuState,
    timeline: &Timeline,
    now: u64,
) {
    if state.class == WaitClass::OpenAtStart as u8 {
        // Its length is not known.
        return;
    }
    let ns = now.saturating_sub(state.since_ns);
    if ns > cpu.longest_floor_ns {
        keep_among_longest(cpu, ns);
    } else if ns < g::OVER_NS.read() {
        return;
    }
    send(state, task, timeline, now);
}

/// The longest so far of this CPU: the new one takes the place of the shortest.
///
/// Whatever is among the longest of all CPUs is among those of its own, so none is missed.
#[inline(never)]
fn keep_among_longest(cpu: &mut CpuState, ns: u64) {
    let Some(longest) = LONGEST.get_ptr_mut(0) else {
        return;
    };
    // SAFETY: a per-CPU value, written under this CPU's runqueue lock only.
    let longest = unsafe { &mut *longest };
    let mut shortest = 0;
    let mut shortest_ns = u64::MAX;
    for (index, &ns) in longest.iter().enumerate() {
        if ns < shortest_ns {
            shortest_ns = ns;
            shortest = index;
        }
    }
    if let Some(place) = longest.get_mut(shortest) {
        *place = ns;
    }
    let mut floor_ns = u64::MAX;
    for &ns in longest.iter() {
        floor_ns = floor_ns.min(ns);
    }
    cpu.longest_floor_ns = floor_ns;
}

#[inline(never)]
fn send(state: &TaskState, task: Task, timeline: &Timeline, now: u64) {
    let Some(mut entry) = RECORDS.reserve::<WaitRecord>(0) else {
        count_loss(Loss::WaitRecords);
        return;
    };
    // SAFETY: the reserved record is ours until it is submitted, and every field is written below.
    let record = unsafe { &mut *entry.as_mut_ptr() };
    record.tag = RecordTag::Wait as u64;
    record.since_ns = state.since_ns;
    record.until_ns = now;
    record.here_since_ns = state.segment_since_ns;
    record.start_time_ns = task.start_boottime();
    record.cgroup_id = cgroup_id(task);
    let ns = now.saturating_sub(state.since_ns);
    write_parts(&mut record.parts, &state.parts, state.only_part, ns);
    record.interrupted_ns = timeline.interrupted_ns;
    record.tid = task.tid();
    record.tgid = task.tgid();
    record.class = state.class.into();
    record.cpu = task.cpu();
    record.prio = task.prio();
    record.n_cpus_allowed = task.n_cpus_allowed();
    record.comm = task.comm();
    record.leader_comm = task.leader().comm();
    name_waker(record, state);
    copy_timeline(&raw mut *record, &raw const *timeline);
    entry.submit(urgency().into());
}

/// What a wait of `ns` that has ended was made of: of one part, by its number plus one, or of `parts`.
#[inline(always)]
pub(crate) fn write_parts(to: &mut [u64; N_PARTS], parts: &[u64; N_PARTS], only_part: u8, ns: u64) {
    if only_part == 0 {
        copy(to, parts);
        return;
    }
    clear(to);
    if let Some(whole) = to.get_mut((only_part as usize).wrapping_sub(1)) {
        *whole = ns;
    }
}

#[inline(always)]
fn name_waker(record: &mut WaitRecord, state: &TaskState) {
    record.waking_at_ns = 0;
    record.waker_tid = 0;
    record.waker_source = Source::default();
    record.waker_comm = [0; 16];
    if state.class != WaitClass::Wakeup as u8 {
        return;
    }
    record.waking_at_ns = state.waking_at_ns;
    let row = (state.waker_row as usize).wrapping_sub(1);
    if let Some(waker) = state.counters.attribution.wakers.get(row) {
        record.waker_tid = waker.tid;
        record.waker_source = waker.source;
        copy_name(&mut record.waker_comm, &waker.comm);
    }
}

/// Copies the newest rows, whether the wait reaches that far or not: the reader knows when it began.
///
/// VERIFIER: exported, so that it is verified once.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn copy_timeline(record: *mut WaitRecord, timeline: *const Timeline) -> u32 {
    let (Some(record), Some(timeline)) = (given_mut(record), given(timeline)) else {
        return 0;
    };
    for (back, to) in (1..).zip(&mut record.stints) {
        let number = (timeline.n_stints as usize).wrapping_sub(back) & (N_STINTS - 1);
        if let Some(stint) = timeline.stints.get(number) {
            copy_stint(&raw mut *to, &raw const *timeline, &raw const *stint);
        }
    }
    record.n_stints = timeline.n_stints.min(word(N_WAIT_STINTS));
    for (back, to) in (1..).zip(&mut record.interrupts) {
        let number =
            (timeline.n_interrupts as usize).wrapping_sub(back) & (N_RECENT_INTERRUPTS - 1);
        if let Some(recent) = timeline.interrupts.get(number) {
            *to = *recent;
        }
    }
    record.n_interrupts = timeline.n_interrupts.min(word(N_WAIT_STINTS));
    0
}

/// Writes down a stint, and whose it was.
///
/// VERIFIER: exported, so that it is verified once and not for each row.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn copy_stint(
    to: *mut WaitStint,
    timeline: *const Timeline,
    stint: *const Stint,
) -> u32 {
    let (Some(to), Some(timeline), Some(stint)) = (given_mut(to), given(timeline), given(stint))
    else {
        return 0;
    };
    to.since_ns = stint.since_ns;
    to.interrupted_before_ns = stint.interrupted_before_ns;
    to.tid = stint.tid;
    to.stack = stint.stack;
    to.cgroup_id = 0;
    to.tgid = 0;
    to.flags = 0;
    to.prio = 0;
    to.comm = [0; 16];
    if stint.tid != 0
        && let Some(face) = face(timeline, stint.tid)
    {
        to.cgroup_id = face.cgroup_id;
        to.tgid = face.tgid;
        to.prio = face.prio;
        to.flags = if face.is_kernel_thread != 0 {
            IS_KERNEL_THREAD
        } else {
            0
        };
        copy_name(&mut to.comm, &face.comm);
    }
    0
}
