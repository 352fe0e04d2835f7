//! Taking a wait apart. What is between two moves of the task is a segment, on one CPU's timeline.
//!
//! The parts of a segment sum to its length by construction: what is out of quota comes first, then
//! what interrupts took, by the CPU's totals, and the rest belongs to whoever had the CPU.

use latency_common::{
    attribution::{N_PARTS, Part},
    class::WaitClass,
    interrupt::N_CATEGORIES,
    timeline::{N_RECENT_INTERRUPTS, N_STINTS, Timeline},
};

use crate::{
    blame::{Victim, blame, share, share_rest},
    given::{given, given_mut},
    maps::{timeline, word},
    stack::weigh,
    state::{COUNTED, MOVED, TaskState},
    task::Task,
    throttle,
    timeline::{Reading, present, read},
    walk::{charge, look_walk, settle_walk},
    words::{clear, copy},
};

/// Stints visited at a move, which happens under the locks of two CPUs.
const MAX_VISITED_AT_MOVE: u32 = 64;

/// A segment that ends: the time from `from` to `until` of which `left` is not booked yet.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) left: u64,
    /// The CPU's time in interrupts at the end.
    pub(crate) interrupted_ns: u64,
    /// For who is waiting, where several had the CPU.
    pub(crate) victim: Victim,
    /// Stints that were visited, and how many may be.
    pub(crate) n_visited: u32,
    /// See `n_visited`.
    pub(crate) max_visited: u32,
    /// Time of those visited last that belong to one stretch of running, which is not booked yet.
    pub(crate) stretch_ns: u64,
    /// Time of interrupts by category: by the totals.
    totals: [u64; N_CATEGORIES],
    /// That of those with a name.
    named: [u64; N_CATEGORIES],
    /// 1 where some of the wait before `from` was out of quota: totals read at its begin do not fit.
    is_shifted: u64,
}

impl Segment {
    #[inline(always)]
    fn new(state: &TaskState, now: u64, interrupted_ns: u64) -> Self {
        Self {
            from: state.segment_since_ns,
            until: now,
            left: now.saturating_sub(state.segment_since_ns),
            interrupted_ns,
            victim: Victim::unknown(now),
            n_visited: 0,
            max_visited: word(N_STINTS),
            stretch_ns: 0,
            // Set before they are read. Zeroes would be a call of memset, which goes byte by byte.
            totals: [now; N_CATEGORIES],
            named: [now; N_CATEGORIES],
            is_shifted: 0,
        }
    }

    /// Takes a part off, as far as it goes.
    #[inline(always)]
    pub(crate) fn take(&mut self, parts: &mut [u64; N_PARTS], part: Part, ns: u64) {
        let ns = ns.min(self.left);
        self.left -= ns;
        if let Some(sum) = parts.get_mut(part as usize) {
            *sum += ns;
        }
    }
}

/// A task begins to wait on a CPU.
#[inline(always)]
pub(crate) fn begin(state: &mut TaskState, timeline: &mut Timeline, now: u64) {
    restart(state, timeline, now);
    timeline.is_cut = 1;
    count_in(state, timeline, now);
}

/// As above, at a switch of this CPU.
#[inline(always)]
pub(crate) fn begin_here(state: &mut TaskState, timeline: &mut Timeline, now: u64) {
    restart_here(state, timeline, now);
    count_in(state, timeline, now);
}

#[inline(always)]
fn count_in(state: &mut TaskState, timeline: &mut Timeline, now: u64) {
    // A wait whose end was not seen may have left its mark.
    state.flags = state.flags & !MOVED | COUNTED;
    timeline.n_waiting = timeline.n_waiting.wrapping_add(1);
    if timeline.waiting_since_ns == 0 {
        timeline.waiting_since_ns = now;
    }
}

/// From now on, what happens on this CPU counts: for a stint, or for a wait that goes on already.
#[inline(always)]
pub(crate) fn restart(state: &mut TaskState, timeline: &Timeline, now: u64) {
    state.segment_since_ns = now;
    read(timeline, now, &mut state.base);
}

/// As above, at a switch of this CPU: no interrupt is active, and nobody else writes.
#[inline(always)]
pub(crate) fn restart_here(state: &mut TaskState, timeline: &Timeline, now: u64) {
    state.segment_since_ns = now;
    copy(&mut state.base.ns, &timeline.totals_ns);
    copy(&mut state.base.counts, &timeline.counts);
    state.base.version = timeline.version;
}

