//! Idle while runnable: when CPUs are idle, and when measured tasks wait that could use them.
//!
//! Where it was not asked for, the verifier removes all of it.

use aya_ebpf::helpers::generated::bpf_get_smp_processor_id;
use latency_common::idle::{IdleSums, IdleWord};

use crate::{
    globals as g,
    maps::{IDLE_COUNTS, IDLE_SUMS},
    state::TaskState,
    task::Task,
    words::add_atomically,
};

/// `TaskState::waits_for_idle` of a task that waits and is in the word.
const IN_WORD: u64 = 1;
/// Of one that may not run on all CPUs that count.
const IS_RESTRICTED: u64 = 2;

/// The sums of this CPU.
#[inline(always)]
fn sums() -> Option<*mut IdleSums> {
    // SAFETY: the helper has no precondition.
    IDLE_SUMS.get_ptr_mut(unsafe { bpf_get_smp_processor_id() })
}

/// A CPU goes from one task to the next.
#[inline(always)]
pub(crate) fn switch(next_tid: u32, now: u64) {
    if g::IDLE_CPUS.read() == 0 {
        return;
    }
    let Some(sums) = sums() else {
        return;
    };
    // SAFETY: the pointer comes from the map; the flag is written here only, on this CPU.
    let is_idle = unsafe { &mut (*sums).is_idle };
    // SAFETY: as above; user space has set it before.
    let counts = unsafe { (*sums).counts } != 0;
    if next_tid == 0 && *is_idle == 0 && counts {
        *is_idle = 1;
        change(IdleWord::IDLE_BEGINS, now);
    } else if next_tid != 0 && *is_idle != 0 {
        *is_idle = 0;
        change(IdleWord::IDLE_ENDS, now);
    }
}

/// A task begins to wait.
#[inline(always)]
pub(crate) fn wait_begins(state: &mut TaskState, task: Task, now: u64) {
    let n_cpus = g::IDLE_CPUS.read();
    if n_cpus == 0 {
        return;
    }
    // The end of an earlier wait may not have been seen.
    wait_ends(state, now);
    if task.n_cpus_allowed() >= n_cpus {
        state.waits_for_idle = IN_WORD;
        change(IdleWord::WAIT_BEGINS, now);
    } else {
        state.waits_for_idle = IS_RESTRICTED;
    }
}

/// It waits no more.
#[inline(always)]
pub(crate) fn wait_ends(state: &mut TaskState, now: u64) {
    if g::IDLE_CPUS.read() == 0 {
        return;
    }
    if state.waits_for_idle == IN_WORD {
        change(IdleWord::WAIT_ENDS, now);
    } else if state.waits_for_idle == IS_RESTRICTED
        && let Some(sums) = sums()
    {
        // SAFETY: the pointer comes from the map.
        let ns = unsafe { &raw mut (*sums).restricted_ns };
        add_atomically(ns, now.saturating_sub(state.since_ns));
    }
    state.waits_for_idle = 0;
}

/// VERIFIER: out of line, for the limit on the size of the stack.
#[inline(never)]
fn change(by: u64, now: u64) -> u32 {
    let (Some(counts), Some(sums)) = (IDLE_COUNTS.get_ptr_mut(0), sums()) else {
        return 0;
    };
    // SAFETY: the pointer comes from the map.
    let word = unsafe { &raw mut (*counts).word };
    let before = IdleWord(add_atomically(word, by));
    let grown = before.plus(by).minimum().wrapping_sub(before.minimum());
    if grown != 0 {
        // SAFETY: as above.
        let sum = unsafe { &raw mut (*sums).sum };
        add_atomically(sum, now.wrapping_mul(grown).wrapping_neg());
    }
    // SAFETY: as above.
    let n_changes = unsafe { &raw mut (*sums).n_changes };
    add_atomically(n_changes, 1);
    0
}
