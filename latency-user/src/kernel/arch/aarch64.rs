//! arm64: saved registers, and the bits that ask for a reschedule.
//!
//! Compiled and tested as a table, never run on such a machine.

use crate::kernel::resched::{Evidence, ReschedBits};

/// The member of `pt_regs` that keeps the number of the system call.
pub(in crate::kernel) const SYSCALL_MEMBER: &str = "syscallno";
/// The member of `pt_regs` that keeps its first argument.
pub(in crate::kernel) const ARGUMENT_MEMBER: &str = "orig_x0";

/// From `arch/arm64/include/asm/thread_info.h` of the versions named.
pub(in crate::kernel) fn resched_bits(evidence: Evidence) -> ReschedBits {
    match evidence {
        Evidence {
            has_patch_lazy: true,
            ..
        } => ReschedBits {
            urgent: 1,
            lazy: Some(8),
        },
        Evidence {
            has_mainline_lazy: true,
            ..
        } => ReschedBits {
            urgent: 1,
            lazy: Some(2),
        },
        _ => ReschedBits {
            urgent: 1,
            lazy: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(version: (u32, u32), lazy: (bool, bool), expected: (u32, Option<u32>)) {
        let bits = resched_bits(Evidence {
            version,
            has_mainline_lazy: lazy.0,
            has_patch_lazy: lazy.1,
        });
        assert_eq!((bits.urgent, bits.lazy), expected, "{version:?}");
    }

    #[test]
    fn bit_of_reschedule_stays_and_its_lazy_twin_moves() {
        check((6, 1), (false, false), (1, None));
        check((6, 1), (false, true), (1, Some(8)));
        check((6, 17), (true, false), (1, Some(2)));
    }

    #[test]
    fn registers_are_those_that_the_kernel_keeps_for_restarts() {
        assert_eq!((SYSCALL_MEMBER, ARGUMENT_MEMBER), ("syscallno", "orig_x0"));
    }
}
