//! What an emulated machine boots: the guest as `/init`, schedlat, the workloads and a busybox.
//!
//! Promises: one for each architecture, with everything that its programs need, their shared libraries
//! included.
//! Leaves to others: mounting and running, which is the guest's part.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use cpio::NewcBuilder;

use super::architecture::Architecture;
use crate::debian::archive::Archive;
use crate::{project, release, shell};

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// The suite whose busybox it is, which any kernel runs.
const SUITE: &str = "bookworm";

/// Builds the programs for `architecture` and writes the archive, whose path is returned.
pub(crate) fn build(architecture: Architecture) -> Result<PathBuf> {
    let programs = release::build_for(architecture.target())?;
    let built = [
        ("init", &programs.guest),
        ("bin/schedlat", &programs.schedlat),
        ("bin/workload", &programs.workload),
    ];
    let image = project::target("vm").join(format!("initramfs{}.cpio", architecture.suffix()));
    let scratch = image.with_extension("d");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot create {}", scratch.display()))?;

    let mut contents = vec![("bin/busybox".to_owned(), busybox(architecture)?)];
    for (name, program) in built {
        // Programs for other architectures are static.
        if architecture.target().is_none() {
            for library in shared_libraries(program)? {
                let inside = library.to_string_lossy().trim_start_matches('/').to_owned();
                contents.push((inside, library));
            }
        }
        let copy = scratch.join(name.replace('/', "-"));
        let mut strip = Command::new(architecture.strip());
        // Debug information is most of a program, and the machine's memory is small.
        shell::run(strip.arg("-o").arg(&copy).arg(program))?;
        contents.push((name.to_owned(), copy));
    }
    contents.sort();
    contents.dedup();
    write_archive(&image, &contents)
        .with_context(|| format!("cannot write {}", image.display()))?;
    Ok(image)
}

/// Downloaded once and kept.
fn busybox(architecture: Architecture) -> Result<PathBuf> {
    let name = architecture.name();
    let kept = project::target("vm").join(format!("busybox-{name}"));
    if !kept.is_file() {
        let archive = Archive::open(SUITE, Some(name))?;
        let packages = archive.versions(&["busybox-static"])?;
        let package = packages.first();
        let package = package.with_context(|| format!("Debian {SUITE} has no busybox"))?;
        archive.extract(package, "*/bin/busybox", &kept)?;
    }
    Ok(kept)
}

/// The libraries and the loader of `program`, by the paths under which it looks for them.
fn shared_libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let listing = shell::capture(Command::new("ldd").arg(program))?;
    Ok(libraries_in(&listing))
}

fn libraries_in(listing: &str) -> Vec<PathBuf> {
    listing
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

fn write_archive(image: &Path, contents: &[(String, PathBuf)]) -> io::Result<()> {
    let mut archive = io::BufWriter::new(File::create(image)?);
    let mut folders = BTreeSet::new();
    for (name, _) in contents {
        folders.extend(
            Path::new(name)
                .ancestors()
                .skip(1)
                .filter(|path| *path != Path::new("")),
        );
    }
    let mut inode = 0;
    let mut add = |name: &str, mode: u32, content: &[u8]| {
        inode += 1;
        let size = u32::try_from(content.len()).map_err(io::Error::other)?;
        let mut entry = NewcBuilder::new(name)
            .ino(inode)
            .mode(mode)
            .write(&mut archive, size);
        entry.write_all(content)?;
        entry.finish().map(drop)
    };
    for folder in folders {
        add(&folder.to_string_lossy(), FOLDER, b"")?;
    }
    for (name, path) in contents {
        add(name, PROGRAM, &fs::read(path)?)?;
    }
    add("bin/sh", LINK, b"busybox")?;
    cpio::newc::trailer(&mut archive)?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loader_and_libraries_are_found_and_the_virtual_one_is_not() {
        let listing = "\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f3c)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f3d)
";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(libraries_in(listing), expected.map(PathBuf::from));
    }

    #[test]
    fn static_program_has_no_libraries() {
        assert_eq!(libraries_in("\tstatically linked\n"), Vec::<PathBuf>::new());
    }
}
