//! The options that name tasks which run already, the same for every command.

use clap::Args;

use crate::observe::TargetArgs;

/// Tasks to observe; their union, where there are several.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct TargetOptions {
    /// A process with all its threads
    #[arg(long = "pid", value_name = "PID", help_heading = "Targets")]
    pids: Vec<u32>,
    /// A single thread
    #[arg(long = "tid", value_name = "TID", help_heading = "Targets")]
    tids: Vec<u32>,
    /// Threads whose name matches, e.g. 'postgres*'
    #[arg(long = "comm", value_name = "GLOB", help_heading = "Targets")]
    comms: Vec<String>,
    /// A cgroup with its descendants, by directory or by path below the mount
    #[arg(long = "cgroup", value_name = "PATH", help_heading = "Targets")]
    cgroups: Vec<String>,
    /// Tasks of a user, by name or id
    #[arg(long = "user", value_name = "NAME|UID", help_heading = "Targets")]
    users: Vec<String>,
}

impl TargetOptions {
    /// As typed; a command is added by those who run one.
    pub(super) fn typed(&self) -> TargetArgs {
        TargetArgs {
            pids: self.pids.clone(),
            tids: self.tids.clone(),
            comms: self.comms.clone(),
            cgroups: self.cgroups.clone(),
            users: self.users.clone(),
            command: Vec::new(),
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        let Self {
            pids,
            tids,
            comms,
            cgroups,
            users,
        } = self;
        pids.is_empty()
            && tids.is_empty()
            && comms.is_empty()
            && cgroups.is_empty()
            && users.is_empty()
    }
}
