//! Which CPUs share their last-level cache.

use std::{fs, path::Path};

/// The number of a CPU's last-level cache: that of the first CPU which shares it. Where the kernel
/// does not say, a cache is taken to be the CPU's own.
pub(super) fn last_level_cache(cpu: u32) -> u32 {
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
    cpus.split([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
