//! Making a machine of a kernel and an initramfs: file systems, devices, the loopback, and its end.

use std::{
    fs,
    io::{ErrorKind, Read as _},
    os::unix::fs::OpenOptionsExt as _,
};

use anyhow::{Context as _, Result};
use rustix::{
    mount::{MountFlags, UnmountFlags, mount, unmount},
    system::{RebootCommand, reboot},
};

/// Source and type of each file system, and where it belongs.
const MOUNTS: [(&str, &str); 6] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("debugfs", DEBUGFS),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("cgroup2", "/sys/fs/cgroup"),
];

/// Mounts what schedlat and its loads need, and tells the tests where the binaries are.
pub(super) fn set_up() -> Result<()> {
    for (kind, target) in MOUNTS {
        fs::create_dir_all(target).with_context(|| format!("cannot make {target}"))?;
        match mount(kind, target, kind, MountFlags::empty(), None) {
            // The kernel may have mounted devtmpfs itself.
            Ok(()) | Err(rustix::io::Errno::BUSY) => {}
            Err(cause) => return Err(cause).with_context(|| format!("cannot mount {target}")),
        }
    }
    // Absent without CONFIG_SECURITYFS, and then there is no lockdown to test.
    let security = "/sys/kernel/security";
    if let Err(cause) = mount(
        "securityfs",
        security,
        "securityfs",
        MountFlags::empty(),
        None,
    ) {
        super::say(&format!("guest: no securityfs: {cause}"));
    }
    for (variable, program) in [
        ("SCHEDLAT_BIN", "/bin/schedlat"),
        ("WORKLOAD_BIN", "/bin/workload"),
        ("PATH", "/bin"),
    ] {
        // SAFETY: /init has a single thread so far.
        unsafe { std::env::set_var(variable, program) };
    }
    Ok(())
}

/// Takes debugfs away until this is dropped.
pub(super) struct WithoutDebugfs;

const DEBUGFS: &str = "/sys/kernel/debug";

impl WithoutDebugfs {
    pub(super) fn take() -> Result<Self> {
        // The kernel mounts tracefs inside it.
        unmount(DEBUGFS, UnmountFlags::DETACH).context("cannot unmount debugfs")?;
        Ok(Self)
    }
}

impl Drop for WithoutDebugfs {
    fn drop(&mut self) {
        // Without it the checks that follow fail, and say so.
        mount("debugfs", DEBUGFS, "debugfs", MountFlags::empty(), None).unwrap_or_default();
    }
}

/// What the machine was booted for, as in `schedlat.KEY=` of the command line.
pub(super) fn asked(key: &str) -> Result<Option<String>> {
    let words = fs::read_to_string("/proc/cmdline").context("cannot read /proc/cmdline")?;
    let prefix = format!("schedlat.{key}=");
    let mut asked = words
        .split_whitespace()
        .filter_map(|word| word.strip_prefix(&prefix));
    Ok(asked.next().map(str::to_owned))
}

/// Release of the running kernel.
pub(super) fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

/// The first number of the kernel's release.
pub(super) fn kernel_major() -> Result<u32> {
    let release = kernel_release();
    let major = release.split('.').next().unwrap_or_default();
    let named = || format!("'{release}' is no release");
    major.parse().with_context(named)
}

/// Whether the kernel is built with `PREEMPT_RT`.
pub(super) fn is_real_time() -> Result<bool> {
    Ok(fs::exists("/sys/kernel/realtime")?)
}

/// What the kernel complained of after the first `n_before` records of its log.
pub(super) fn complaints(n_before: usize) -> Result<Vec<String>> {
    let words = ["BUG:", "WARNING:", "Oops", "Kernel panic"];
    let is_complaint = |line: &String| words.iter().any(|word| line.contains(word));
    let log = kernel_log()?.into_iter().skip(n_before);
    Ok(log.filter(is_complaint).collect())
}

/// Everything the kernel has logged so far.
pub(super) fn kernel_log() -> Result<Vec<String>> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits())?;
    let mut options = fs::OpenOptions::new();
    let mut log = options
        .read(true)
        .custom_flags(nonblocking)
        .open("/dev/kmsg")
        .context("cannot open the kernel's log")?;
    let mut lines = Vec::new();
    let mut record = [0_u8; 8192];
    loop {
        match log.read(&mut record) {
            Ok(0) => return Ok(lines),
            Ok(n) => lines.push(String::from_utf8_lossy(&record[..n]).into_owned()),
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(lines),
            // Records were overwritten while they were read; the next read goes on after them.
            Err(cause) if cause.kind() == ErrorKind::BrokenPipe => {}
            Err(cause) => return Err(cause).context("cannot read the kernel's log"),
        }
    }
}

/// Switches the machine off.
pub(super) fn power_off() -> Result<()> {
    rustix::fs::sync();
    reboot(RebootCommand::PowerOff).context("cannot power off")
}
