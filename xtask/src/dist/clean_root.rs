//! The smallest Debian system there is, to see that the package needs nothing that only we have.
//!
//! Promises: made once by debootstrap from the machine's own mirror and kept under `target/`; every
//! command in it has a mount namespace of its own, so that what is mounted there is gone with it,
//! however it ends.
//! Leaves to others: building the package.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::debian::sources::Source;
use crate::shell;

/// Where the package is put inside the system, and what it is called there.
const PACKAGE_FILE: &str = "/schedlat.deb";
const PACKAGE: &str = "schedlat";

/// Files of which each stands for a kind of what the package brings.
const FILES: [&str; 8] = [
    "/usr/bin/schedlat",
    "/usr/share/man/man1/schedlat.1.gz",
    "/usr/share/man/man1/schedlat-probe-wake.1.gz",
    "/usr/share/bash-completion/completions/schedlat",
    "/usr/share/zsh/vendor-completions/_schedlat",
    "/usr/share/fish/vendor_completions.d/schedlat.fish",
    "/usr/share/doc/schedlat/copyright",
    "/usr/share/doc/schedlat/README.md",
];

/// The system's kernel files as seen inside, then the command.
const ENTER: &str = "mount -t proc proc \"$1/proc\" && mount --rbind /sys \"$1/sys\" && \
                     root=$1 && shift && exec chroot \"$root\" \"$@\"";

/// Asks bash's completion what can follow `schedlat pro`.
const COMPLETE: &str = ". /usr/share/bash-completion/completions/schedlat\n\
                        COMP_WORDS=(schedlat pro) COMP_CWORD=1\n\
                        _schedlat schedlat pro schedlat\n\
                        echo \"${COMPREPLY[@]}\"";

/// A system of the essential packages.
#[derive(Debug)]
pub(super) struct CleanRoot {
    folder: PathBuf,
}

impl CleanRoot {
    /// The system in `folder`, which is made when it is not there.
    pub(super) fn make(folder: &Path) -> Result<Self> {
        let root = Self {
            folder: folder.to_path_buf(),
        };
        if !folder.is_dir() {
            // Under its last name only when it is whole.
            let unfinished = folder.with_extension("unfinished");
            debootstrap(&unfinished)?;
            fs::rename(&unfinished, folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
        }
        root.purge()?;
        Ok(root)
    }

    /// Installs `package` with what the system has: a dependency it lacks is an error.
    pub(super) fn install(&self, package: &Path) -> Result<()> {
        let inside = self.folder.join(PACKAGE_FILE.trim_start_matches('/'));
        fs::copy(package, &inside).with_context(|| format!("cannot copy {}", package.display()))?;
        self.capture(&["dpkg", "--install", PACKAGE_FILE])?;
        // A minimal system may leave documentation out, so the package's own list is asked.
        let files = self.capture(&["dpkg", "--listfiles", PACKAGE])?;
        for file in FILES {
            ensure!(
                files.lines().any(|line| line == file),
                "the package lacks {file}"
            );
        }
        Ok(())
    }

    /// Holds what `doctor` says inside against what `binary` says outside, on the same kernel.
    pub(super) fn check_doctor(&self, binary: &Path) -> Result<()> {
        const DOCTOR: [&str; 3] = ["doctor", "--format", "json"];
        let inside = self.capture(&[&["schedlat"][..], &DOCTOR].concat())?;
        let inside: Value = serde_json::from_str(&inside)?;
        let outside = shell::capture(Command::new(binary).args(DOCTOR))?;
        let outside: Value = serde_json::from_str(&outside)?;
        ensure!(
            inside["can_record"] == true,
            "doctor says that record does not work: {inside}"
        );
        ensure!(
            inside["version"] == env!("CARGO_PKG_VERSION"),
            "the package has version {}",
            inside["version"]
        );
        let (inside, outside) = (features(&inside), features(&outside));
        ensure!(
            inside == outside && !inside.is_empty(),
            "doctor says {inside:?} in the clean system, and {outside:?} outside"
        );
        println!(
            "doctor: `record` works, {} features as outside",
            inside.len()
        );
        Ok(())
    }

    /// Has the package's completion complete a command.
    pub(super) fn check_completion(&self) -> Result<()> {
        let offered = self.capture(&["bash", "-c", COMPLETE])?;
        ensure!(
            offered.trim() == "probe",
            "'schedlat pro' is completed to '{}'",
            offered.trim()
        );
        Ok(())
    }

    /// Removes the package, if it is there, and sees that nothing of it stays.
    pub(super) fn purge(&self) -> Result<()> {
        self.capture(&["dpkg", "--purge", PACKAGE])?;
        for file in FILES {
            let path = self.folder.join(file.trim_start_matches('/'));
            if path.exists() {
                bail!("{file} is still there after the package was purged");
            }
        }
        Ok(())
    }

    fn capture(&self, command: &[&str]) -> Result<String> {
        shell::capture(
            Command::new("unshare")
                .args(["--mount", "--propagation", "private"])
                .args(["sh", "-c", ENTER, "enter"])
                .arg(&self.folder)
                .args(command)
                .env("LC_ALL", "C")
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    }
}

/// Each feature that `doctor` lists, with its availability.
fn features(diagnosis: &Value) -> BTreeMap<String, String> {
    let list = diagnosis["features"].as_array();
    let pair = |it: &Value| {
        Some((
            it["name"].as_str()?.into(),
            it["availability"].as_str()?.into(),
        ))
    };
    list.into_iter().flatten().filter_map(pair).collect()
}

fn debootstrap(folder: &Path) -> Result<()> {
    let suite = codename()?;
    let source = Source::for_suite(&suite)?;
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    println!("making a clean Debian {suite}");
    let mut command = Command::new("debootstrap");
    command.arg("--variant=minbase");
    match &source.signed_by {
        Some(keyring) => command.arg(format!("--keyring={keyring}")),
        None if source.trusted => command.arg("--no-check-gpg"),
        None => &mut command,
    };
    shell::capture(command.arg(&suite).arg(folder).arg(&source.uri))
        .map(drop)
        .context(
            "cannot make a clean system\nhelp: the mirror in apt's sources has to be reachable",
        )
}

/// The release of Debian that runs here, whose libraries the binary was linked with.
fn codename() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .context("/etc/os-release names no release\nhelp: build the package on Debian")?;
    Ok(codename.trim_matches('"').to_owned())
}
