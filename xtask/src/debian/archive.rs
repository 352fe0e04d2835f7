//! One suite of the Debian archive with an apt state of its own under `target/`.
//!
//! Promises: the system's apt configuration and package lists stay as they are; packages are
//! checked by apt's signatures as usual, and unpacked, never installed.
//! Leaves to others: what is taken out of the packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::sources::Source;
use crate::{project, shell};

/// A suite such as `trixie-backports` on the machine's mirror.
#[derive(Debug)]
pub(crate) struct Archive {
    suite: String,
    state: PathBuf,
}

impl Archive {
    /// Fetches the package list of `suite`.
    pub(crate) fn open(suite: &str) -> Result<Self> {
        let source = Source::for_suite(suite)?;
        let state = project::target("apt").join(suite);
        for folder in ["lists/partial", "cache/archives/partial", "etc"] {
            fs::create_dir_all(state.join(folder))
                .with_context(|| format!("cannot create {} for apt", state.display()))?;
        }
        fs::write(state.join("etc/suite.sources"), stanza(&source, suite))
            .with_context(|| format!("cannot write apt's sources below {}", state.display()))?;

        let archive = Self {
            suite: suite.to_owned(),
            state,
        };
        shell::capture(archive.apt("apt-get").args(["--quiet", "update"]))
            .with_context(|| format!("cannot fetch the package list of Debian {suite}"))?;
        Ok(archive)
    }

    /// The versions of `package`, as the suite lists them.
    pub(crate) fn versions(&self, package: &str) -> Result<Vec<String>> {
        let listing = shell::capture(self.apt("apt-cache").args(["madison", package]))?;
        let version = |line: &str| line.split('|').nth(1).map(|field| field.trim().to_owned());
        Ok(listing.lines().filter_map(version).collect())
    }

    /// The names of the packages that contain `part`.
    pub(crate) fn packages(&self, part: &str) -> Result<Vec<String>> {
        let listing = shell::capture(self.apt("apt-cache").args(["pkgnames"]))?;
        Ok(listing
            .lines()
            .filter(|name| name.contains(part))
            .map(str::to_owned)
            .collect())
    }

    /// Downloads `package` in `version` and unpacks it into `folder`.
    pub(crate) fn unpack(&self, package: &str, version: &str, folder: &Path) -> Result<()> {
        let downloads = self.state.join("downloads");
        for needed in [&*downloads, folder] {
            fs::create_dir_all(needed)
                .with_context(|| format!("cannot create {}", needed.display()))?;
        }
        let wanted = format!("{package}={version}");
        shell::capture(
            self.apt("apt-get")
                .current_dir(&downloads)
                .args(["download", &wanted]),
        )
        .with_context(|| format!("cannot download {wanted} from Debian {}", self.suite))?;
        for entry in fs::read_dir(&downloads)? {
            let deb = entry?.path();
            shell::run(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(folder))?;
            fs::remove_file(&deb)?;
        }
        Ok(())
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C");
        for (option, path) in [
            ("Dir::State", self.state.clone()),
            ("Dir::State::status", "/dev/null".into()),
            ("Dir::Cache", self.state.join("cache")),
            ("Dir::Etc::SourceList", "/dev/null".into()),
            ("Dir::Etc::SourceParts", self.state.join("etc")),
        ] {
            command
                .arg("-o")
                .arg(format!("{option}={}", path.display()));
        }
        // The folders below target/ need not be readable for apt's own user.
        command.args(["-o", "APT::Sandbox::User=root"]);
        command
    }
}

fn stanza(source: &Source, suite: &str) -> String {
    let mut lines = vec![
        "Types: deb".to_owned(),
        format!("URIs: {}", source.uri),
        format!("Suites: {suite}"),
        "Components: main".to_owned(),
    ];
    lines.extend(
        source
            .signed_by
            .iter()
            .map(|keyring| format!("Signed-By: {keyring}")),
    );
    if source.trusted {
        lines.push("Trusted: yes".to_owned());
    }
    lines.join("\n") + "\n"
}
