//! When the reader of a ring is woken.
//!
//! It polls: a wakeup from under the runqueue lock would add to what is measured. Only where a quarter of the
//! ring is used, which the reader might find too late, is it told.

use aya_ebpf::bindings::{
    BPF_RB_AVAIL_DATA, BPF_RB_FORCE_WAKEUP, BPF_RB_NO_WAKEUP, BPF_RB_RING_SIZE,
};

use crate::maps::RECORDS;

/// Flags of a submission that wakes nobody.
pub(crate) const NO_WAKEUP: u64 = BPF_RB_NO_WAKEUP as u64;

/// Whether one part in so many of the ring of records is used.
#[inline(always)]
pub(crate) fn is_used(one_in: u64) -> bool {
    let used = RECORDS.query(BPF_RB_AVAIL_DATA.into());
    used >= RECORDS.query(BPF_RB_RING_SIZE.into()) / one_in
}

/// Flags for the submission of a record.
///
/// VERIFIER: exported, so that it is verified once and not for each caller.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn urgency() -> u32 {
    if is_used(4) {
        BPF_RB_FORCE_WAKEUP
    } else {
        BPF_RB_NO_WAKEUP
    }
}
