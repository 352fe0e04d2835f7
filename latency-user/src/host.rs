//! Where a recording is made: the facts about kernel and machine that its figures depend on.
//!
//! Reads /proc, /sys and the CPU's own identification, and never fails: what cannot be found is
//! said to be unknown. Touches debugfs only where the kernel is known not to be locked down, since
//! a refused look there is logged each time. Also holds the one reader of the wall clock.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use procfs::ConfigSetting;
use rustix::time::{ClockId, clock_gettime};

use crate::analysis::escape;
use crate::cpus::CpuList;
use crate::model::Host;

const UNKNOWN: &str = "unknown";

/// Kernel options and the preemption model each sets; a kernel has one of them.
const MODELS: [(&str, &str); 4] = [
    ("CONFIG_PREEMPT_NONE", "none"),
    ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
    ("CONFIG_PREEMPT_LAZY", "lazy"),
    ("CONFIG_PREEMPT", "full"),
];

/// Boot parameters that change when or where tasks run, or what a clock reading costs.
const BOOT_PARAMETERS: [&str; 20] = [
    "clocksource",
    "cpuidle.off",
    "hz",
    "idle",
    "intel_idle.max_cstate",
    "irqaffinity",
    "isolcpus",
    "kthread_cpus",
    "maxcpus",
    "mitigations",
    "nohz",
    "nohz_full",
    "nosmt",
    "nr_cpus",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "skew_tick",
    "threadirqs",
    "tsc",
];

/// Names of hypervisors by the signature they give to a guest.
const HYPERVISORS: [(&str, &str); 8] = [
    ("KVMKVMKVM", "KVM"),
    ("Linux KVM Hv", "KVM"),
    ("TCGTCGTCGTCG", "QEMU (TCG)"),
    ("Microsoft Hv", "Hyper-V"),
    ("VMwareVMware", "VMware"),
    ("XenVMMXenVMM", "Xen"),
    ("VBoxVBoxVBox", "VirtualBox"),
    ("bhyve bhyve ", "bhyve"),
];

/// The kernel's own configuration; empty where it is not published.
type Config = HashMap<String, ConfigSetting>;

/// Looks at this host.
#[must_use]
pub fn collect() -> Host {
    let uname = rustix::system::uname();
    let config = procfs::kernel_config().unwrap_or_default();
    let boot_parameters = procfs::cmdline().unwrap_or_default();
    let lockdown = lockdown(text_of("/sys/kernel/security/lockdown").as_deref(), &config);
    let preemption = preemption(&PreemptionEvidence {
        is_realtime: text_of("/sys/kernel/realtime").is_some_and(|flag| flag == "1"),
        version: &uname.version().to_string_lossy(),
        config: &config,
        boot_parameters: &boot_parameters,
        // The kernel prints a line for each refused look at debugfs.
        debugfs: (lockdown == "none")
            .then(|| text_of("/sys/kernel/debug/sched/preempt"))
            .flatten()
            .as_deref(),
    });
    let clocksource = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let mounts = text_of("/proc/self/mounts").unwrap_or_default();
    Host {
        kernel: uname.release().to_string_lossy().into_owned(),
        arch: uname.machine().to_string_lossy().into_owned(),
        n_cpus: u32::try_from(CpuList::online().as_slice().len()).unwrap_or(0),
        hz: hz(&config),
        preemption,
        hypervisor: hypervisor(),
        clocksource: text_of(clocksource).unwrap_or_else(|| UNKNOWN.to_owned()),
        cgroup_mode: cgroup_mode(&mounts).to_owned(),
        lockdown,
        boot_parameters: scheduling_parameters(&boot_parameters),
    }
}

/// A reading of `CLOCK_MONOTONIC`, the clock of all figures.
#[must_use]
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// A reading of a clock of the kernel's.
#[must_use]
pub fn clock_ns(clock: ClockId) -> u64 {
    Duration::try_from(clock_gettime(clock))
        .ok()
        .and_then(|now| u64::try_from(now.as_nanos()).ok())
        .unwrap_or(0)
}

/// Nanoseconds since 1970, for people to find a recording again. No figure is made from it.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one reader of the wall clock; it dates a recording and measures nothing"
)]
pub fn wall_clock_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// A small file without the line's end; none if it cannot be read.
fn text_of(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim_end().to_owned())
}

fn hz(config: &Config) -> Option<u32> {
    match config.get("CONFIG_HZ") {
        Some(ConfigSetting::Value(hz)) => hz.parse().ok(),
        _ => None,
    }
}

