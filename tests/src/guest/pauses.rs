//! How long the whole machine stood still: an emulator is a process among others, and while it does not
//! run the guest's clock goes on. A wait into which that falls is as long in one account and not in the
//! other, where it falls between their readings of the clock.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use crate::{
    standing::Urgent,
    truth::{monotonic, nanos},
    workload::set_affinity,
};

/// How often to look.
const PERIOD: Duration = Duration::from_millis(5);

/// A thread that is ahead of everything is at most so late while the machine runs.
const PROMPT_NS: u64 = 500_000;

static PAUSED_NS: AtomicU64 = AtomicU64::new(0);

/// Looks from now on, on CPU 0, where no load is.
pub(super) fn watch() {
    thread::spawn(|| {
        // Elsewhere it sees the same, and disturbs more.
        drop(set_affinity(None, &[0]));
        let _urgent = Urgent::now();
        loop {
            let began = monotonic();
            thread::sleep(PERIOD);
            let took = monotonic().saturating_sub(began);
            let late_ns = nanos(took.saturating_sub(PERIOD));
            if late_ns > PROMPT_NS {
                PAUSED_NS.fetch_add(late_ns, Relaxed);
            }
        }
    });
}

/// Forgets what was before.
pub(super) fn reset() {
    PAUSED_NS.store(0, Relaxed);
}

/// How long the machine stood still since then.
pub(super) fn total_ns() -> u64 {
    PAUSED_NS.load(Relaxed)
}
