//! What this kernel and this user can do, found out before anything is attached.
//!
//! `record` attaches by it and names what is degraded; `doctor` prints it.

use std::path::Path;

use aya::{
    programs::ProgramType,
    sys::{BpfHelper, is_helper_supported},
};
use latency_common::config::Detail;

use super::{
    arch,
    btf::KernelTypes,
    feature::{Availability, Feature, degradable, optional, required},
    resched::ReschedBits,
    rights::Rights,
    symbols::Addresses,
    tracepoints::{INTERRUPTS_SEEN, Lacking, TIMERS, WORK_FUNCTIONS, YIELD_CALLS},
};
use crate::Error;

/// The feature that names the functions of kernel stacks.
pub const KERNEL_PATHS: &str = "kernel paths";

/// The features of the full detail only.
const OF_FULL_DETAIL: [&str; 3] = [KERNEL_PATHS, INTERRUPTS_SEEN, WORK_FUNCTIONS];

/// What it takes to read kernel addresses.
const ADDRESSES_REMEDY: &str = "run as root, or add CAP_SYSLOG, with kptr_restrict below 2";

/// What was found out about the kernel.
#[derive(Clone, Debug)]
pub struct Features {
    /// Bits that ask for a reschedule.
    pub resched_bits: ReschedBits,
    /// Addresses of kernel functions.
    pub addresses: Addresses,
    /// Whether `bpf_probe_read_kernel` is allowed.
    pub can_probe_read: bool,
    /// Whether task storage can be created under scheduler locks.
    pub can_seed_at_switch: bool,
    /// Whether `sched_exit_tp` is needed to tell stale evidence from fresh.
    pub needs_sched_exit: bool,
    /// Tracepoints that a recording does without here.
    pub lacking: Lacking,
    list: Vec<Feature>,
}

impl Features {
    /// Finds out.
    #[must_use]
    pub fn detect(types: &KernelTypes, release: &str, rights: Rights) -> Self {
        let addresses = Addresses::read(tick_callback(types));
        let mut features = Self {
            resched_bits: ReschedBits::of(types, release),
            addresses,
            can_probe_read: is_helper_supported(
                ProgramType::RawTracePoint,
                BpfHelper::BPF_FUNC_probe_read_kernel,
            )
            .unwrap_or(false),
            can_seed_at_switch: has_storage_for_any_context(types),
            // From 7.1 on the slice timer asks on its own, and often for nothing. Before, ticks are so
            // far apart that the next event with clear flags discards what is stale.
            needs_sched_exit: types.has_tracepoint("hrtimer_rearm"),
            lacking: Lacking::of(types),
            list: Vec::new(),
        };
        features.list = features.describe(types, rights);
        features
    }

    /// All features, the required ones first.
    #[must_use]
    pub fn list(&self) -> &[Feature] {
        &self.list
    }

    /// Whether everything is there without which nothing can be recorded.
    pub fn check(&self, release: &str) -> Result<(), Error> {
        let missing = self
            .list
            .iter()
            .find(|feature| feature.is_required && feature.availability == Availability::Missing);
        match missing {
            None => Ok(()),
            Some(feature) => Err(lacking(feature, release)),
        }
    }

    /// An error unless a feature that a recording was asked for is there.
    pub fn require(&self, name: &str, release: &str) -> Result<(), Error> {
        let feature = self.list.iter().find(|feature| feature.name == name);
        match feature {
            Some(feature) if feature.availability == Availability::Missing => {
                Err(lacking(feature, release))
            }
            _ => Ok(()),
        }
    }

