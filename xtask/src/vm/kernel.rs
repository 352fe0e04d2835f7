//! Debian's kernels: which package is the newest of a series, and its image.
//!
//! Promises: an image is downloaded, or built, once and kept under `target/vm`.
//! Leaves to others: the archive ([`crate::debian::archive`]), and building ([`lockdep`]).

use std::cmp::Ordering;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use super::lockdep;
use super::plan::{Build, Plan};
use crate::debian::archive::{Archive, Package};
use crate::project;

/// A kernel that can be booted.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Version of its package and its build, as in `6.1.176-1-cloud`.
    pub(crate) version: String,
    pub(crate) image: PathBuf,
}

/// Finds the newest kernel that the plan asks for, and downloads it.
pub(crate) fn fetch(plan: Plan<'_>) -> Result<Kernel> {
    let series = plan.series;
    let mut newest: Option<(Archive, Package)> = None;
    let mut unreachable = Vec::new();
    for suite in suites(series) {
        let archive = match Archive::open(suite, Some(plan.architecture.name())) {
            Ok(archive) => archive,
            Err(error) => {
                unreachable.push(format!("{error:#}"));
                continue;
            }
        };
        let best = newest_image(&archive, plan)?;
        if let Some(package) = best
            && newest
                .as_ref()
                .is_none_or(|(_, known)| is_newer(&package, known))
        {
            newest = Some((archive, package));
        }
    }
    let Some((archive, package)) = newest else {
        bail!(
            "no kernel {series}{}-{} in Debian {}\n{}",
            plan.build.ending(),
            plan.architecture.name(),
            suites(series).join(", "),
            unreachable.join("\n")
        );
    };
    download(&archive, &package, plan)
}

/// The suites that may have `series`; a series that left stable lives in the archive's past.
fn suites(series: &str) -> &'static [&'static str] {
    match series {
        // Past its support a release's security archive loses its packages before its lists.
        "5.10" => &["bullseye"],
        "6.1" => &["bookworm-security", "bookworm"],
        "6.12" => &[
            "trixie-security",
            "trixie",
            "bookworm-security",
            "bookworm-backports",
        ],
        _ => &["sid", "experimental"],
    }
}

fn newest_image(archive: &Archive, plan: Plan<'_>) -> Result<Option<Package>> {
    let names: Vec<_> = archive
        .packages()?
        .into_iter()
        .filter(|name| has_kernel(name, plan))
        .collect();
    let is_wanted = |package: &Package| {
        plan.series == "newest" || package.version.starts_with(&format!("{}.", plan.series))
    };
    let packages = archive.versions(&names)?.into_iter().filter(is_wanted);
    Ok(packages.reduce(|best, package| {
        if is_newer(&package, &best) {
            package
        } else {
            best
        }
    }))
}

/// Whether the package has the image, or the sources to build it from.
///
/// From 7.2 on the image is in a package apart, and `linux-image-…` only depends on it.
fn has_kernel(name: &str, plan: Plan<'_>) -> bool {
    if plan.build == Build::Lockdep {
        return name == format!("linux-source-{}", plan.series);
    }
    let signed = name.strip_suffix("-unsigned").unwrap_or(name);
    let version = ["linux-binary-unsigned-", "linux-binary-", "linux-image-"]
        .iter()
        .find_map(|prefix| signed.strip_prefix(prefix));
    signed.ends_with(&format!(
        "{}-{}",
        plan.build.ending(),
        plan.architecture.name()
    )) && version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_newer(left: &Package, right: &Package) -> bool {
    match compare_versions(&left.version, &right.version) {
        Ordering::Equal => left.name.contains("binary") && !right.name.contains("binary"),
        order => order == Ordering::Greater,
    }
}

/// Debian's own order, in which `7.3~rc7` comes before `7.3`.
fn compare_versions(left: &str, right: &str) -> Ordering {
    let holds = |relation| {
        let mut dpkg = Command::new("dpkg");
        dpkg.args(["--compare-versions", left, relation, right]);
        dpkg.status().is_ok_and(|status| status.success())
    };
    if holds("eq") {
        Ordering::Equal
    } else if holds("gt") {
        Ordering::Greater
    } else {
        Ordering::Less
    }
}

fn download(archive: &Archive, package: &Package, plan: Plan<'_>) -> Result<Kernel> {
    let kernels = project::target("vm").join("kernels");
    let (build, architecture) = (plan.build.ending(), plan.architecture.suffix());
    let version = format!("{}{build}{architecture}", package.version);
    let made_with = match plan.build {
        Build::Lockdep => lockdep::digest(),
        Build::Cloud | Build::RealTime => String::new(),
    };
    let image = kernels.join(format!("vmlinuz-{version}{made_with}"));
    if !image.is_file() {
        match plan.build {
            Build::Lockdep => lockdep::build(archive, package, plan.architecture, &image)?,
            Build::Cloud | Build::RealTime => archive.extract(package, "*/vmlinuz*", &image)?,
        }
    }
    Ok(Kernel { version, image })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Option<&str>) {
        for machine in ["newest", "newest-rt", "newest-arm64", "newest-rt-arm64"] {
            assert_eq!(
                has_kernel(name, Plan::of(machine, None)),
                expected == Some(machine),
                "{name} for {machine}"
            );
        }
    }

    #[test]
    fn packages_with_an_image_of_the_build_are_taken() {
        let cloud = Some("newest");
        check("linux-image-6.1.0-50-cloud-amd64", cloud);
        check("linux-image-6.12.117+deb13-cloud-amd64-unsigned", cloud);
        check("linux-binary-7.3-cloud-amd64", cloud);
        check("linux-binary-unsigned-7.3-cloud-amd64", cloud);
        let real_time = Some("newest-rt");
        check("linux-image-6.1.0-50-rt-amd64", real_time);
        check("linux-binary-unsigned-7.3-rt-amd64", real_time);
        let arm64 = "linux-image-6.12.118+deb13-cloud-arm64-unsigned";
        check(arm64, Some("newest-arm64"));
        check("linux-image-6.1.0-57-rt-arm64", Some("newest-rt-arm64"));
    }

    #[test]
    fn other_builds_and_metapackages_are_not() {
        check("linux-image-6.1.0-50-amd64", None);
        check("linux-image-cloud-amd64", None);
        check("linux-image-6.12.118+deb13-arm64-16k", None);
        check("linux-image-6.12-cloud-amd64-dbg", None);
        check("linux-headers-6.1.0-50-cloud-amd64", None);
        check("linux-image-6.1.0-50-cloud-amd64-dbg", None);
    }
}
