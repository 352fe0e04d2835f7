//! One suite of the Debian archive with an apt state of its own under `target/`.
//!
//! Promises: the system's apt configuration and package lists stay as they are; packages are
//! checked by apt's signatures as usual, and unpacked, never installed.
//! Leaves to others: what is taken out of the packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::sources::Source;
use crate::{project, shell};

/// How long a package list is used before it is fetched again.
const FRESH: Duration = Duration::from_hours(12);

/// A suite such as `trixie-backports` on the machine's mirror, for one architecture.
#[derive(Debug)]
pub(crate) struct Archive {
    suite: String,
    architecture: Option<&'static str>,
    state: PathBuf,
}

/// A package in one of its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Package {
    /// A line of `apt-cache madison`: `name | version | where`.
    fn from_madison(line: &str) -> Option<Self> {
        let mut fields = line.split('|').map(|field| field.trim().to_owned());
        Some(Self {
            name: fields.next()?,
            version: fields.next()?,
        })
    }
}

impl Archive {
    /// Fetches the package list of `suite`, of `architecture` or else of this machine's.
    pub(crate) fn open(suite: &str, architecture: Option<&'static str>) -> Result<Self> {
        let source = Source::for_suite(suite)?;
        let folder = architecture.map_or_else(|| suite.to_owned(), |it| format!("{suite}-{it}"));
        let state = project::target("apt").join(folder);
        for folder in ["lists/partial", "cache/archives/partial", "etc"] {
            fs::create_dir_all(state.join(folder))
                .with_context(|| format!("cannot create {} for apt", state.display()))?;
        }
        fs::write(state.join("etc/suite.sources"), stanza(&source, suite))
            .with_context(|| format!("cannot write apt's sources below {}", state.display()))?;

        let archive = Self {
            suite: suite.to_owned(),
            architecture,
            state,
        };
        archive.update()?;
        Ok(archive)
    }

    fn update(&self) -> Result<()> {
        let stamp = self.state.join("updated");
        let age = stamp
            .metadata()
            .and_then(|stamp| stamp.modified())
            .map(|time| time.elapsed());
        if let Ok(Ok(age)) = age
            && age < FRESH
        {
            return Ok(());
        }
        shell::capture(self.apt("apt-get").args(["--quiet", "update"]))
            .with_context(|| format!("cannot fetch the package list of Debian {}", self.suite))?;
        fs::write(&stamp, "").with_context(|| format!("cannot write {}", stamp.display()))
    }

    /// The names of all packages.
    pub(crate) fn packages(&self) -> Result<Vec<String>> {
        let listing = shell::capture(self.apt("apt-cache").arg("pkgnames"))?;
        Ok(listing.lines().map(str::to_owned).collect())
    }

    /// Every version that the suite has of the packages `names`.
    pub(crate) fn versions<Name: AsRef<str>>(&self, names: &[Name]) -> Result<Vec<Package>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let names = names.iter().map(AsRef::as_ref);
        let listing = shell::capture(self.apt("apt-cache").arg("madison").args(names))?;
        Ok(listing.lines().filter_map(Package::from_madison).collect())
    }

    /// Downloads `package` and unpacks it into `folder`.
    pub(crate) fn unpack(&self, package: &Package, folder: &Path) -> Result<()> {
        let downloads = self.state.join("downloads");
        for needed in [&*downloads, folder] {
            fs::create_dir_all(needed)
                .with_context(|| format!("cannot create {}", needed.display()))?;
        }
        let wanted = format!("{}={}", package.name, package.version);
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

    /// Downloads `package` and keeps its first file whose path fits `pattern` as `kept`.
    pub(crate) fn extract(&self, package: &Package, pattern: &str, kept: &Path) -> Result<()> {
        let scratch = kept.with_file_name(format!("unpack-{}-{}", package.name, package.version));
        self.unpack(package, &scratch)?;
        let mut find = Command::new("find");
        find.arg(&scratch)
            .args(["-type", "f", "-path", pattern, "-print", "-quit"]);
        let found = shell::capture(&mut find)?;
        let found = found
            .lines()
            .next()
            .with_context(|| format!("package {} has no file {pattern}", package.name))?;
        fs::rename(found, kept).with_context(|| format!("cannot keep {}", kept.display()))?;
        fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))
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
        if let Some(architecture) = self.architecture {
            for option in ["APT::Architecture", "APT::Architectures"] {
                command.arg("-o").arg(format!("{option}={architecture}"));
            }
        }
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
