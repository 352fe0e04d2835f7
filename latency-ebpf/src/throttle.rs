//! How long a task that is out of quota has to wait for more.
//!
//! The quota comes back when its period timer, or the slack timer, expires. The kernel adds the time
//! up to that expiry to the task's queue, by the queue's clock; what the task waits after that is
//! ordinary queueing.

use latency_common::class::WaitClass;

use crate::{state::TaskState, task::Task};

/// The time out of quota of the task's queue until now, by the queue's clock.
#[inline(always)]
fn so_far(task: Task) -> Option<u64> {
    let (before, since) = task.quota_waits()?;
    if since == 0 {
        return Some(before);
    }
    Some(before + task.queue_clock()?.saturating_sub(since))
}

/// The wait of a task that is out of quota begins.
#[inline(always)]
pub(crate) fn begin(state: &mut TaskState, task: Task) {
    state.throttled_before_ns = so_far(task).unwrap_or(0);
}

/// How much of a wait of `ns`, which ends now, the task was out of quota.
///
/// The limit of the real-time class, and kernels that keep no such account, name no release: there
/// the whole wait is taken for it.
#[inline(always)]
pub(crate) fn part_of(state: &TaskState, task: Task, ns: u64) -> u64 {
    if state.class != WaitClass::Throttled as u8 {
        return 0;
    }
    if task.class_rank() != 0 {
        return ns;
    }
    so_far(task).map_or(ns, |now| {
        now.saturating_sub(state.throttled_before_ns).min(ns)
    })
}
