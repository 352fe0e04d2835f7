//! What the yield and the busy probe have in common: one thread at a time, bound to one CPU, below a
//! watchdog.

use super::common::{CommonArgs, Setting};
use crate::{
    Error,
    probe::{Policy, watchdog::HIGHEST_WATCHED},
};

/// The CPUs that were chosen, one after the other; the last one that is allowed where none was, since
/// the first often has the interrupts.
pub(super) fn cpus(args: &CommonArgs) -> Result<Vec<u32>, Error> {
    let cpus = args.cpus()?;
    let cpus = cpus.as_slice();
    let from = if args.cpu.is_some() {
        0
    } else {
        cpus.len().saturating_sub(1)
    };
    Ok(cpus[from..].to_vec())
}

/// Refuses policies that cannot be bound to a CPU, or leave no priority above them.
pub(super) fn check_policy(setting: &Setting) -> Result<(), Error> {
    match setting.policy {
        Policy::Deadline { .. } => Err(Error::Conflict {
            option: "--policy deadline",
            with: "a probe that is bound to a CPU",
            help: "the kernel does not let deadline tasks be bound to one; use other, fifo:N or rr:N",
        }),
        Policy::Fifo(priority) | Policy::RoundRobin(priority) if priority > HIGHEST_WATCHED => {
            Err(Error::Conflict {
                option: "--policy with priority 99",
                with: "the watchdog above the probe",
                help: "use at most 98, e.g. --policy fifo:98",
            })
        }
        _ => Ok(()),
    }
}
