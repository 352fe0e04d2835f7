//! Who was in the way: rows of culprits and of interrupts in the task's own storage.
//!
//! Few rows must do. A culprit that finds none takes that of the one which cost least so far, which
//! joins those of its name; a name that finds no row either is sent to user space.

use latency_common::{
    attribution::{Attribution, Culprit, CulpritKind, N_CULPRIT_TASKS, N_INTERRUPTS},
    interrupt::Source,
    timeline::{Face, RecentInterrupt, Runner, Timeline},
};

use crate::{
    cgroup::cgroup_id,
    given::{given, given_mut},
    maps::word,
    sent::{send_row, send_stretch},
    state::TaskState,
    task::Task,
    timeline::face,
    words::{copy_name, is_same_name},
};

/// What tells how a culprit is related to the waiting task.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Victim {
    pub(crate) cgroup_id: u64,
    pub(crate) tgid: u32,
    pub(crate) tid: u32,
}

impl Victim {
    /// One that is yet to be looked at.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "any value will do")]
    pub(crate) const fn unknown(filler: u64) -> Self {
        Self {
            cgroup_id: filler,
            tgid: filler as u32,
            tid: filler as u32,
        }
    }

    #[inline(always)]
    pub(crate) fn of(task: Task) -> Self {
        Self {
            cgroup_id: cgroup_id(task),
            tgid: task.tgid(),
            tid: task.tid(),
        }
    }
}

/// Books time of the stint that a waiting task waited through; false where nobody knows whose it was.
#[inline(always)]
pub(crate) fn blame(
    state: &mut TaskState,
    timeline: &Timeline,
    tid: u32,
    ns: u64,
    victim: impl FnOnce() -> Victim,
) -> bool {
    let [first, ..] = &mut state.counters.attribution.culprits;
    if first.tid == tid {
        add(first, ns);
        true
    } else {
        let victim = victim();
        let attribution = &raw mut state.counters.attribution;
        blame_another(
            attribution,
            &raw const *timeline,
            tid,
            ns,
            &raw const victim,
        ) != 0
    }
}

/// Adds a stretch.
#[inline(always)]
pub(crate) fn add(row: &mut Culprit, ns: u64) {
    row.sum_ns += ns;
    row.max_ns = row.max_ns.max(ns);
    row.count += 1;
}

/// Returns 0 where nobody knows whose it was, or where neither a row nor the ring had room.
///
/// VERIFIER: exported, so that the kernel verifies it once and not at each turn of its callers' loops.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn blame_another(
    attribution: *mut Attribution,
    timeline: *const Timeline,
    tid: u32,
    ns: u64,
    victim: *const Victim,
) -> u32 {
    let (Some(attribution), Some(timeline), Some(victim)) =
        (given_mut(attribution), given(timeline), given(victim))
    else {
        return 0;
    };
    let mut least = 0;
    let mut least_ns = u64::MAX;
    for index in 0..word(N_CULPRIT_TASKS) {
        let Some(row) = attribution.culprits.get_mut(index as usize) else {
            return 0;
        };
        if row.tid == tid {
            add(row, ns);
            return 1;
        }
        if row.count == 0 {
            (least, least_ns) = (index, 0);
            break;
        }
        if row.sum_ns < least_ns {
            (least, least_ns) = (index, row.sum_ns);
        }
    }
    let Some(face) = face(timeline, tid) else {
        return 0;
    };
    let kind = kind(face, victim) as u16;
    let (to, by) = (&raw mut *attribution, &raw const *face);
    if ns < least_ns {
        return u32::from(
            blame_name(to, by, tid, kind, ns) != 0 || send_stretch(to, by, tid, kind, ns) != 0,
        );
    }
    let lost = free_row(to, least);
    if lost != 0 {
        send_row(to, least, lost - 1);
    }
    let Some(row) = attribution.culprits.get_mut(least as usize) else {
        return 0;
    };
    row.kind = kind;
    row.sum_ns = ns;
    row.max_ns = ns;
    row.count = 1;
    row.tid = tid;
    row.tgid = face.tgid;
    row.prio = face.prio;
    row.cgroup_id = face.cgroup_id;
    copy_name(&mut row.comm, &face.comm);
    1
}

