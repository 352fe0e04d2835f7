//! The read-only globals of the BPF programs: what each kernel's types say about them.
//!
//! A field that every supported kernel has and this one lacks is an error; any other missing field
//! makes the feature that needs it unavailable, never a guess.

use aya::EbpfLoader;
use latency_common::config::ABSENT;

use super::{arch, btf::KernelTypes};
use crate::Error;

/// Values to set before load.
#[derive(Debug, Default)]
pub(super) struct Globals {
    words: Vec<(&'static str, u32)>,
    long_words: Vec<(&'static str, u64)>,
}

/// Fields without which nothing can be measured: global, structure, member.
const REQUIRED: &[(&str, &str, &str)] = &[
    ("TASK_STATE", "task_struct", "__state"),
    ("TASK_PID", "task_struct", "pid"),
    ("TASK_TGID", "task_struct", "tgid"),
    ("TASK_COMM", "task_struct", "comm"),
    ("TASK_FLAGS", "task_struct", "flags"),
    ("TASK_PRIO", "task_struct", "prio"),
    ("TASK_ON_CPU", "task_struct", "on_cpu"),
    ("TASK_THREAD_FLAGS", "task_struct", "thread_info.flags"),
    ("TASK_NVCSW", "task_struct", "nvcsw"),
    ("TASK_NIVCSW", "task_struct", "nivcsw"),
    ("TASK_RUN_DELAY", "task_struct", "sched_info.run_delay"),
    ("TASK_LAST_QUEUED", "task_struct", "sched_info.last_queued"),
    ("TASK_SUM_EXEC", "task_struct", "se.sum_exec_runtime"),
    ("TASK_START_BOOTTIME", "task_struct", "start_boottime"),
    ("TASK_GROUP_LEADER", "task_struct", "group_leader"),
    ("TASK_CRED", "task_struct", "cred"),
    ("TASK_CGROUPS", "task_struct", "cgroups"),
    ("CRED_UID", "cred", "uid"),
    ("CSS_CGROUP", "cgroup_subsys_state", "cgroup"),
    ("CGROUP_PARENT_CSS", "cgroup", "self.parent"),
    ("CGROUP_KN", "cgroup", "kn"),
    ("CGROUP_ROOT", "cgroup", "root"),
    ("CGROUP_ROOT_ID", "cgroup_root", "hierarchy_id"),
    ("KERNFS_ID", "kernfs_node", "id"),
    ("HRTIMER_FUNCTION", "hrtimer", "function"),
];

/// Fields that only some kernels have.
const OPTIONAL: &[(&str, &str, &str)] = &[
    ("TASK_THROTTLED", "task_struct", "throttled"),
    ("TASK_CFS_RQ", "task_struct", "se.cfs_rq"),
    ("CFS_RQ_THROTTLE_COUNT", "cfs_rq", "throttle_count"),
    (
        "TASK_PREV_SUM_EXEC",
        "task_struct",
        "se.prev_sum_exec_runtime",
    ),
    ("TASK_CPUS_ALLOWED", "task_struct", "nr_cpus_allowed"),
    ("HRTIMER_SOFT_EXPIRES", "hrtimer", "_softexpires"),
    ("HRTIMER_EXPIRES", "hrtimer", "node.expires"),
    ("RQ_CLOCK", "rq", "clock"),
    ("CFS_RQ_RQ", "cfs_rq", "rq"),
    ("RQ_NR_SWITCHES", "rq", "nr_switches"),
    ("WORK_FUNCTION", "work_struct", "func"),
    ("REGS_SYSCALL_NR", "pt_regs", arch::SYSCALL_MEMBER),
    ("REGS_FIRST_ARGUMENT", "pt_regs", arch::ARGUMENT_MEMBER),
];

/// The time that a queue's tasks were out of quota, and since when they are: its names, the newest
/// first. Before 6.6 the account is by the clock of load tracking, which stands still in idle.
const QUOTA_ACCOUNTS: [(&str, &str); 3] = [
    ("throttled_clock_self_time", "throttled_clock_self"),
    ("throttled_clock_pelt_time", "throttled_clock_pelt"),
    ("throttled_clock_task_time", "throttled_clock_task"),
];

impl Globals {
    /// Looks up every offset.
    pub(super) fn resolve(types: &KernelTypes, kernel: &str) -> Result<Self, Error> {
        let mut globals = Self::default();
        for &(name, structure, member) in REQUIRED {
            let offset = types
                .offset_of(structure, member)
                .ok_or_else(|| Error::Unsupported {
                    kernel: kernel.to_owned(),
                    what: format!("field {structure}.{member}"),
                })?;
            globals.set(name, offset);
        }
        for &(name, structure, member) in OPTIONAL {
            globals.set(name, types.offset_of(structure, member).unwrap_or(ABSENT));
        }
        for (sum, since) in QUOTA_ACCOUNTS {
            if let (Some(sum), Some(since)) = (
                types.offset_of("cfs_rq", sum),
                types.offset_of("cfs_rq", since),
            ) {
                globals.set("CFS_RQ_THROTTLED_NS", sum);
                globals.set("CFS_RQ_THROTTLED_SINCE", since);
                break;
            }
        }
        // `cpu` moved into thread_info in 5.16.
        let cpu = types
            .offset_of("task_struct", "thread_info.cpu")
            .or_else(|| types.offset_of("task_struct", "cpu"))
            .ok_or_else(|| Error::Unsupported {
                kernel: kernel.to_owned(),
                what: "field task_struct.cpu".into(),
            })?;
        globals.set("TASK_CPU", cpu);
        // `on_cpu` shrank to a byte in 7.3.
        globals.set(
            "TASK_ON_CPU_BYTES",
            types.size_of("task_struct", "on_cpu").unwrap_or(4),
        );
        globals.set(
            "SCHED_YIELD_NR",
            u32::try_from(libc::SYS_sched_yield).unwrap_or(ABSENT),
        );
        Ok(globals)
    }

    /// Sets a value; a later one for the same name wins.
    pub(super) fn set(&mut self, name: &'static str, value: u32) {
        self.words.push((name, value));
    }

    /// Sets a 64-bit value.
    pub(super) fn set_long(&mut self, name: &'static str, value: u64) {
        self.long_words.push((name, value));
    }

    /// Hands all values to the loader; each must exist in the object.
    pub(super) fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for (name, value) in &self.words {
            loader.override_global(name, value, true);
        }
        for (name, value) in &self.long_words {
            loader.override_global(name, value, true);
        }
    }
}
