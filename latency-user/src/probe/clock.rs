//! The clock of the probes, which is that of the kernel side as well.

use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, read without a system call.
#[inline]
#[must_use]
#[expect(
    clippy::cast_sign_loss,
    reason = "the clock counts from the start of the machine: it is never negative"
)]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
