//! Everything that can stop a measurement, one variant per thing a user can act on.
//!
//! The text says what could not be done and why; `help` says what to type.

use std::{io, path::PathBuf};

use crate::units::Nanos;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message is its documentation")]
pub enum Error {
    #[error("cannot load the scheduler probes: {} missing", .0.join(", "))]
    MissingCapabilities(Vec<&'static str>),
    #[error("this kernel ({kernel}) has no type information at {}: {source}", path.display())]
    NoBtf {
        kernel: String,
        path: PathBuf,
        source: io::Error,
    },
    #[error("the type information at {} is malformed: {reason}", path.display())]
    MalformedBtf { path: PathBuf, reason: String },
    #[error("this kernel ({kernel}) has no {what}, which schedlat needs")]
    Unsupported { kernel: String, what: String },
    #[error("cannot record on this kernel ({kernel}): {why}")]
    Lacking {
        kernel: String,
        why: String,
        remedy: String,
    },
    #[error("the kernel ({kernel}) refused program {program}: {source}")]
    Refused {
        kernel: String,
        program: String,
        source: io::Error,
    },
    #[error("the kernel ({kernel}) rejected program {program}: {source}\n{log_tail}")]
    Rejected {
        kernel: String,
        program: String,
        source: io::Error,
        log_tail: String,
        log: String,
    },
    #[error("cannot attach program {program}: {reason}")]
    Attach { program: String, reason: String },
    #[error("cannot set up the kernel side: {0}")]
    Setup(String),
    #[error("cannot read {what}: {source}")]
    Read { what: String, source: io::Error },
    #[error("no process {0}")]
    NoProcess(u32),
    #[error("process {tgid} has a thread {tid}, but there is no process {tid}")]
    ThreadNotProcess { tid: u32, tgid: u32 },
    #[error("no thread {0}")]
    NoThread(u32),
    #[error(
        "processes, threads and commands cannot be followed by their ids from inside a pid namespace"
    )]
    PidNamespace,
    #[error("bad glob '{glob}': {reason}")]
    BadGlob { glob: String, reason: String },
    #[error("more than {0} globs")]
    TooManyGlobs(usize),
    #[error("no user '{0}'")]
    NoUser(String),
    #[error("no cgroup '{0}' in any mounted hierarchy")]
    NoCgroup(String),
    #[error("cgroup '{path}' lies in the hierarchy {hierarchy}, which schedlat cannot read")]
    UnreadableHierarchy { path: String, hierarchy: String },
    #[error("the cgroups lie in different hierarchies: {first} and {second}")]
    MixedHierarchies { first: String, second: String },
    #[error("{option} does not go with {with}")]
    Conflict {
        option: &'static str,
        with: &'static str,
        help: &'static str,
    },
    #[error("{option} must be at least {least}")]
    TooShort {
        option: &'static str,
        least: Nanos,
        help: &'static str,
    },
    #[error("cannot write {}: {source}", path.display())]
    Output { path: PathBuf, source: io::Error },
    #[error("cannot write the flight recorder's {}: {source}", path.display())]
    FlightOutput { path: PathBuf, source: io::Error },
    #[error("this machine has no two CPUs for --placement {0}")]
    NoPlacement(String),
    #[error("cannot tell which tool '{0}' is")]
    UnknownTool(String),
    #[error("cannot read what {tool} says: {reason}")]
    ForeignOutput { tool: &'static str, reason: String },
    #[error("the load '{load}' cannot run: {why}")]
    Load { load: String, why: String },
    #[error("the preemption model of this kernel cannot be switched: {why}")]
    Preemption { why: String, help: &'static str },
    #[error("cannot run '{command}': {source}")]
    Command { command: String, source: io::Error },
    #[error("no CPU {cpu} is online; those are {online}")]
    NoCpu { cpu: u32, online: String },
    #[error("cannot run a thread on CPU {cpu}: {source}")]
    Pin { cpu: u32, source: io::Error },
    #[error("cannot run a thread under {policy}: {source}")]
    Policy { policy: String, source: io::Error },
    #[error("cannot make or set up a thread: {source}")]
    Thread { source: io::Error },
    #[error("cannot pass a token through {transport}: {source}")]
    Transport {
        transport: &'static str,
        source: io::Error,
    },
    #[error("cannot keep the CPUs from idle states: {path}: {source}")]
    IdleStates {
        path: &'static str,
        source: io::Error,
    },
    #[error("cannot lock the memory: {source}")]
    LockMemory { source: io::Error },
}

impl Error {
    /// Something to type or to look at.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::MissingCapabilities(_) => {
                "run as root, or give the binary CAP_BPF, CAP_PERFMON and CAP_SYSLOG".into()
            }
            Self::NoBtf { .. } => {
                "a kernel built with CONFIG_DEBUG_INFO_BTF=y is needed; see `schedlat doctor`".into()
            }
            Self::MalformedBtf { .. } => {
                "the file must be the running kernel's own; see `schedlat doctor`".into()
            }
            Self::Unsupported { .. } | Self::Attach { .. } | Self::Setup(_) => {
                "`schedlat doctor` lists what this kernel offers".into()
            }
            Self::Lacking { remedy, .. } => format!("it would take {remedy}; see `schedlat doctor`"),
            Self::Refused { .. } => {
                "a security policy may forbid BPF: look at `dmesg`, and run `schedlat doctor`".into()
            }
            Self::Rejected { .. } => {
                "save the full verifier log with --verifier-log FILE and attach it to a bug report".into()
            }
            Self::Read { .. } => "run as root; `schedlat doctor` lists what can be read".into(),
            Self::NoProcess(_) => "--pid takes the id of a running process; for a single thread use --tid".into(),
            Self::ThreadNotProcess { tid, tgid } => {
                format!("use --pid {tgid} for the process or --tid {tid} for the thread")
            }
            Self::NoThread(_) => "--tid takes the id of a running thread: `ps -eLo tid,comm`".into(),
            Self::PidNamespace => {
                "run in the host's pid namespace, or select by --comm, --user or --cgroup".into()
            }
            Self::BadGlob { .. } => {
                "a glob is made of characters, `*`, `?` and classes such as `[a-f]` or `[!0-9]`; quote it".into()
            }
            Self::TooManyGlobs(_) => "join them with wildcards".into(),
            Self::NoUser(_) => "--user takes a name of `getent passwd` or a numeric user id".into(),
            Self::NoCgroup(_) => {
                "give the path below the cgroup mount, as in /proc/PID/cgroup, or the directory itself".into()
            }
            Self::UnreadableHierarchy { .. } => "use its path in the cpu or v2 hierarchy".into(),
            Self::MixedHierarchies { .. } => "name them all in one hierarchy".into(),
            Self::Conflict { help, .. } | Self::TooShort { help, .. } | Self::Preemption { help, .. } => {
                (*help).into()
            }
            Self::Output { .. } => "choose a file that can be written, with --output FILE".into(),
            Self::FlightOutput { .. } => {
                "choose a file that can be written, with --flight-output FILE".into()
            }
            Self::NoPlacement(_) => "`--placement auto,same` is possible everywhere".into(),
            Self::UnknownTool(_) => "verify knows cyclictest, oslat, hackbench, perf bench sched, stress-ng --cyclic and schbench; --tool says which one it is".into(),
            Self::ForeignOutput { .. } => "run the tool alone, and see whether it prints its figures".into(),
            Self::Load { .. } => "choose another load with --load, or leave it out".into(),
            Self::Command { .. } => "check the command's name and its permissions".into(),
            Self::NoCpu { .. } => "--cpu takes numbers and ranges of CPUs that are online, or all".into(),
            Self::Pin { .. } => "the cpuset of this cgroup may forbid it: see Cpus_allowed_list in /proc/self/status".into(),
            Self::Policy { policy, source } => policy_help(policy, source).into(),
            Self::Thread { .. } => "there may be too many threads already: see `ulimit -u`".into(),
            Self::Transport { .. } => "see `ulimit -n`, or choose others with --transport".into(),
            Self::IdleStates { .. } => "run as root, or without --no-cstates".into(),
            Self::LockMemory { .. } => "run as root, give the binary CAP_IPC_LOCK, or raise `ulimit -l`".into(),
        }
    }
}

/// Why a policy was refused, by what the kernel answers.
fn policy_help(policy: &str, source: &io::Error) -> &'static str {
    let is_deadline = policy.starts_with("deadline");
    match source.raw_os_error() {
        Some(libc::EPERM) if is_deadline => {
            "run as root, or give the binary CAP_SYS_NICE; a deadline task must be allowed on all CPUs of its domain"
        }
        Some(libc::EPERM) => {
            "run as root, give the binary CAP_SYS_NICE, or raise `ulimit -r`; a cgroup whose cpu.rt_runtime_us is 0 \
             forbids it to everybody"
        }
        Some(libc::EBUSY) => {
            "the CPUs are reserved already: ask for a smaller share of RUNTIME in PERIOD"
        }
        _ => {
            "the kernel does not take these parameters: RUNTIME must be at least 1024ns and PERIOD within its limits"
        }
    }
}
