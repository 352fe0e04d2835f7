//! Each CPU's recent past, as its own programs write it and as any program may read it.

use latency_common::{
    attribution::Stolen,
    interrupt::N_CATEGORIES,
    timeline::{
        ActiveInterrupt, Face, N_FACES, N_STINTS, Runner, StackHandle, Stint, TID_UNSEEN, Timeline,
    },
};

use crate::{cgroup::cgroup_id, state::TaskState, task::Task, words::copy};

/// The totals of a CPU's interrupts at one moment.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Reading {
    pub(crate) ns: [u64; N_CATEGORIES],
    pub(crate) counts: [u32; N_CATEGORIES],
    /// The timeline's version: the same number means that nothing has changed.
    pub(crate) version: u32,
}

impl Reading {
    /// One that is yet to be read. Zeroes would be a call of memset, which goes byte by byte.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "any value will do")]
    pub(crate) const fn unread(filler: u64) -> Self {
        Self {
            ns: [filler; N_CATEGORIES],
            counts: [filler as u32; N_CATEGORIES],
            version: 0,
        }
    }
}

/// Times another CPU's totals are read again because they changed meanwhile.
const MAX_READS: u32 = 3;

/// Reads the totals, the part of an active interrupt up to `now` included.
#[inline(always)]
pub(crate) fn read(timeline: &Timeline, now: u64, reading: &mut Reading) {
    for _ in 0..MAX_READS {
        reading.version = version(timeline);
        copy(&mut reading.ns, &timeline.totals_ns);
        copy(&mut reading.counts, &timeline.counts);
        if timeline.depth != 0 {
            add_active(timeline, now, reading);
        }
        if reading.version & 1 == 0 && version(timeline) == reading.version {
            break;
        }
    }
}

#[inline(always)]
fn version(timeline: &Timeline) -> u32 {
    // SAFETY: the field is valid; volatile, as another CPU writes it.
    unsafe { (&raw const timeline.version).read_volatile() }
}

/// The innermost interrupt that is active.
#[inline(always)]
pub(crate) fn active(timeline: &Timeline) -> Option<&ActiveInterrupt> {
    let innermost = (timeline.depth as usize).wrapping_sub(1);
    timeline.active.get(innermost)
}

/// Out of line: a wait that begins within an interrupt is the rarer case.
#[inline(never)]
fn add_active(timeline: &Timeline, now: u64, reading: &mut Reading) {
    if let Some(active) = active(timeline) {
        let ns = now.saturating_sub(timeline.context_since_ns);
        if let Some(total) = reading.ns.get_mut(active.source.category() as usize) {
            *total += ns;
        }
    }
}

/// Books what interrupts took from a task that leaves the CPU.
#[inline(always)]
pub(crate) fn book_stolen(state: &mut TaskState, timeline: &Timeline) {
    if timeline.version != state.base.version {
        add_stolen(state, timeline);
    }
}

#[inline(never)]
fn add_stolen(state: &mut TaskState, timeline: &Timeline) -> u32 {
    let now = Reading {
        ns: timeline.totals_ns,
        counts: timeline.counts,
        version: 0,
    };
    add_growth(&mut state.counters.attribution.stolen, &now, &state.base);
    0
}

/// Adds what has grown between two readings.
#[inline(always)]
pub(crate) fn add_growth(stolen: &mut Stolen, now: &Reading, before: &Reading) {
    for category in 0..N_CATEGORIES {
        if let (Some(to), Some(now), Some(before)) = (
            stolen.ns.get_mut(category),
            now.ns.get(category),
            before.ns.get(category),
        ) {
            *to += now.saturating_sub(*before);
        }
        if let (Some(to), Some(now), Some(before)) = (
            stolen.counts.get_mut(category),
            now.counts.get(category),
            before.counts.get(category),
        ) {
            *to += u64::from(now.wrapping_sub(*before));
        }
    }
}

/// A name is looked at again after that time.
const FACE_NS: u64 = 100_000_000;

/// Notes that `task` has the CPU from now on.
#[inline(always)]
pub(crate) fn begin_stint(timeline: &mut Timeline, task: Task, tid: u32, now: u64) {
    let runner = runner(timeline, task, tid, now);
    push_stint(timeline, runner, now);
}

