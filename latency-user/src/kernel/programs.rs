//! The programs of the object, which of them a recording needs, and the order in which they attach.

use aya::{
    Ebpf,
    programs::{BtfTracePoint, Program, ProgramError},
};
use latency_common::config::Detail;

use super::{
    features::Features,
    object::LoadOptions,
    tracepoints::{INTERRUPTS, SCHED_ENTRY, SCHED_EXIT, WORKS},
};
use crate::Error;

/// What of the targets decides which programs are needed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// Names decide: renames are followed.
    pub names: bool,
    /// Users decide: executions are followed.
    pub users: bool,
    /// What of cgroups is followed.
    pub cgroups: CgroupNeed,
}

/// What of cgroups a recording has to follow; each includes the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CgroupNeed {
    /// Nothing.
    #[default]
    Nothing,
    /// They are shown: new ones are learned by path.
    Names,
    /// They decide: moves are followed.
    Moves,
}

/// The iterators; they are loaded with the others and run when asked.
pub(super) const SELECT_TASKS: &str = "select_tasks";
/// See `SELECT_TASKS`.
pub(super) const WRITE_ROWS: &str = "write_rows";

/// A program and its tracepoint, which mostly have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attachment {
    pub(super) program: &'static str,
    pub(super) tracepoint: &'static str,
}

const fn same(name: &'static str) -> Attachment {
    other(name, name)
}

const fn other(program: &'static str, tracepoint: &'static str) -> Attachment {
    Attachment {
        program,
        tracepoint,
    }
}

/// Every program that these options need and this kernel can run, in the order of attachment.
pub(super) fn needed(features: &Features, options: &LoadOptions) -> Vec<Attachment> {
    let mut needed = Vec::new();
    if options.flight.is_some() {
        needed.extend(FLIGHT);
    }
    needed.extend(attachments(options.detail, features, options.needs));
    if counts_yields(features, options) {
        needed.push(same(SCHED_ENTRY));
    }
    needed.retain(|attachment| !features.lacking.has(attachment.tracepoint));
    needed
}

/// Whether yields are to be counted, and can be.
pub(super) fn counts_yields(features: &Features, options: &LoadOptions) -> bool {
    !features.lacking.has(SCHED_ENTRY) && !options.yielders.is_empty()
}

/// Programs that a level of detail needs.
///
/// What measures comes first: nothing is measured of a task without state, and a task that got it at
/// its birth must have every later event seen.
fn attachments(detail: Detail, features: &Features, needs: Needs) -> Vec<Attachment> {
    match detail {
        Detail::Empty => vec![
            other("empty_waking", "sched_waking"),
            other("empty_wakeup", "sched_wakeup"),
            other("empty_switch", "sched_switch"),
        ],
        Detail::Basic => {
            let mut attachments = vec![other("basic_switch", "sched_switch")];
            attachments.extend(selecting(features, needs));
            attachments
        }
        Detail::Causes | Detail::Full => {
            let mut attachments = Vec::new();
            if detail == Detail::Full {
                attachments.extend(INTERRUPTS.into_iter().flatten().map(same));
                attachments.extend(WORKS.into_iter().map(same));
            }
            attachments.extend(measuring(features));
            attachments.extend(selecting(features, needs));
            attachments
        }
    }
}

/// What the flight recorder takes; attached before all others, so that no event that they measure is
/// missing in it.
const FLIGHT: [Attachment; 11] = [
    other("flight_irq_entry", "irq_handler_entry"),
    other("flight_irq_exit", "irq_handler_exit"),
    other("flight_softirq_entry", "softirq_entry"),
    other("flight_softirq_exit", "softirq_exit"),
    other("flight_migrate", "sched_migrate_task"),
    other("flight_waking", "sched_waking"),
    other("flight_wakeup_new", "sched_wakeup_new"),
    other("flight_wakeup", "sched_wakeup"),
    other("flight_switch", "sched_switch"),
    other("flight_timer_entry", "local_timer_entry"),
    other("flight_timer_exit", "local_timer_exit"),
];

/// What keeps the selection true.
fn selecting(features: &Features, needs: Needs) -> Vec<Attachment> {
    let can_name = features.can_probe_read;
    chosen([
        ("sched_process_exit", true),
        ("task_newtask", true),
        ("task_rename", needs.names && can_name),
        ("sched_process_exec", needs.names || needs.users),
        ("cgroup_attach_task", needs.cgroups >= CgroupNeed::Moves),
        (
            "cgroup_mkdir",
            needs.cgroups >= CgroupNeed::Names && can_name,
        ),
    ])
}

/// What measures waits, latency and causes.
fn measuring(features: &Features) -> Vec<Attachment> {
    let has_tick = features.has_timers();
    chosen([
        ("hrtimer_expire_entry", has_tick),
        ("hrtimer_expire_exit", has_tick),
        (SCHED_EXIT, features.needs_sched_exit),
        ("sched_migrate_task", true),
        ("sched_waking", true),
        ("sched_wakeup_new", true),
        ("sched_wakeup", true),
        ("sched_switch", true),
    ])
}

fn chosen<const N: usize>(candidates: [(&'static str, bool); N]) -> Vec<Attachment> {
    candidates
        .into_iter()
        .filter(|(_, is_needed)| *is_needed)
        .map(|(name, _)| same(name))
        .collect()
}

/// Attaches one tracepoint program, which is loaded.
pub(super) fn attach(ebpf: &mut Ebpf, attachment: Attachment) -> Result<(), Error> {
    let name = attachment.program;
    let program: &mut BtfTracePoint = program_mut(ebpf, name)?;
    program
        .attach()
        .map(|_link| ())
        .map_err(|error| Error::Attach {
            program: name.to_owned(),
            reason: error.to_string(),
        })
}

/// The program of this name.
pub(super) fn program_mut<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, Error>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    let program = ebpf
        .program_mut(name)
        .ok_or_else(|| Error::Setup(format!("program {name} is not in the object")))?;
    program
        .try_into()
        .map_err(|error: ProgramError| Error::Setup(format!("program {name}: {error}")))
}

/// Lines of the verifier's log that are shown; its end says what it did not accept.
const LOG_LINES: usize = 12;

/// Why the kernel did not load a program.
pub(super) fn refusal(kernel: &str, program: &str, error: ProgramError) -> Error {
    let (kernel, program) = (kernel.to_owned(), program.to_owned());
    match error {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            let log = verifier_log.to_string();
            if log.trim().is_empty() {
                return Error::Refused {
                    kernel,
                    program,
                    source: io_error,
                };
            }
            let lines: Vec<_> = log.lines().collect();
            let log_tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            Error::Rejected {
                kernel,
                program,
                source: io_error,
                log_tail,
                log,
            }
        }
        other => Error::Setup(format!("program {program}: {other}")),
    }
}
