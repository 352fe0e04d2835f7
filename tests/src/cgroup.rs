//! Control groups of a test's own, v1 or v2, removed when dropped.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};
use procfs::process::{MountInfo, Process};

use crate::{load::Load, workload::kill};

/// A group that exists as long as this value.
#[derive(Debug)]
pub struct Cgroup {
    directory: PathBuf,
    is_v2: bool,
}

/// A group's own account of its throttling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttling {
    /// Times its quota ran out.
    pub count: u64,
    /// Time that a CPU's worth of it was stopped.
    pub sum_ns: u64,
}

impl Cgroup {
    /// A group in the hierarchy of the CPU controller, v1 or v2.
    pub fn with_cpu_controller(name: &str) -> Result<Self> {
        Self::with_controller("cpu", name)
    }

    /// A group that may use so much memory, that of the kernel on its behalf included.
    pub fn with_memory_limit(name: &str, bytes: u64) -> Result<Self> {
        let group = Self::with_controller("memory", name)?;
        let file = if group.is_v2 {
            "memory.max"
        } else {
            "memory.limit_in_bytes"
        };
        group.write(file, &bytes.to_string())?;
        Ok(group)
    }

    fn with_controller(controller: &str, name: &str) -> Result<Self> {
        if let Some(root) = mounted(|mount| mount.super_options.contains_key(controller))? {
            return Self::below(&root, name, false);
        }
        let root = mounted(is_v2)?.context("no cgroups are mounted")?;
        fs::write(
            root.join("cgroup.subtree_control"),
            format!("+{controller}"),
        )
        .with_context(|| format!("cannot enable the {controller} controller"))?;
        Self::below(&root, name, true)
    }

    /// A group of the CPU controller for loads that other work on the host shall hardly disturb.
    pub fn preferred(name: &str) -> Result<Self> {
        let group = Self::with_cpu_controller(name)?;
        group.prefer()?;
        Ok(group)
    }

    /// A group in the v2 hierarchy, with or without controllers.
    pub fn v2(name: &str) -> Result<Self> {
        let root = mounted(is_v2)?.context("no v2 hierarchy is mounted")?;
        Self::below(&root, name, true)
    }

    /// A group inside this one.
    pub fn child(&self, name: &str) -> Result<Self> {
        Self::make(self.directory.join(name), self.is_v2)
    }

    fn below(root: &Path, name: &str, is_v2: bool) -> Result<Self> {
        let unique = format!("schedlat-test-{}-{name}", std::process::id());
        Self::make(root.join(unique), is_v2)
    }

    fn make(directory: PathBuf, is_v2: bool) -> Result<Self> {
        fs::create_dir(&directory)
            .with_context(|| format!("cannot make the cgroup {}", directory.display()))?;
        Ok(Self { directory, is_v2 })
    }

    /// Its directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts a workload in it.
    pub fn workload(&self, line: &str) -> Result<Load> {
        Load::workload(&format!("{line} --cgroup {}", self.directory.display()))
    }

    /// Runs a program as a member from its first instruction.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("sh");
        let join = "echo $$ > \"$1\" && shift && exec \"$@\"";
        command.args(["-c", join, "sh"]);
        command
            .arg(self.directory.join("cgroup.procs"))
            .arg(program);
        command
    }

    /// Moves a process into it, with all its threads.
    pub fn adopt(&self, pid: u32) -> Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Limits it to `quota` of every `period`.
    pub fn limit(&self, quota: Duration, period: Duration) -> Result<()> {
        let (quota, period) = (quota.as_micros(), period.as_micros());
        if self.is_v2 {
            return self.write("cpu.max", &format!("{quota} {period}"));
        }
        self.write("cpu.cfs_period_us", &period.to_string())?;
        self.write("cpu.cfs_quota_us", &quota.to_string())
    }

    /// Prefers it to everything else, so that nothing but its limit holds it back.
    pub fn prefer(&self) -> Result<()> {
        if self.is_v2 {
            self.write("cpu.weight", "10000")
        } else {
            self.write("cpu.shares", "262144")
        }
    }

    /// How often and how long it was throttled so far.
    pub fn throttling(&self) -> Result<Throttling> {
        let stat = fs::read_to_string(self.directory.join("cpu.stat"))?;
        let number = |key: &str| -> Option<u64> {
            stat.lines()
                .find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
        };
        let sum_ns = number("throttled_time ")
            .or_else(|| number("throttled_usec ").map(|micros| micros * 1000))
            .context("no throttled time in cpu.stat")?;
        let count = number("nr_throttled ").context("no nr_throttled in cpu.stat")?;
        Ok(Throttling { count, sum_ns })
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        fs::write(self.directory.join(file), value)
            .with_context(|| format!("cannot write {value} to {file}"))
    }

    fn members(&self) -> Vec<u32> {
        let procs = fs::read_to_string(self.directory.join("cgroup.procs")).unwrap_or_default();
        procs.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A dying member keeps the group busy for a moment.
        for _ in 0..200 {
            if fs::remove_dir(&self.directory).is_ok() {
                return;
            }
            for pid in self.members() {
                // It may be gone already.
                drop(kill(pid));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn is_v2(mount: &MountInfo) -> bool {
    mount.fs_type == "cgroup2"
}

fn mounted(wanted: impl Fn(&MountInfo) -> bool) -> Result<Option<PathBuf>> {
    let mounts = Process::myself()?
        .mountinfo()
        .context("cannot read the mounts")?;
    let groups = mounts
        .0
        .into_iter()
        .filter(|mount| mount.fs_type.starts_with("cgroup"));
    Ok(groups
        .into_iter()
        .find(|mount| wanted(mount))
        .map(|mount| mount.mount_point))
}
