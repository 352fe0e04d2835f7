//! What a user asked to observe, checked against the system before anything is attached.

use std::{ffi::OsString, os::unix::ffi::OsStrExt as _, path::Path};

use latency_common::select::N_GLOBS;

use super::{
    cgroups::{self, Hierarchy},
    glob,
};
use crate::{
    Error,
    analysis::escape,
    kernel::{CgroupNeed, Needs, Selection},
    model::GroupBy,
    tasks::{stat, tgid_of, threads_of},
};

/// Targets as typed; their union is observed, and none means all tasks.
#[derive(Clone, Debug, Default)]
pub struct TargetArgs {
    /// Processes.
    pub pids: Vec<u32>,
    /// Threads.
    pub tids: Vec<u32>,
    /// Globs on the thread's name.
    pub comms: Vec<String>,
    /// Cgroups with their descendants.
    pub cgroups: Vec<String>,
    /// Users, by name or id.
    pub users: Vec<String>,
    /// A command, with what it forks.
    pub command: Vec<OsString>,
}

impl TargetArgs {
    /// As typed; empty without any.
    #[must_use]
    pub fn in_words(&self) -> String {
        let quoted = |option: &str, values: &[String]| -> Vec<String> {
            values
                .iter()
                .map(|value| format!("{option} '{value}'"))
                .collect()
        };
        let ids = |option: &str, values: &[u32]| -> Vec<String> {
            values
                .iter()
                .map(|value| format!("{option} {value}"))
                .collect()
        };
        let mut words = ids("--pid", &self.pids);
        words.extend(ids("--tid", &self.tids));
        words.extend(quoted("--comm", &self.comms));
        words.extend(quoted("--cgroup", &self.cgroups));
        words.extend(quoted("--user", &self.users));
        if let Some(program) = self.command.first() {
            let name = Path::new(program).file_name().unwrap_or(program);
            words.push(format!("-- {}", escape::bytes(name.as_bytes())));
        }
        words.join(" ")
    }
}

/// Targets as understood.
#[derive(Clone, Debug)]
pub struct Targets {
    pub(super) selection: Selection,
    pub(super) needs: Needs,
    pub(super) hierarchy: Option<Hierarchy>,
    pub(super) description: String,
}

impl Targets {
    /// Checks each target.
    pub fn resolve(args: &TargetArgs, by: GroupBy) -> Result<Self, Error> {
        if !args.pids.is_empty() || !args.tids.is_empty() || !args.command.is_empty() {
            check_pid_namespace()?;
        }
        args.pids.iter().try_for_each(|tgid| check_process(*tgid))?;
        args.tids.iter().try_for_each(|tid| check_thread(*tid))?;
        let mounted = Hierarchy::mounted();
        let (hierarchy, cgroups) = resolve_cgroups(&args.cgroups, &mounted)?;
        if args.comms.len() > N_GLOBS {
            return Err(Error::TooManyGlobs(N_GLOBS));
        }
        let cgroup_need = match by {
            _ if !args.cgroups.is_empty() => CgroupNeed::Moves,
            GroupBy::Cgroup => CgroupNeed::Names,
            _ => CgroupNeed::Nothing,
        };
        Ok(Self {
            needs: Needs {
                names: !args.comms.is_empty(),
                users: !args.users.is_empty(),
                cgroups: cgroup_need,
            },
            selection: Selection {
                tgids: args.pids.clone(),
                tids: args.tids.clone(),
                traced: Vec::new(),
                uids: args
                    .users
                    .iter()
                    .map(|user| resolve_user(user))
                    .collect::<Result<_, _>>()?,
                globs: args
                    .comms
                    .iter()
                    .map(|comm| glob::compile(comm))
                    .collect::<Result<_, _>>()?,
                cgroups,
                follows_child: !args.command.is_empty(),
            },
            hierarchy: hierarchy.or_else(|| Hierarchy::of_cpu(&mounted).cloned()),
            description: match args.in_words() {
                words if words.is_empty() => "all tasks".to_owned(),
                words => words,
            },
        })
    }

    /// In words, as typed.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether only processes and threads that exist now can ever be seen, and all of them have ended.
    #[must_use]
    pub fn are_gone(&self) -> bool {
        let selection = &self.selection;
        let has_ids = !selection.tgids.is_empty() || !selection.tids.is_empty();
        let has_others = !selection.uids.is_empty()
            || !selection.globs.is_empty()
            || !selection.cgroups.is_empty()
            || selection.follows_child;
        has_ids
            && !has_others
            && selection.tgids.iter().all(|tgid| process_has_ended(*tgid))
            && selection.tids.iter().all(|tid| thread_has_ended(*tid))
    }
}

/// A process may go on without its first thread, which is a zombie until the last one ends.
fn process_has_ended(tgid: u32) -> bool {
    thread_has_ended(tgid) && threads_of(tgid).into_iter().all(thread_has_ended)
}

fn thread_has_ended(tid: u32) -> bool {
    stat(tid).is_none()
}

fn check_process(tgid: u32) -> Result<(), Error> {
    match tgid_of(tgid) {
        None => Err(Error::NoProcess(tgid)),
        Some(owner) if owner != tgid => Err(Error::ThreadNotProcess {
            tid: tgid,
            tgid: owner,
        }),
        Some(_) => Ok(()),
    }
}

fn check_thread(tid: u32) -> Result<(), Error> {
    tgid_of(tid).map(|_| ()).ok_or(Error::NoThread(tid))
}

/// Ids given inside a pid namespace are not those that the kernel side sees.
fn check_pid_namespace() -> Result<(), Error> {
    crate::kernel::is_init_pid_namespace()
        .then_some(())
        .ok_or(Error::PidNamespace)
}

fn resolve_user(user: &str) -> Result<u32, Error> {
    if let Ok(uid) = user.parse() {
        return Ok(uid);
    }
    nix::unistd::User::from_name(user)
        .ok()
        .flatten()
        .map(|entry| entry.uid.as_raw())
        .ok_or_else(|| Error::NoUser(user.to_owned()))
}

fn resolve_cgroups(
    paths: &[String],
    mounted: &[Hierarchy],
) -> Result<(Option<Hierarchy>, Vec<u64>), Error> {
    let mut common: Option<Hierarchy> = None;
    let mut ids = Vec::new();
    for path in paths {
        let (hierarchy, id) = cgroups::resolve(path, mounted)?;
        match &common {
            Some(first) if *first != hierarchy => {
                return Err(Error::MixedHierarchies {
                    first: first.name(),
                    second: hierarchy.name(),
                });
            }
            _ => common = Some(hierarchy),
        }
        ids.push(id);
    }
    Ok((common, ids))
}
