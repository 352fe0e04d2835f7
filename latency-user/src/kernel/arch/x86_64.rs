//! x86-64: saved registers, and the bits that ask for a reschedule.

use crate::kernel::resched::{Evidence, ReschedBits};

/// The member of `pt_regs` that keeps the number of the system call.
pub(in crate::kernel) const SYSCALL_MEMBER: &str = "orig_ax";
/// The member of `pt_regs` that keeps its first argument.
pub(in crate::kernel) const ARGUMENT_MEMBER: &str = "di";

/// Timers and other CPUs interrupt without a handler of the kind that devices have.
pub(in crate::kernel) const HAS_VECTOR_EVENTS: bool = true;

/// From `arch/x86/include/asm/thread_info.h` of the versions named.
pub(in crate::kernel) fn resched_bits(evidence: Evidence) -> ReschedBits {
    match evidence {
        // 5.10-rt to 6.1-rt; 31 was the bit of 5.10-rt, 19 that of 6.1-rt.
        Evidence {
            has_patch_lazy: true,
            version,
            ..
        } => ReschedBits {
            urgent: 3,
            lazy: Some(if version < (5, 16) { 31 } else { 19 }),
        },
        // 6.18 took the bit list shared with other architectures.
        Evidence { version, .. } if version >= (6, 18) => ReschedBits {
            urgent: 4,
            lazy: Some(5),
        },
        // 6.13, and 6.12-rt, which carries the same patches.
        Evidence {
            has_mainline_lazy: true,
            ..
        } => ReschedBits {
            urgent: 3,
            lazy: Some(4),
        },
        _ => ReschedBits {
            urgent: 3,
            lazy: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::arch::check;

    #[test]
    fn mainline_before_lazy() {
        check(resched_bits, (6, 1), (false, false), (3, None));
        check(resched_bits, (6, 12), (false, false), (3, None));
    }

    #[test]
    fn rt_patch_before_mainline_lazy() {
        check(resched_bits, (5, 10), (false, true), (3, Some(31)));
        check(resched_bits, (6, 1), (false, true), (3, Some(19)));
    }

    #[test]
    fn mainline_lazy() {
        check(resched_bits, (6, 12), (true, false), (3, Some(4)));
        check(resched_bits, (6, 17), (true, false), (3, Some(4)));
    }

    #[test]
    fn shared_bit_list() {
        check(resched_bits, (6, 18), (true, false), (4, Some(5)));
        check(resched_bits, (7, 3), (true, false), (4, Some(5)));
    }
}