/// A task no longer waits on this CPU.
#[inline(always)]
fn count_out(state: &mut TaskState, timeline: &mut Timeline) {
    if state.is(COUNTED) {
        state.flags &= !COUNTED;
        timeline.n_waiting = timeline.n_waiting.saturating_sub(1);
        if timeline.n_waiting == 0 {
            timeline.waiting_since_ns = 0;
        }
    }
}

/// Books the wait that ends as the task gets the CPU; the timeline's present stint is still that of the
/// task before.
#[inline(always)]
pub(crate) fn end(state: &mut TaskState, task: Task, tid: u32, timeline: &mut Timeline, now: u64) {
    count_out(state, timeline);
    let is_plain = !state.is(MOVED)
        && state.class != WaitClass::Throttled as u8
        && timeline.version == state.base.version;
    let Some(stint) = present(timeline) else {
        return;
    };
    if is_plain && stint.since_ns <= state.segment_since_ns {
        // One task had the CPU all the time, without an interrupt: nearly every wait.
        let ns = now.saturating_sub(state.segment_since_ns);
        weigh(timeline, stint, ns);
        let part = charge(stint, tid, || {
            blame(state, timeline, stint.tid, ns, || Victim::of(task))
        });
        if let Some(sum) = state.counters.attribution.parts.get_mut(part as usize) {
            *sum += ns;
        }
        state.only_part = part as u8 + 1;
    } else {
        state.only_part = 0;
        end_at_large(state, task, timeline, now);
    }
}

/// Out of line, like all that is rare.
#[inline(never)]
fn end_at_large(state: &mut TaskState, task: Task, timeline: &Timeline, now: u64) -> u32 {
    let mut segment = Segment::new(state, now, timeline.interrupted_ns);
    if state.is(MOVED) {
        take_move(state, task, &mut segment);
    } else {
        clear(&mut state.parts);
    }
    settle(state, task, timeline, &mut segment);
    let sums = &mut state.counters.attribution.parts;
    for (sum, part) in sums.iter_mut().zip(&state.parts) {
        *sum += part;
    }
    0
}

/// Books the segment that a move to another CPU ends, and begins the next one there.
#[inline(never)]
pub(crate) fn cross(state: &mut TaskState, task: Task, to_cpu: u32, now: u64) -> u32 {
    if !state.is(MOVED) {
        clear(&mut state.parts);
    }
    if let Some(timeline) = timeline(task.cpu()) {
        let mut reading = Reading::unread(now);
        read(timeline, now, &mut reading);
        let interrupted_ns = sum(&reading);
        let mut segment = Segment::new(state, now, interrupted_ns);
        segment.max_visited = MAX_VISITED_AT_MOVE;
        settle(state, task, timeline, &mut segment);
        count_out(state, timeline);
    }
    state.flags |= MOVED;
    // Nobody holds the lock under which the other CPU counts, so there it is not counted.
    if let Some(timeline) = timeline(to_cpu) {
        timeline.is_cut = 1;
        restart(state, timeline, now);
    }
    // The new CPU's queue of the group has another account of its quota.
    state.throttled_before_ns = u64::MAX;
    0
}

/// The parts, so far, of the wait of a task that is still queued. Another CPU may be at work on it:
/// the caller looks whether it was.
#[inline(always)]
pub(crate) fn look(state: &TaskState, task: Task, now: u64, parts: &mut [u64; N_PARTS]) {
    let Some(timeline) = timeline(task.cpu()) else {
        return;
    };
    if state.is(MOVED) {
        copy(parts, &state.parts);
    }
    let mut reading = Reading::unread(now);
    read(timeline, now, &mut reading);
    let mut segment = Segment::new(state, now, sum(&reading));
    segment.victim.tid = task.tid();
    let throttled_ns = throttle::part_of(state, task, segment.left);
    segment.take(parts, Part::Throttled, throttled_ns);
    segment.from += throttled_ns;
    if throttled_ns == 0 {
        take_interrupts(&mut segment, &growth(&reading, &state.base), parts);
    }
    look_walk(&raw mut *parts, &raw const *timeline, &raw mut segment);
    let left = segment.left;
    segment.take(parts, Part::Unattributed, left);
}

/// A queued task leaves one queue at `sched_migrate_task`; the kernel notes, by the new queue's
/// clock, when it joins the other.
#[inline(never)]
fn take_move(state: &mut TaskState, task: Task, segment: &mut Segment) -> u32 {
    let Some(clock) = task.queue_clock() else {
        return 0;
    };
    let queued_ns = clock.saturating_sub(task.last_queued());
    let on_the_way_ns = segment
        .until
        .saturating_sub(state.segment_since_ns)
        .saturating_sub(queued_ns);
    // The time on the way is short: a long one says that the clocks do not fit.
    if task.last_queued() != 0 && on_the_way_ns < segment.left {
        segment.take(&mut state.parts, Part::Moved, on_the_way_ns);
        segment.from += on_the_way_ns;
    }
    0
}

