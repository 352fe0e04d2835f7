//! The histogram's buckets: 32 per power of two, so that the middle of a bucket is at most 1/64 off.
//!
//! Both sides compile this file; there is no second copy of the arithmetic.

/// Sub-buckets per power of two, as a shift.
const SUB_BITS: u32 = 5;
const SUB_COUNT: u64 = 1 << SUB_BITS;

/// Number of buckets: values below 32 ns one by one, then 30 powers of two.
pub const N_BUCKETS: usize = 31 << SUB_BITS;

/// The first value beyond the last bucket: 2^35 ns, about 34 s. Larger values are counted as overflow.
pub const OVERFLOW_NS: u64 = 1 << 35;

/// The bucket of a duration; `None` from [`OVERFLOW_NS`] on.
#[inline]
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    reason = "an index below `N_BUCKETS` fits a 32-bit usize, and a const fn cannot use TryFrom"
)]
pub const fn bucket_of(ns: u64) -> Option<usize> {
    if ns >= OVERFLOW_NS {
        return None;
    }
    if ns < SUB_COUNT {
        return Some(ns as usize);
    }
    let shift = octave_of(ns);
    Some(((shift << SUB_BITS) + (ns >> shift)) as usize)
}

/// The number of the highest bit of each byte; 0 for 0.
static HIGHEST_BIT: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 2;
    while byte < 256 {
        table[byte] = table[byte / 2] + 1;
        byte += 1;
    }
    table
};

/// The power of two below `ns`, counted from that of the first logarithmic bucket. `ns` is at least 32.
///
/// BPF has no instruction that counts leading zeros; a look at the highest byte is three times as fast
/// as what the compiler puts in its place.
#[inline]
const fn octave_of(ns: u64) -> u64 {
    let shift = if ns < 1 << 16 {
        if ns < 1 << 8 { 0 } else { 8 }
    } else if ns < 1 << 24 {
        16
    } else if ns < 1 << 32 {
        24
    } else {
        32
    };
    // Below 256.
    let byte = ((ns >> shift) & 0xff) as usize;
    shift + HIGHEST_BIT[byte] as u64 - SUB_BITS as u64
}

/// The smallest duration of a bucket. `bucket` is below [`N_BUCKETS`].
#[inline]
#[must_use]
pub const fn bucket_low_ns(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * SUB_COUNT {
        return bucket;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    (SUB_COUNT + (bucket & (SUB_COUNT - 1))) << shift
}

/// The largest duration of a bucket. `bucket` is below [`N_BUCKETS`].
#[inline]
#[must_use]
pub const fn bucket_high_ns(bucket: usize) -> u64 {
    bucket_low_ns(bucket + 1) - 1
}

/// Which of a task's histograms.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistKind {
    /// Waits after a wakeup, from queued to running.
    Wakeup = 0,
    /// Waits after losing the CPU.
    Preemption = 1,
    /// From waking to running.
    Latency = 2,
    /// Waits before the first run. A task has at most one, so only the shared histogram keeps these.
    NewTask = 3,
}

/// Number of histogram kinds.
pub const N_HISTS: usize = 4;

/// Number of histogram kinds a task can own a slot for.
pub const N_TASK_HISTS: usize = 3;

/// One histogram of the pool, a page.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HistSlot {
    /// Start time (boot clock) of the task that owns the slot.
    pub owner_start_ns: u64,
    /// Thread id of the owner.
    pub owner_tid: u32,
    /// [`HistKind`] of the samples.
    pub kind: u32,
    /// Samples from [`OVERFLOW_NS`] on.
    pub overflow: u32,
    /// 1 once the owner has ended and its record could not be sent; user space then takes the slot back.
    pub is_orphan: u32,
    /// Fills the header up to 128 bytes.
    pub reserved: [u32; 26],
    /// Samples per bucket.
    pub buckets: [u32; N_BUCKETS],
}

const _: () = assert!(size_of::<HistSlot>() == 4096);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_begins_where_the_last_one_ends() {
        for bucket in 0..N_BUCKETS {
            assert_eq!(bucket_of(bucket_low_ns(bucket)), Some(bucket));
            assert_eq!(bucket_of(bucket_high_ns(bucket)), Some(bucket));
        }
        assert_eq!(bucket_high_ns(N_BUCKETS - 1) + 1, OVERFLOW_NS);
    }

    #[test]
    fn values_beyond_the_last_bucket_overflow() {
        assert_eq!(bucket_of(OVERFLOW_NS), None);
        assert_eq!(bucket_of(u64::MAX), None);
    }

    #[test]
    fn middle_of_a_bucket_is_at_most_a_64th_off() {
        for bucket in 64..N_BUCKETS {
            let (low, high) = (bucket_low_ns(bucket), bucket_high_ns(bucket));
            assert!((high - low) * 32 <= low, "bucket {bucket}");
        }
    }
}