    /// In words, what a recording of this detail lacks here, yielders among its tasks or not.
    #[must_use]
    pub fn degraded(&self, detail: Detail, has_yielders: bool) -> Vec<String> {
        if detail < Detail::Causes {
            return vec![reduced(detail).to_owned()];
        }
        let reduced = (detail == Detail::Causes).then(|| reduced(detail).to_owned());
        let lacking = self
            .list
            .iter()
            .filter(|feature| feature.availability != Availability::Available)
            .filter(|feature| detail == Detail::Full || !OF_FULL_DETAIL.contains(&feature.name))
            .filter(|feature| has_yielders || feature.name != YIELD_CALLS)
            .map(|feature| format!("{}: {}", feature.name, feature.why));
        reduced.into_iter().chain(lacking).collect()
    }

    fn describe(&self, types: &KernelTypes, rights: Rights) -> Vec<Feature> {
        let mut list = required_features(types, rights);
        list.extend(self.causes(types, rights));
        list.extend(self.lacking.features());
        list.push(self.paths_feature(rights));
        list.extend(surroundings(rights));
        list
    }

    fn causes(&self, types: &KernelTypes, rights: Rights) -> [Feature; 4] {
        [
            self.tick_feature(rights),
            optional(
                "cause: yield",
                types.offset_of("pt_regs", arch::SYSCALL_MEMBER).is_some(),
                "by the system call's number in the saved registers",
                "the saved registers are not known",
                "x86-64 or arm64",
            ),
            optional(
                "cause: throttled",
                types.offset_of("task_struct", "throttled").is_some()
                    || types.offset_of("cfs_rq", "throttle_count").is_some(),
                "CFS bandwidth is read per task or per queue",
                "the kernel has no CFS bandwidth control",
                "a kernel with CONFIG_CFS_BANDWIDTH=y",
            ),
            self.memory_feature(rights),
        ]
    }

    fn memory_feature(&self, rights: Rights) -> Feature {
        let (why, remedy) = if rights.missing().is_empty() {
            (
                "lockdown forbids bpf_probe_read_kernel: preemption by wakeups from other CPUs and \
                 names set at run time are not seen",
                "boot without lockdown=confidentiality",
            )
        } else {
            (
                "it takes the right to load programs to find out",
                "run as root",
            )
        };
        degradable(
            "cause: remote wakeups, renames",
            self.can_probe_read,
            "kernel memory may be read",
            why,
            remedy,
        )
    }

    /// Whether the tick and the slice timer are told from other timers.
    #[must_use]
    pub fn has_timers(&self) -> bool {
        self.addresses.tick != 0 && !self.lacking.has(TIMERS[0])
    }

    fn paths_feature(&self, rights: Rights) -> Feature {
        let why = format!("{}: stacks have no names", hidden(rights));
        optional(
            KERNEL_PATHS,
            self.addresses.are_visible,
            "stacks of whom others wait for are named by /proc/kallsyms",
            &why,
            ADDRESSES_REMEDY,
        )
    }

    fn tick_feature(&self, rights: Rights) -> Feature {
        let reason = if self.lacking.has(TIMERS[0]) {
            "the kernel has no hrtimer_expire_entry and hrtimer_expire_exit"
        } else {
            hidden(rights)
        };
        let why = format!("{reason}: the end of a slice is booked as unknown");
        degradable(
            "cause: tick, hrtick",
            self.has_timers(),
            "the timers' callbacks are known by address",
            &why,
            ADDRESSES_REMEDY,
        )
    }
}

/// Why addresses read as 0.
fn hidden(rights: Rights) -> &'static str {
    if rights.has_syslog() {
        "kernel addresses are hidden (kptr_restrict is 2, or no kallsyms)"
    } else {
        "kernel addresses are hidden: CAP_SYSLOG missing"
    }
}

fn lacking(feature: &Feature, release: &str) -> Error {
    Error::Lacking {
        kernel: release.to_owned(),
        why: feature.why.clone(),
        remedy: feature.remedy.clone(),
    }
}