#[inline(always)]
fn settle(state: &mut TaskState, task: Task, timeline: &Timeline, segment: &mut Segment) {
    let throttled_ns = throttle::part_of(state, task, segment.left);
    if throttled_ns != 0 {
        segment.take(&mut state.parts, Part::Throttled, throttled_ns);
        segment.from += throttled_ns;
        segment.is_shifted = 1;
    }
    if timeline.version != state.base.version {
        settle_interrupts(&raw mut *state, &raw const *timeline, &raw mut *segment);
    }
    segment.victim = Victim::of(task);
    settle_walk(&raw mut *state, &raw const *timeline, &raw mut *segment);
    // What is older than the timeline keeps has no name.
    let left = segment.left;
    segment.take(&mut state.parts, Part::Unattributed, left);
}

/// By the totals; the recent past gives the names, and the sums where the totals do not fit.
///
/// VERIFIER: exported, like the other walks, so that it is verified once and not for each caller.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn settle_interrupts(
    state: *mut TaskState,
    timeline: *const Timeline,
    segment: *mut Segment,
) -> u32 {
    let (Some(state), Some(timeline), Some(segment)) =
        (given_mut(state), given(timeline), given_mut(segment))
    else {
        return 0;
    };
    let mut reading = Reading::unread(segment.until);
    read(timeline, segment.until, &mut reading);
    segment.totals = growth(&reading, &state.base);
    clear(&mut segment.named);
    for back in 1..=word(N_RECENT_INTERRUPTS) {
        let number = timeline.n_interrupts.wrapping_sub(back);
        if name_interrupts(
            &raw mut *state,
            &raw const *timeline,
            &raw mut *segment,
            number,
        ) != 0
        {
            break;
        }
    }
    let named = segment.named;
    if segment.is_shifted != 0 {
        take_interrupts(segment, &named, &mut state.parts);
        return 0;
    }
    let (left, totals) = (segment.left, segment.totals);
    take_interrupts(segment, &totals, &mut state.parts);
    // What is older than the past keeps has no name.
    let [irq, softirq, tick] = named;
    let rest_ns = (left - segment.left).saturating_sub(irq + softirq + tick);
    if rest_ns != 0 {
        share_rest(state, rest_ns);
    }
    0
}

/// Books one entry of the recent past by its name; 1 where it ended before the segment began.
///
/// VERIFIER: as above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn name_interrupts(
    state: *mut TaskState,
    timeline: *const Timeline,
    segment: *mut Segment,
    number: u32,
) -> u32 {
    let (Some(state), Some(timeline), Some(segment)) =
        (given_mut(state), given(timeline), given_mut(segment))
    else {
        return 1;
    };
    let row = number as usize & (N_RECENT_INTERRUPTS - 1);
    let Some(recent) = timeline.interrupts.get(row) else {
        return 1;
    };
    if recent.until_ns <= segment.from {
        return 1;
    }
    let mut within = recent.since(segment.from);
    let category = within.source.category() as usize;
    if let (Some(sum), Some(&total)) = (
        segment.named.get_mut(category),
        segment.totals.get(category),
    ) {
        // Of the run in which the wait began the totals know what was left.
        within.own_ns = within.own_ns.min(total.saturating_sub(*sum));
        *sum += within.own_ns;
    }
    share(state, &within);
    0
}

#[inline(always)]
fn growth(later: &Reading, earlier: &Reading) -> [u64; N_CATEGORIES] {
    let [irq, softirq, tick] = later.ns;
    let [irq_before, softirq_before, tick_before] = earlier.ns;
    [
        irq.saturating_sub(irq_before),
        softirq.saturating_sub(softirq_before),
        tick.saturating_sub(tick_before),
    ]
}

#[inline(always)]
fn sum(reading: &Reading) -> u64 {
    let [irq, softirq, tick] = reading.ns;
    irq + softirq + tick
}

#[inline(always)]
fn take_interrupts(segment: &mut Segment, ns: &[u64; N_CATEGORIES], parts: &mut [u64; N_PARTS]) {
    for (category, &ns) in ns.iter().enumerate() {
        segment.take(parts, Part::of_category(category), ns);
    }
}