/// Notes that from now on whoever has the CPU counts anew.
#[inline(always)]
pub(crate) fn split_stint(timeline: &mut Timeline, now: u64) {
    if let Some(&Stint { tid, .. }) = present(timeline) {
        push_stint(timeline, tid, now);
    }
}

#[inline(always)]
fn push_stint(timeline: &mut Timeline, runner: u32, now: u64) {
    let interrupted_before_ns = timeline.interrupted_ns;
    let number = timeline.n_stints;
    if let Some(stint) = timeline.stints.get_mut(number as usize & (N_STINTS - 1)) {
        *stint = Stint {
            since_ns: now,
            interrupted_before_ns,
            tid: runner,
            stack: StackHandle(0),
        };
    }
    // Another CPU may read it: the number comes after what it stands for.
    // SAFETY: the field is valid.
    unsafe { (&raw mut timeline.n_stints).write_volatile(number.wrapping_add(1)) };
}

/// Who that is, of whom this CPU now knows at least the name.
#[inline(always)]
fn runner(timeline: &mut Timeline, task: Task, tid: u32, now: u64) -> u32 {
    if tid == 0 {
        return 0;
    }
    let Some(face) = timeline.faces.get_mut(tid as usize & (N_FACES - 1)) else {
        return tid;
    };
    if face.tid != tid {
        face.work = 0;
        look_at(face, task, now);
    } else if now.saturating_sub(face.at_ns) > FACE_NS {
        look_at(face, task, now);
    }
    // In the middle of a function a worker that is not bound may come from another CPU, where it may
    // have begun another one: rather no function than a wrong one.
    if face.work != 0 && task.n_cpus_allowed() != 1 {
        face.work = 0;
    }
    tid | face.work
}

/// A worker of the kernel begins with a function: from now on it is somebody else. With 0 it ends, and
/// is the same until it begins with the next or leaves the CPU.
#[inline(always)]
pub(crate) fn change_work(timeline: &mut Timeline, worker: Task, work: u32, now: u64) {
    let tid = worker.tid();
    if let Some(face) = timeline.faces.get_mut(tid as usize & (N_FACES - 1))
        && face.tid == tid
    {
        face.work = work;
        if work != 0 {
            push_stint(timeline, tid | work, now);
        }
    }
}

#[inline(never)]
fn look_at(face: &mut Face, task: Task, now: u64) -> u32 {
    face.tid = task.tid();
    face.tgid = task.tgid();
    face.at_ns = now;
    face.cgroup_id = cgroup_id(task);
    face.is_kernel_thread = task.is_kthread().into();
    face.prio = task.short_prio();
    face.comm = task.comm();
    if !task.is_worker() {
        face.work = 0;
    }
    0
}

/// Who this is, if this CPU still knows.
#[inline(always)]
pub(crate) fn face(timeline: &Timeline, runner: u32) -> Option<&Face> {
    let tid = Runner(runner).tid();
    let face = timeline.faces.get(tid as usize & (N_FACES - 1))?;
    (face.tid == tid).then_some(face)
}

/// The stint that goes on.
#[inline(always)]
pub(crate) fn present(timeline: &Timeline) -> Option<&Stint> {
    let newest = timeline.n_stints.wrapping_sub(1) as usize & (N_STINTS - 1);
    timeline.stints.get(newest)
}

/// As `present`.
#[inline(always)]
pub(crate) fn present_mut(timeline: &mut Timeline) -> Option<&mut Stint> {
    let newest = timeline.n_stints.wrapping_sub(1) as usize & (N_STINTS - 1);
    timeline.stints.get_mut(newest)
}

/// The newest stint is of a task that left unseen; what ran from then on was not seen either.
///
/// Where exactly one switch was missed, `prev` followed it, and the kernel's own account says for how
/// long; else the whole stretch is unseen.
#[inline(never)]
pub(crate) fn mend_break(timeline: &mut Timeline, prev: Task, n_missed: u64, now: u64) -> u32 {
    let mut since_ns = now.saturating_sub(prev.present_stint());
    if let Some(stint) = present_mut(timeline) {
        if n_missed != 1 {
            stint.tid = TID_UNSEEN;
        }
        since_ns = since_ns.max(stint.since_ns);
    }
    begin_stint(timeline, prev, prev.tid(), since_ns);
    0
}
