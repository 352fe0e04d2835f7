//! A task's cgroup in the hierarchy that is looked at, and the events of that hierarchy.

use aya_ebpf::{
    helpers::generated::{bpf_get_smp_processor_id, bpf_probe_read_kernel_str},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use latency_common::{
    config::CGROUP_DEFAULT_HIERARCHY,
    loss::Loss,
    record::{CGROUP_PATH_BYTES, CgroupRecord, RecordTag},
};

use crate::{
    globals as g,
    maps::{RECORDS, TARGET_CGROUPS, count_loss, cpu_state, word},
    ring::urgency,
    select::reselect,
    task::{Task, load},
};

/// Deepest nesting that is looked through for a target.
const MAX_DEPTH: usize = 32;

/// The cgroup of a task.
#[inline(always)]
fn cgroup_of(task: Task) -> *const u8 {
    let member: *const u8 = load(task.css_set(), &g::CSS_SET_MEMBER);
    if g::CGROUP_SUBSYS.read() == CGROUP_DEFAULT_HIERARCHY {
        member
    } else {
        load(member, &g::CSS_CGROUP)
    }
}

#[inline(always)]
fn id_of(cgroup: *const u8) -> u64 {
    load(load(cgroup, &g::CGROUP_KN), &g::KERNFS_ID)
}

/// The id of a task's cgroup: the inode of its directory.
#[inline(always)]
pub(crate) fn cgroup_id(task: Task) -> u64 {
    id_of(cgroup_of(task))
}

/// Whether a task is in a selected cgroup or below one.
#[inline(always)]
pub(crate) fn is_in_target(task: Task) -> bool {
    let mut cgroup = cgroup_of(task);
    for _ in 0..MAX_DEPTH {
        let id = id_of(cgroup);
        if TARGET_CGROUPS.get_ptr(id).is_some() {
            return true;
        }
        let parent: *const u8 = load(cgroup, &g::CGROUP_PARENT_CSS);
        if parent.is_null() {
            return false;
        }
        cgroup = load(parent, &g::CSS_CGROUP);
    }
    false
}

#[inline(always)]
fn is_of_hierarchy(cgroup: *const u8) -> bool {
    load::<u32>(load(cgroup, &g::CGROUP_ROOT), &g::CGROUP_ROOT_ID) == g::CGROUP_HIERARCHY.read()
}

/// A task moved; for a whole process this fires once, so user space then looks at all tasks again.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub(crate) fn cgroup_attach_task(ctx: BtfTracePointContext) -> i32 {
    let is_whole_process = ctx.arg::<u8>(3) != 0;
    if !is_of_hierarchy(ctx.arg(0)) {
        return 0;
    }
    let task = Task::new(ctx.arg(2));
    reselect(task, &task.comm());
    if is_whole_process
        // SAFETY: the helper has no precondition.
        && let Some(cpu) = cpu_state(unsafe { bpf_get_smp_processor_id() })
    {
        cpu.reselect_requests = cpu.reselect_requests.wrapping_add(1);
    }
    0
}

/// A cgroup was made: its path is sent while it exists.
#[btf_tracepoint(function = "cgroup_mkdir")]
pub(crate) fn cgroup_mkdir(ctx: BtfTracePointContext) -> i32 {
    let cgroup: *const u8 = ctx.arg(0);
    if !is_of_hierarchy(cgroup) {
        return 0;
    }
    let Some(mut entry) = RECORDS.reserve::<CgroupRecord>(0) else {
        count_loss(Loss::CgroupNames);
        return 0;
    };
    let record = entry.as_mut_ptr();
    // SAFETY: the reserved record is ours until it is submitted.
    unsafe { (*record).tag = RecordTag::Cgroup as u64 };
    // SAFETY: as above.
    unsafe { (*record).id = id_of(cgroup) };
    // SAFETY: as above.
    let path = unsafe { &raw mut (*record).path };
    // SAFETY: the helper writes at most the size of the field, and checks the address it reads.
    unsafe {
        bpf_probe_read_kernel_str(
            path.cast(),
            word(CGROUP_PATH_BYTES),
            ctx.arg::<*const u8>(1).cast(),
        )
    };
    entry.submit(urgency().into());
    0
}
