//! Cgroup hierarchies: which one is looked at, the ids of paths, and the paths of ids.

use std::{
    collections::HashMap,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use procfs::process::{MountInfo, Process};

use crate::{Error, analysis::escape};

/// One mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    /// Where it is mounted.
    pub(super) mount: PathBuf,
    /// Its v1 controllers; none for v2.
    pub(super) controllers: Vec<String>,
    /// Named v1 hierarchies without a controller cannot be read from a task.
    pub(super) is_named: bool,
}

impl Hierarchy {
    /// All hierarchies that are mounted.
    pub(super) fn mounted() -> Vec<Self> {
        Process::myself()
            .and_then(|process| process.mountinfo())
            .map(|mounts| {
                mounts
                    .into_iter()
                    .filter_map(|mount| Self::from_mount(&mount))
                    .collect()
            })
            .unwrap_or_default()
    }

    fn from_mount(mount: &MountInfo) -> Option<Self> {
        let options: Vec<_> = mount.super_options.keys().map(String::as_str).collect();
        match mount.fs_type.as_str() {
            "cgroup2" => Some(Self {
                mount: mount.mount_point.clone(),
                controllers: Vec::new(),
                is_named: false,
            }),
            "cgroup" => {
                let controllers: Vec<_> = known_controllers()
                    .into_iter()
                    .filter(|controller| options.contains(&controller.as_str()))
                    .collect();
                Some(Self {
                    mount: mount.mount_point.clone(),
                    is_named: controllers.is_empty(),
                    controllers,
                })
            }
            _ => None,
        }
    }

    /// The hierarchy in which tasks are grouped for the CPU: the v1 cpu controller's, else v2.
    pub(super) fn of_cpu(mounted: &[Self]) -> Option<&Self> {
        let has_cpu = |hierarchy: &&Self| hierarchy.controllers.iter().any(|name| name == "cpu");
        mounted
            .iter()
            .find(has_cpu)
            .or_else(|| mounted.iter().find(|hierarchy| hierarchy.is_v2()))
    }

    /// Whether this is the v2 hierarchy.
    pub(super) fn is_v2(&self) -> bool {
        self.controllers.is_empty() && !self.is_named
    }

    /// The controller by which a task's group is found; none for v2.
    pub(super) fn controller(&self) -> Option<String> {
        self.controllers.first().cloned()
    }

    /// The kernel's number for it, as in `/proc/cgroups`; 0 for v2.
    pub(super) fn id(&self) -> u32 {
        let Some(controller) = self.controllers.first() else {
            return 0;
        };
        fs::read_to_string("/proc/cgroups")
            .ok()
            .and_then(|table| hierarchy_id(&table, controller))
            .unwrap_or(0)
    }

    /// What to call it.
    pub(super) fn name(&self) -> String {
        if self.is_v2() {
            "v2".to_owned()
        } else {
            self.mount.display().to_string()
        }
    }
}

fn known_controllers() -> Vec<String> {
    fs::read_to_string("/proc/cgroups")
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

fn hierarchy_id(table: &str, controller: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(controller)).then(|| words.next()?.parse().ok())?
    })
}

/// Finds the hierarchy and the id of a cgroup that a user named: by its directory, or by its path
/// below the mount as `/proc/PID/cgroup` shows it.
pub(super) fn resolve(path: &str, mounted: &[Hierarchy]) -> Result<(Hierarchy, u64), Error> {
    let found = find(path, mounted).ok_or_else(|| Error::NoCgroup(path.to_owned()))?;
    if found.0.is_named {
        return Err(Error::UnreadableHierarchy {
            path: path.to_owned(),
            hierarchy: found.0.name(),
        });
    }
    Ok(found)
}

fn find(path: &str, mounted: &[Hierarchy]) -> Option<(Hierarchy, u64)> {
    let as_directory = fs::canonicalize(path)
        .ok()
        .filter(|directory| directory.is_dir());
    if let Some(directory) = as_directory {
        let owner = mounted
            .iter()
            .filter(|hierarchy| directory.starts_with(&hierarchy.mount))
            .max_by_key(|hierarchy| hierarchy.mount.as_os_str().len());
        if let Some(hierarchy) = owner {
            return Some((hierarchy.clone(), fs::metadata(&directory).ok()?.ino()));
        }
    }
    // An empty path is a variable that was not set, hardly the root group.
    if path.is_empty() {
        return None;
    }
    let below = path.trim_start_matches('/');
    let preferred = Hierarchy::of_cpu(mounted);
    preferred.into_iter().chain(mounted).find_map(|hierarchy| {
        // With `..` a path may leave the mount, and inode numbers out there are no cgroup's.
        let directory = fs::canonicalize(hierarchy.mount.join(below)).ok()?;
        let metadata = fs::metadata(&directory).ok()?;
        (metadata.is_dir() && directory.starts_with(&hierarchy.mount))
            .then(|| (hierarchy.clone(), metadata.ino()))
    })
}

