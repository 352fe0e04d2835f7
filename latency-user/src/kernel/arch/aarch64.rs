//! arm64: saved registers, and the bits that ask for a reschedule.
//!
//! Tried in emulated machines with kernels before the lazy bit and after it; the bit of the real-time
//! patches was seen on none.

use crate::kernel::resched::{Evidence, ReschedBits};

/// The member of `pt_regs` that keeps the number of the system call.
pub(in crate::kernel) const SYSCALL_MEMBER: &str = "syscallno";
/// The member of `pt_regs` that keeps its first argument.
pub(in crate::kernel) const ARGUMENT_MEMBER: &str = "orig_x0";

/// Timers and other CPUs interrupt by handlers like those of devices.
pub(in crate::kernel) const HAS_VECTOR_EVENTS: bool = false;

/// From `arch/arm64/include/asm/thread_info.h` of the versions named.
pub(in crate::kernel) fn resched_bits(evidence: Evidence) -> ReschedBits {
    ReschedBits {
        urgent: 1,
        lazy: if evidence.has_patch_lazy {
            Some(8)
        } else if evidence.has_mainline_lazy {
            Some(2)
        } else {
            None
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::arch::check;

    #[test]
    fn bit_of_reschedule_stays_and_its_lazy_twin_moves() {
        check(resched_bits, (6, 1), (false, false), (1, None));
        check(resched_bits, (6, 1), (false, true), (1, Some(8)));
        check(resched_bits, (6, 17), (true, false), (1, Some(2)));
    }

    #[test]
    fn registers_are_those_kept_for_restarts_and_timers_are_devices() {
        let table = (SYSCALL_MEMBER, ARGUMENT_MEMBER, HAS_VECTOR_EVENTS);
        assert_eq!(table, ("syscallno", "orig_x0", false));
    }
}
