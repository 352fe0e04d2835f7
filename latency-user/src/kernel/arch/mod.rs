//! What machines differ in and type information does not show, one file for each machine.
//!
//! Promises: the same names for each; tests compile and try the tables of all.
//! Leaves to others: events that not every machine has, which are looked up like any other.

#[cfg(any(target_arch = "aarch64", test))]
mod aarch64;
#[cfg(any(target_arch = "x86_64", test))]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::{ARGUMENT_MEMBER, SYSCALL_MEMBER, resched_bits};
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{ARGUMENT_MEMBER, SYSCALL_MEMBER, resched_bits};
