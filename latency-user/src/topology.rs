//! Which CPUs share what.

use std::{fs, path::Path};

/// Where a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// Its number.
    pub cpu: u32,
    /// The first CPU of its core.
    pub core: u32,
    /// The first CPU of those that share its last-level cache.
    pub cache: u32,
}

/// Where these CPUs are.
#[must_use]
pub fn places(cpus: &[u32]) -> Vec<CpuPlace> {
    let place = |&cpu| CpuPlace {
        cpu,
        core: core(cpu),
        cache: last_level_cache(cpu),
    };
    cpus.iter().map(place).collect()
}

/// The first CPU of a CPU's core. Where the kernel does not say, each has its own.
fn core(cpu: u32) -> u32 {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let siblings = fs::read_to_string(file).ok();
    siblings.and_then(|cpus| first(&cpus)).unwrap_or(cpu)
}

/// The first of a list of CPUs such as `0-3,8`.
fn first(cpus: &str) -> Option<u32> {
    cpus.trim_end().split([',', '-']).next()?.parse().ok()
}

/// The number of a CPU's last-level cache: that of the first CPU which shares it. Where the kernel
/// does not say, a cache is taken to be the CPU's own.
pub(crate) fn last_level_cache(cpu: u32) -> u32 {
    let directory = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    last_level_in(Path::new(&directory)).unwrap_or(cpu)
}

fn last_level_in(directory: &Path) -> Option<u32> {
    let text = |index: &Path, file: &str| {
        fs::read_to_string(index.join(file)).map(|text| text.trim().to_owned())
    };
    let caches = fs::read_dir(directory).ok()?.flatten();
    let (_, cpus) = caches
        .filter_map(|entry| {
            let index = entry.path();
            let level: u32 = text(&index, "level").ok()?.parse().ok()?;
            let holds_data = text(&index, "type").ok()? != "Instruction";
            let cpus = text(&index, "shared_cpu_list").ok()?;
            holds_data.then_some((level, cpus))
        })
        .max_by_key(|(level, _)| *level)?;
    first(&cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_this_machine_are_among_its_cpus() {
        for place in places(&[0]) {
            assert_eq!((place.cpu, place.core, place.cache), (0, 0, 0));
        }
        assert_eq!(first("4-7,12\n"), Some(4));
        assert_eq!(first(""), None);
    }

    fn cache(directory: &Path, index: u32, [level, kind, cpus]: [&str; 3]) {
        let place = directory.join(format!("index{index}"));
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("level"), level).unwrap();
        fs::write(place.join("type"), kind).unwrap();
        fs::write(place.join("shared_cpu_list"), cpus).unwrap();
    }

    #[test]
    fn last_level_is_the_highest_that_holds_data() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path();
        assert_eq!(last_level_in(directory), None);
        cache(directory, 0, ["1\n", "Data\n", "5\n"]);
        cache(directory, 1, ["1\n", "Instruction\n", "5\n"]);
        assert_eq!(last_level_in(directory), Some(5));
        cache(directory, 2, ["3\n", "Unified\n", "4-7,12-15\n"]);
        cache(directory, 3, ["2\n", "Unified\n", "4,5\n"]);
        assert_eq!(last_level_in(directory), Some(4));
        assert_eq!(last_level_in(&directory.join("none")), None);
    }
}