/// Paths by id, below the root of one hierarchy. Ids are not reused while a recording lasts.
#[derive(Debug, Default)]
pub(crate) struct CgroupNames {
    mount: Option<PathBuf>,
    paths: HashMap<u64, Arc<str>>,
}

impl CgroupNames {
    /// Reads the hierarchy as it is.
    pub(super) fn read(hierarchy: Option<&Hierarchy>) -> Self {
        let mut names = Self {
            mount: hierarchy.map(|it| it.mount.clone()),
            paths: HashMap::new(),
        };
        names.refresh();
        names
    }

    /// Looks for groups that are new.
    pub(super) fn refresh(&mut self) {
        if let Some(mount) = self.mount.clone() {
            self.visit(&mount, &mount);
        }
    }

    fn visit(&mut self, mount: &Path, directory: &Path) {
        let Ok(metadata) = fs::metadata(directory) else {
            return;
        };
        let below = directory.strip_prefix(mount).unwrap_or(directory);
        self.paths
            .entry(metadata.ino())
            .or_insert_with(|| format!("/{}", escape::bytes(below.as_os_str().as_bytes())).into());
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            self.visit(mount, &entry.path());
        }
    }

    /// Learns a group that the kernel side reported.
    pub(crate) fn learn(&mut self, id: u64, path: &[u8]) {
        self.paths.insert(id, escape::bytes(path).into());
    }

    /// The path of an id, or the id itself.
    pub(crate) fn path(&self, id: u64) -> Arc<str> {
        self.paths
            .get(&id)
            .cloned()
            .unwrap_or_else(|| format!("id:{id}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(mount: &str, controllers: &[&str]) -> Hierarchy {
        Hierarchy {
            mount: mount.into(),
            controllers: controllers.iter().map(|name| (*name).to_owned()).collect(),
            is_named: false,
        }
    }

    #[test]
    fn cpu_controller_of_v1_wins_over_v2() {
        let mounted = [hierarchy("/u", &[]), hierarchy("/cpu", &["cpu", "cpuacct"])];
        assert_eq!(Hierarchy::of_cpu(&mounted), Some(&mounted[1]));
        assert_eq!(Hierarchy::of_cpu(&mounted[..1]), Some(&mounted[0]));
    }

    #[test]
    fn path_below_the_mount_stays_there() {
        let place = std::env::temp_dir().join(format!("schedlat-cgroups-{}", std::process::id()));
        fs::create_dir_all(place.join("mount/a/b")).unwrap();
        let mount = fs::canonicalize(place.join("mount")).unwrap();
        let mounted = [hierarchy(mount.to_str().unwrap(), &[])];
        let id = |path| find(path, &mounted).map(|(_, id)| id);
        let inode = |below: &str| fs::metadata(mount.join(below)).unwrap().ino();
        assert_eq!(id("/a/b"), Some(inode("a/b")));
        assert_eq!(id("a/../a"), Some(inode("a")));
        assert_eq!(id("/"), Some(inode(".")));
        for outside in ["", "..", "/a/../..", "../../../../proc/self", "no-such"] {
            assert_eq!(id(outside), None, "'{outside}'");
        }
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn id_is_found_in_the_table() {
        let table = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t3\t1\t1\n";
        assert_eq!(hierarchy_id(table, "cpu"), Some(3));
        assert_eq!(hierarchy_id(table, "io"), None);
    }

    #[test]
    fn unknown_group_is_shown_by_id() {
        let mut names = CgroupNames::default();
        assert_eq!(&*names.path(7), "id:7");
        names.learn(7, b"/a/b\0\0");
        assert_eq!(&*names.path(7), "/a/b");
        names.learn(8, b"/a\xff\x1b\0");
        assert_eq!(&*names.path(8), r"/a\xff\x1b");
    }
}
