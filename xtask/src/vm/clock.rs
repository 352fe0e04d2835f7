//! The rate of the counter that an emulated machine takes for its own: this machine's.
//!
//! Promises: the guest need not measure it, which it does wrongly where a busy host does not run it
//! meanwhile: its clock then runs several times too fast.

use std::thread;
use std::time::{Duration, Instant};

/// Two readings that lie so close together count as one.
const CLOSE: Duration = Duration::from_micros(20);

/// Between the readings that are compared.
const SPAN: Duration = Duration::from_millis(200);

/// The boot parameter that tells the rate; empty where the guest's counter is not ours.
pub(crate) fn parameter() -> String {
    let rate_khz = || {
        let (first, first_at) = reading()?;
        thread::sleep(SPAN);
        let (second, second_at) = reading()?;
        let passed_us = second_at.duration_since(first_at).as_micros().max(1);
        Some(u128::from(second - first) * 1_000 / passed_us)
    };
    rate_khz().map_or_else(String::new, |khz| format!(" tsc_early_khz={khz}"))
}

/// The counter, and the time at which it was read.
fn reading() -> Option<(u64, Instant)> {
    loop {
        let before = Instant::now();
        let count = counter()?;
        if before.elapsed() <= CLOSE {
            return Some((count, before));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "other processors have no counter that is theirs"
)]
fn counter() -> Option<u64> {
    // SAFETY: reading the counter changes nothing.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> Option<u64> {
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    #[test]
    fn rate_is_that_of_a_processor() {
        let parameter = super::parameter();
        let khz = parameter.strip_prefix(" tsc_early_khz=");
        let khz: u64 = khz.and_then(|khz| khz.parse().ok()).unwrap_or_default();
        assert!((100_000..20_000_000).contains(&khz), "{parameter}");
    }
}