#[inline(always)]
fn kind(culprit: &Face, victim: &Victim) -> CulpritKind {
    if culprit.is_kernel_thread != 0 {
        CulpritKind::KernelThread
    } else if culprit.tgid == victim.tgid {
        CulpritKind::SameProcess
    } else if culprit.cgroup_id == victim.cgroup_id {
        CulpritKind::SameCgroup
    } else {
        CulpritKind::Foreign
    }
}

/// Books time of a task that has no row of its own with those of its name; 0 where the names have
/// none either.
///
/// VERIFIER: as above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn blame_name(
    attribution: *mut Attribution,
    face: *const Face,
    runner: u32,
    kind: u16,
    ns: u64,
) -> u32 {
    let (Some(attribution), Some(face)) = (given_mut(attribution), given(face)) else {
        return 0;
    };
    let work = Runner(runner).any_thread().0;
    let (_, names) = attribution.culprits.split_at_mut(N_CULPRIT_TASKS);
    for row in names {
        if row.count == 0 {
            row.tid = work;
            row.kind = kind;
            row.prio = face.prio;
            row.cgroup_id = face.cgroup_id;
            copy_name(&mut row.comm, &face.comm);
        } else if !is_same_name(&row.comm, &face.comm) || row.kind != kind || row.tid != work {
            continue;
        }
        add(row, ns);
        return 1;
    }
    0
}

/// Adds a culprit that loses its row to those of its name; where there is no room, returns the number,
/// plus one, of the row that has to go: that one, or a name which cost less.
///
/// VERIFIER: as above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn free_row(attribution: *mut Attribution, lost: u32) -> u32 {
    let Some(attribution) = given_mut(attribution) else {
        return 0;
    };
    let (tasks, names) = attribution.culprits.split_at_mut(N_CULPRIT_TASKS);
    let number = lost + 1;
    let Some(lost) = tasks.get(lost as usize) else {
        return 0;
    };
    if lost.count == 0 {
        return 0;
    }
    let mut least = number;
    let mut least_ns = lost.sum_ns;
    for (index, row) in (0..).zip(names.iter_mut()) {
        if row.count == 0 || is_same(row, lost) {
            merge(row, lost);
            return 0;
        }
        if row.sum_ns < least_ns {
            least_ns = row.sum_ns;
            least = word(N_CULPRIT_TASKS) + index + 1;
        }
    }
    least
}

#[inline(always)]
fn is_same(name: &Culprit, lost: &Culprit) -> bool {
    is_same_name(&name.comm, &lost.comm)
        && name.kind == lost.kind
        && name.tid == Runner(lost.tid).any_thread().0
}

/// Adds a row to that of its name.
#[inline(always)]
pub(crate) fn merge(row: &mut Culprit, from: &Culprit) {
    row.sum_ns += from.sum_ns;
    row.max_ns = row.max_ns.max(from.max_ns);
    row.count += from.count;
    row.tid = Runner(from.tid).any_thread().0;
    row.tgid = 0;
    row.kind = from.kind;
    row.prio = from.prio;
    row.cgroup_id = from.cgroup_id;
    copy_name(&mut row.comm, &from.comm);
}

/// Books runs of an interrupt that a waiting task waited through.
#[inline(always)]
pub(crate) fn share(state: &mut TaskState, runs: &RecentInterrupt) {
    share_among(
        &raw mut state.counters.attribution,
        runs.source.0,
        runs.count,
        runs.own_ns,
    );
}

/// Books time of interrupts that are not told apart.
#[inline(always)]
pub(crate) fn share_rest(state: &mut TaskState, ns: u64) {
    let [.., several] = &mut state.counters.attribution.interrupts;
    several.source = Source::SEVERAL;
    several.count += 1;
    several.sum_ns += ns;
}

/// VERIFIER: as above.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn share_among(attribution: *mut Attribution, source: u32, count: u32, ns: u64) -> u32 {
    let Some(attribution) = given_mut(attribution) else {
        return 0;
    };
    let source = Source(source);
    let rows = &mut attribution.interrupts;
    for (index, row) in rows.iter_mut().enumerate() {
        if index == N_INTERRUPTS - 1 {
            row.source = Source::SEVERAL;
        } else if row.count == 0 {
            row.source = source;
        } else if row.source != source {
            continue;
        }
        row.count += count;
        row.sum_ns += ns;
        break;
    }
    0
}
