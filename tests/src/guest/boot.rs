//! Making a machine of a kernel and an initramfs: file systems, devices, the loopback, and its end.

use std::{
    fs,
    io::{ErrorKind, Read as _},
    os::unix::fs::OpenOptionsExt as _,
};

use anyhow::{Context as _, Result};
use rustix::{
    mount::{MountFlags, mount},
    system::{RebootCommand, reboot},
};

/// Source and type of each file system, and where it belongs.
const MOUNTS: [(&str, &str); 5] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
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

/// Release of the running kernel.
pub(super) fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
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