fn is_set(config: &Config, option: &str) -> bool {
    matches!(config.get(option), Some(ConfigSetting::Yes))
}

/// What is known of the preemption model, strongest first.
struct PreemptionEvidence<'a> {
    is_realtime: bool,
    /// Choices with the current one in parentheses.
    debugfs: Option<&'a str>,
    boot_parameters: &'a [String],
    config: &'a Config,
    /// Version of the build, which names what is compiled in.
    version: &'a str,
}

fn preemption(evidence: &PreemptionEvidence<'_>) -> String {
    let PreemptionEvidence {
        is_realtime,
        debugfs,
        boot_parameters,
        config,
        version,
    } = *evidence;
    if is_realtime || version.contains("PREEMPT_RT") {
        return "rt".to_owned();
    }
    let configured = MODELS
        .into_iter()
        .find(|(option, _)| is_set(config, option));
    let configured = configured.map(|(_, model)| model);
    if !version.contains("PREEMPT_DYNAMIC") && !is_set(config, "CONFIG_PREEMPT_DYNAMIC") {
        let built = if version.contains("PREEMPT") {
            "full"
        } else {
            "none or voluntary"
        };
        return configured.unwrap_or(built).to_owned();
    }
    if let Some(current) = debugfs.and_then(|choices| enclosed(choices, '(', ')')) {
        return format!("{current} (dynamic)");
    }
    let booted = boot_parameters
        .iter()
        .rev()
        .find_map(|word| word.strip_prefix("preempt="));
    let model = booted.or(configured).unwrap_or(UNKNOWN);
    format!("{} (dynamic)", escape::text(model))
}

/// The choice in brackets of a list of choices.
fn enclosed(choices: &str, open: char, close: char) -> Option<&str> {
    let (_, from_open) = choices.split_once(open)?;
    from_open.split_once(close).map(|(choice, _)| choice)
}

fn lockdown(choices: Option<&str>, config: &Config) -> String {
    let is_possible = config.is_empty() || is_set(config, "CONFIG_SECURITY_LOCKDOWN_LSM");
    let unseen = if is_possible { UNKNOWN } else { "none" };
    choices
        .and_then(|choices| enclosed(choices, '[', ']'))
        .unwrap_or(unseen)
        .to_owned()
}

/// Which cgroup hierarchies are mounted, from the lines of `mounts`.
fn cgroup_mode(mounts: &str) -> &'static str {
    let has = |kind| {
        mounts
            .lines()
            .any(|line| line.split(' ').nth(2) == Some(kind))
    };
    match (has("cgroup"), has("cgroup2")) {
        (true, true) => "hybrid",
        (true, false) => "v1",
        (false, true) => "v2",
        (false, false) => "none",
    }
}

fn scheduling_parameters(words: &[String]) -> Vec<String> {
    let matters = |word: &&String| {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        BOOT_PARAMETERS.contains(&name)
    };
    words
        .iter()
        .filter(matters)
        .map(|word| escape::text(word))
        .collect()
}

/// The hypervisor by the signature that it shows to its guests.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> String {
    use core::arch::x86_64::__cpuid;

    /// Bit of leaf 1, ecx, which a hypervisor sets.
    const IS_GUEST: u32 = 1 << 31;
    if __cpuid(1).ecx & IS_GUEST == 0 {
        return "none".to_owned();
    }
    let leaf = __cpuid(0x4000_0000);
    let signature = [leaf.ebx, leaf.ecx, leaf.edx]
        .map(u32::to_le_bytes)
        .concat();
    hypervisor_name(&signature)
}

/// The hypervisor by what the device tree or Xen says. Others leave no trace that is the same
/// everywhere, so nothing found means nothing known.
#[cfg(not(target_arch = "x86_64"))]
fn hypervisor() -> String {
    if text_of("/sys/hypervisor/type").is_some_and(|kind| kind == "xen") {
        return "Xen".to_owned();
    }
    let compatible = text_of("/proc/device-tree/hypervisor/compatible").unwrap_or_default();
    if compatible.contains("kvm") {
        "KVM".to_owned()
    } else {
        UNKNOWN.to_owned()
    }
}

