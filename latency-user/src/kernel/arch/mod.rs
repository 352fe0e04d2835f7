//! What machines differ in and type information does not show, one file for each machine.
//!
//! Promises: the same names for each; tests compile and try the tables of all.
//! Leaves to others: events that not every machine has, which are looked up like any other.

#[cfg(any(target_arch = "aarch64", test))]
mod aarch64;
#[cfg(any(target_arch = "x86_64", test))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::{ARGUMENT_MEMBER, HAS_VECTOR_EVENTS, SYSCALL_MEMBER, resched_bits};
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{ARGUMENT_MEMBER, HAS_VECTOR_EVENTS, SYSCALL_MEMBER, resched_bits};

#[cfg(test)]
use super::resched::{Evidence, ReschedBits};

/// Looks up a kernel, given whether it has lazy rescheduling of its own and by a patch.
#[cfg(test)]
#[track_caller]
fn check(
    table: fn(Evidence) -> ReschedBits,
    version: (u32, u32),
    lazy: (bool, bool),
    expected: (u32, Option<u32>),
) {
    let bits = table(Evidence {
        version,
        has_mainline_lazy: lazy.0,
        has_patch_lazy: lazy.1,
    });
    assert_eq!((bits.urgent, bits.lazy), expected, "{version:?}");
}
