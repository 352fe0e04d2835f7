//! Walking back through the stints of a wait: who had the CPU, each stretch of running as one.
//!
//! A stint ends at a switch, or where a tick looks at the task that has the CPU because somebody is
//! overdue; blame counts the stretches between switches, stacks weigh each stint.

use latency_common::{
    attribution::{N_PARTS, Part},
    timeline::{N_STINTS, Runner, Stint, TID_UNSEEN, Timeline},
};

use crate::{
    blame::blame,
    given::{given, given_mut},
    segment::Segment,
    stack::weigh,
    state::TaskState,
};

/// Stints visited by one call: the verifier follows a loop turn by turn, but a call once.
const STINTS_AT_ONCE: usize = 32;

/// Charges whoever had the CPU in what is left of the segment; what is older than the timeline keeps
/// stays.
///
/// VERIFIER: exported, so that it is verified once, whatever the caller knows about its values.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn settle_walk(
    state: *mut TaskState,
    timeline: *const Timeline,
    segment: *mut Segment,
) -> u32 {
    for _ in 0..N_STINTS / STINTS_AT_ONCE {
        if settle_stints(state, timeline, segment) != 0 {
            break;
        }
    }
    0
}

/// As above, without names.
///
/// VERIFIER: exported, as above.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn look_walk(
    parts: *mut [u64; N_PARTS],
    timeline: *const Timeline,
    segment: *mut Segment,
) -> u32 {
    for _ in 0..N_STINTS / STINTS_AT_ONCE {
        if look_at_stints(parts, timeline, segment) != 0 {
            break;
        }
    }
    0
}

/// What it means for the waiting task that the task of this stint had the CPU.
#[inline(always)]
fn part_of(stint: &Stint, victim_tid: u32) -> Part {
    match stint.tid {
        0 => Part::IdleExit,
        // A task cannot wait for itself: its switch-out was not seen.
        tid if tid == TID_UNSEEN || Runner(tid).tid() == victim_tid => Part::Unexplained,
        _ => Part::OtherTasks,
    }
}

/// As `part_of`, *unattributed* where it was another task and `blame` finds nobody's name.
#[inline(always)]
pub(crate) fn charge(stint: &Stint, victim_tid: u32, blame: impl FnOnce() -> bool) -> Part {
    match part_of(stint, victim_tid) {
        Part::OtherTasks if !blame() => Part::Unattributed,
        part => part,
    }
}

/// Charges whoever had the CPU for its stint, some stints at a time; 1 when all are done.
///
/// VERIFIER: exported, so that it is verified once and not for each caller.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn settle_stints(
    state: *mut TaskState,
    timeline: *const Timeline,
    segment: *mut Segment,
) -> u32 {
    let (Some(state), Some(timeline), Some(segment)) =
        (given_mut(state), given(timeline), given_mut(segment))
    else {
        return 0;
    };
    let victim = segment.victim;
    u32::from(some_stints(timeline, segment, |segment, stint, piece| {
        weigh(timeline, stint, piece.ns);
        segment.stretch_ns += piece.ns;
        if piece.is_continued {
            return;
        }
        let ns = segment.stretch_ns;
        segment.stretch_ns = 0;
        let part = charge(stint, victim.tid, || {
            blame(state, timeline, stint.tid, ns, || victim)
        });
        segment.take(&mut state.parts, part, ns);
    }))
}

/// As above, by parts alone.
///
/// VERIFIER: exported, so that it is verified once and not for each caller.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn look_at_stints(
    parts: *mut [u64; N_PARTS],
    timeline: *const Timeline,
    segment: *mut Segment,
) -> u32 {
    let (Some(parts), Some(timeline), Some(segment)) =
        (given_mut(parts), given(timeline), given_mut(segment))
    else {
        return 0;
    };
    let victim_tid = segment.victim.tid;
    u32::from(some_stints(timeline, segment, |segment, stint, piece| {
        segment.take(parts, part_of(stint, victim_tid), piece.ns);
    }))
}

/// A stint of a segment.
struct Piece {
    /// Its time without interrupts.
    ns: u64,
    /// The next older stint is of the same task, which a tick looked at meanwhile.
    is_continued: bool,
}

/// Visits stints of a segment, the newest first; the one in which the segment begins gets what is left.
/// True when there are no more.
#[inline(always)]
fn some_stints(
    timeline: &Timeline,
    segment: &mut Segment,
    mut visit: impl FnMut(&mut Segment, &Stint, Piece),
) -> bool {
    for _ in 0..STINTS_AT_ONCE {
        segment.n_visited += 1;
        let number = timeline.n_stints.wrapping_sub(segment.n_visited);
        let Some(stint) = stint_at(timeline, number) else {
            return true;
        };
        let is_over = segment.n_visited > segment.max_visited.min(timeline.n_stints);
        if segment.left == 0 || is_over {
            return true;
        }
        let left = segment.left.saturating_sub(segment.stretch_ns);
        let is_first = stint.since_ns <= segment.from;
        let own_ns = segment.until.saturating_sub(stint.since_ns).saturating_sub(
            segment
                .interrupted_ns
                .saturating_sub(stint.interrupted_before_ns),
        );
        let is_continued = !is_first
            && stint_at(timeline, number.wrapping_sub(1))
                .is_some_and(|older| older.tid == stint.tid);
        let ns = if is_first { left } else { own_ns.min(left) };
        visit(segment, stint, Piece { ns, is_continued });
        if is_first {
            return true;
        }
        segment.until = stint.since_ns;
        segment.interrupted_ns = stint.interrupted_before_ns;
    }
    false
}

#[inline(always)]
fn stint_at(timeline: &Timeline, number: u32) -> Option<&Stint> {
    timeline.stints.get(number as usize & (N_STINTS - 1))
}