#[cfg_attr(
    not(any(target_arch = "x86_64", test)),
    expect(dead_code, reason = "only x86 has signatures")
)]
fn hypervisor_name(signature: &[u8]) -> String {
    let shown = escape::bytes(signature);
    let known = HYPERVISORS
        .into_iter()
        .find(|(signature, _)| *signature == shown);
    match known {
        Some((_, name)) => name.to_owned(),
        None if shown.trim().is_empty() => UNKNOWN.to_owned(),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(options: &[&str]) -> Config {
        options
            .iter()
            .map(|option| ((*option).to_owned(), ConfigSetting::Yes))
            .collect()
    }

    #[test]
    fn this_host_can_be_looked_at() {
        let host = collect();
        assert!(host.n_cpus > 0 && !host.kernel.is_empty());
        assert!(wall_clock_ns() > 1_700_000_000_000_000_000);
    }

    #[test]
    fn hz_is_that_of_the_configuration() {
        let value = ConfigSetting::Value("250".into());
        assert_eq!(hz(&HashMap::from([("CONFIG_HZ".into(), value)])), Some(250));
        assert_eq!(hz(&config(&["CONFIG_HZ_250"])), None);
    }

    #[track_caller]
    fn check_preemption(evidence: &PreemptionEvidence<'_>, expected: &str) {
        assert_eq!(preemption(evidence), expected);
    }

    fn dynamic<'a>(config: &'a Config, words: &'a [String]) -> PreemptionEvidence<'a> {
        PreemptionEvidence {
            is_realtime: false,
            debugfs: None,
            boot_parameters: words,
            config,
            version: "#1 SMP PREEMPT_DYNAMIC @0",
        }
    }

    #[test]
    fn dynamic_preemption_is_what_was_chosen_last() {
        let config = config(&["CONFIG_PREEMPT_NONE", "CONFIG_PREEMPT_DYNAMIC"]);
        let words = ["preempt=full".to_owned(), "preempt=lazy".to_owned()];
        check_preemption(&dynamic(&config, &[]), "none (dynamic)");
        check_preemption(&dynamic(&config, &words), "lazy (dynamic)");
        let debugfs = Some("none (voluntary) full");
        let looked_at = PreemptionEvidence {
            debugfs,
            ..dynamic(&config, &words)
        };
        check_preemption(&looked_at, "voluntary (dynamic)");
        check_preemption(&dynamic(&Config::new(), &[]), "unknown (dynamic)");
    }

    #[test]
    fn fixed_preemption_is_that_of_the_build() {
        let (no_config, voluntary) = (Config::new(), config(&["CONFIG_PREEMPT_VOLUNTARY"]));
        let fixed = |config, version| PreemptionEvidence {
            version,
            ..dynamic(config, &[])
        };
        check_preemption(&fixed(&voluntary, "#1 SMP Debian"), "voluntary");
        check_preemption(&fixed(&no_config, "#1 SMP PREEMPT Debian"), "full");
        check_preemption(&fixed(&no_config, "#1 SMP Debian"), "none or voluntary");
        check_preemption(&fixed(&no_config, "#1 SMP PREEMPT_RT Debian"), "rt");
    }

    #[test]
    fn lockdown_is_none_only_when_that_is_known() {
        let choices = Some("none [integrity] confidentiality");
        assert_eq!(lockdown(choices, &Config::new()), "integrity");
        assert_eq!(
            lockdown(None, &config(&["CONFIG_SECURITY_LOCKDOWN_LSM"])),
            UNKNOWN
        );
        assert_eq!(lockdown(None, &config(&["CONFIG_SMP"])), "none");
        assert_eq!(lockdown(None, &Config::new()), UNKNOWN);
    }

    #[test]
    fn cgroup_mode_is_what_is_mounted() {
        let v1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n";
        let v2 = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(cgroup_mode(v1), "v1");
        assert_eq!(cgroup_mode(v2), "v2");
        assert_eq!(cgroup_mode(&[v1, v2].concat()), "hybrid");
        assert_eq!(cgroup_mode("tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"), "none");
    }

    #[test]
    fn only_parameters_that_matter_are_kept() {
        let words = [
            "quiet",
            "isolcpus=1",
            "threadirqs",
            "nohz_full=1-3",
            "preemption=x",
        ];
        let words = words.map(str::to_owned);
        assert_eq!(
            scheduling_parameters(&words),
            ["isolcpus=1", "threadirqs", "nohz_full=1-3"]
        );
    }

    #[test]
    fn hypervisor_is_named_by_its_signature() {
        assert_eq!(hypervisor_name(b"KVMKVMKVM\0\0\0"), "KVM");
        assert_eq!(hypervisor_name(b"bhyve bhyve "), "bhyve");
        assert_eq!(hypervisor_name(b"ACRNACRNACRN"), "ACRNACRNACRN");
        assert_eq!(hypervisor_name(&[0; 12]), UNKNOWN);
    }
}