fn required_features(types: &KernelTypes, rights: Rights) -> Vec<Feature> {
    let missing = rights.missing();
    vec![
        required(
            "BPF programs",
            missing.is_empty(),
            "may be loaded",
            &format!("{} missing", missing.join(", ")),
            "run as root, or give the binary CAP_BPF, CAP_PERFMON and CAP_SYSLOG",
        ),
        required(
            "scheduler tracepoints",
            has_scheduler_events(types),
            "sched_switch, sched_wakeup, task_newtask and those that go with them are in BTF",
            "the kernel's BTF lacks some of them",
            "a kernel of 5.15 or later with CONFIG_DEBUG_INFO_BTF=y",
        ),
        storage_feature(
            types.has_function("bpf_task_storage_get"),
            has_storage_for_any_context(types),
        ),
        required(
            "the kernel's run delay",
            types
                .offset_of("task_struct", "sched_info.run_delay")
                .is_some(),
            "waits are compared with sched_info.run_delay",
            "sched_info.run_delay does not exist",
            "a kernel with CONFIG_SCHED_INFO (schedstats or delay accounting)",
        ),
        required(
            "clock",
            super::is_clock_the_kernels(),
            "CLOCK_MONOTONIC is the kernel's own",
            "this time namespace shifts CLOCK_MONOTONIC, which the kernel side reads as it is",
            "the host's time namespace, e.g. `nsenter --time --target 1`",
        ),
    ]
}

/// 6.4 gave task storage an allocator for any context.
fn has_storage_for_any_context(types: &KernelTypes) -> bool {
    ["bpf_ma", "use_kmalloc_nolock"]
        .iter()
        .any(|member| types.offset_of("bpf_local_storage_map", member).is_some())
}

/// Storage is created at tracepoints, where a real-time kernel before 6.4 must not allocate.
fn storage_feature(has_storage: bool, for_any_context: bool) -> Feature {
    let is_unsafe = !for_any_context && Path::new("/sys/kernel/realtime").exists();
    let bad = if is_unsafe {
        "a real-time kernel before 6.4 must not allocate task storage at tracepoints"
    } else {
        "the kernel has no BPF task storage"
    };
    required(
        "task storage",
        has_storage && !is_unsafe,
        "the kernel keeps our counters with the task",
        bad,
        if is_unsafe {
            "a real-time kernel of 6.4 or later"
        } else {
            "a kernel of 5.15 or later"
        },
    )
}

fn surroundings(rights: Rights) -> [Feature; 2] {
    [
        optional(
            "cost figures",
            rights.has_sys_admin(),
            "by the kernel's BPF statistics",
            "CAP_SYS_ADMIN missing",
            "run as root",
        ),
        degradable(
            "all tasks visible",
            super::is_init_pid_namespace(),
            "this is the initial pid namespace",
            "inside a pid namespace tasks outside it are only seen from their first switch on",
            "run in the host's pid namespace",
        ),
    ]
}

/// What a reduced recording leaves out.
fn reduced(detail: Detail) -> &'static str {
    match detail {
        Detail::Empty => "empty programs: nothing is measured",
        Detail::Basic => {
            "basic: waits are the kernel's own account, without a second one to audit it, without \
             causes and without the latency from waking; wakeups that preempt at once read as 0"
        }
        Detail::Causes => "causes: what waits were made of is not measured",
        Detail::Full => "",
    }
}

/// The tick's callback was renamed around 6.9; its new name existed before, with another meaning.
fn tick_callback(types: &KernelTypes) -> &'static str {
    if types.has_function("tick_sched_timer") {
        "tick_sched_timer"
    } else {
        "tick_nohz_handler"
    }
}

fn has_scheduler_events(types: &KernelTypes) -> bool {
    [
        "sched_switch",
        "sched_waking",
        "sched_wakeup",
        "sched_wakeup_new",
        "sched_migrate_task",
        "sched_process_exec",
        "sched_process_exit",
        "task_newtask",
        "task_rename",
    ]
    .iter()
    .all(|name| types.has_tracepoint(name))
}
