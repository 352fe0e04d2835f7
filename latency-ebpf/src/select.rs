//! Which tasks are measured: decided when a task appears or changes, and kept in its storage.

use aya_ebpf::{
    helpers::{bpf_ktime_get_ns, bpf_probe_read_kernel_str_bytes},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use aya_log_ebpf::debug;
use latency_common::{
    loss::Loss,
    select::{Glob, N_GLOBS},
};

use crate::{
    cgroup::is_in_target,
    globals as g,
    maps::{GLOBS, TARGET_TGIDS, TARGET_TIDS, TARGET_UIDS, count_loss, word},
    state::{FOLLOWED, SELECTED, TaskState, create, lookup},
    task::Task,
};

/// Whether a task fits one of the targets. `comm` is its name, or the one it is about to get.
#[inline(always)]
pub(crate) fn is_match(task: Task, comm: &[u8; 16]) -> bool {
    g::SELECT_ALL.read() != 0
        || (g::HAS_TGIDS.read() != 0 && TARGET_TGIDS.get_ptr(task.tgid()).is_some())
        || (g::HAS_TIDS.read() != 0 && TARGET_TIDS.get_ptr(task.tid()).is_some())
        || (g::HAS_UIDS.read() != 0 && TARGET_UIDS.get_ptr(task.uid()).is_some())
        || (g::GLOB_COUNT.read() != 0 && matches_a_glob(comm))
        || (g::HAS_CGROUPS.read() != 0 && is_in_target(task))
}

#[inline(always)]
fn matches_a_glob(comm: &[u8; 16]) -> bool {
    for index in 0..word(N_GLOBS) {
        if index >= g::GLOB_COUNT.read() {
            return false;
        }
        if GLOBS.get(index).is_some_and(|glob| matches(glob, comm)) {
            return true;
        }
    }
    false
}

#[inline(always)]
fn matches(glob: &Glob, comm: &[u8; 16]) -> bool {
    let mut state = Glob::START;
    for &byte in comm {
        if byte == 0 {
            break;
        }
        state = glob.step(state, byte);
    }
    state & glob.accept_state != 0
}

/// Decides again for a task whose name, user or cgroup has changed; whether it is measured now.
#[inline(always)]
pub(crate) fn reselect(task: Task, comm: &[u8; 16]) -> bool {
    let state = lookup(task);
    let is_followed = state.as_ref().is_some_and(|state| state.is(FOLLOWED));
    let is_selected = state.as_ref().is_some_and(|state| state.is(SELECTED));
    let is_wanted = is_followed || is_match(task, comm);
    if is_wanted == is_selected {
        return is_wanted;
    }
    // SAFETY: the helper has no precondition.
    let now = unsafe { bpf_ktime_get_ns() };
    if is_wanted {
        select(task, state, 0, now);
    } else if let Some(state) = state {
        state.end(now);
    }
    is_wanted
}

/// Begins to measure a task that exists.
#[inline(always)]
pub(crate) fn select(task: Task, state: Option<&'static mut TaskState>, flags: u8, now: u64) {
    match state.or_else(|| create(task)) {
        Some(state) => state.begin(task, flags, now),
        None => count_loss(Loss::UntrackedTasks),
    }
}

/// A program was executed: name and user may be new.
#[btf_tracepoint(function = "sched_process_exec")]
pub(crate) fn sched_process_exec(ctx: BtfTracePointContext) -> i32 {
    let task = Task::new(ctx.arg(0));
    let is_selected = reselect(task, &task.comm());
    // Removed by the verifier unless logs are asked for.
    debug!(
        &ctx,
        "exec by thread {}: selected {}",
        task.tid(),
        u32::from(is_selected)
    );
    0
}

/// A task gets another name. The event comes before the change, so the name is read from its argument.
#[btf_tracepoint(function = "task_rename")]
pub(crate) fn task_rename(ctx: BtfTracePointContext) -> i32 {
    let task = Task::new(ctx.arg(0));
    let mut comm = [0; 16];
    // SAFETY: the helper checks the address.
    if unsafe { bpf_probe_read_kernel_str_bytes(ctx.arg(1), &mut comm) }.is_ok() {
        let is_selected = reselect(task, &comm);
        debug!(
            &ctx,
            "rename of thread {}: selected {}",
            task.tid(),
            u32::from(is_selected)
        );
    }
    0
}
