//! Idle while runnable: ∫ min(idle CPUs, waiting tasks) dt, without a lock.
//!
//! Both numbers are in one word that is only ever added to, atomically: each change learns the word before
//! it, so it knows by how much it changed the minimum. With the changes `d` of a function at the times
//! `t`, its integral up to `T` is its last value times `T`, less the sum of `t * d`.

/// One more change: the serial number of the word.
const CHANGE: u64 = 1 << 40;
/// One more waiting task.
const WAITING: u64 = 1 << 16;

/// Idle CPUs, waiting tasks, and the number of changes, modulo 2^24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleWord(pub u64);

impl IdleWord {
    /// To be added where a CPU becomes idle.
    pub const IDLE_BEGINS: u64 = CHANGE + 1;
    /// To be added where it is idle no more.
    pub const IDLE_ENDS: u64 = CHANGE - 1;
    /// To be added where a task begins to wait.
    pub const WAIT_BEGINS: u64 = CHANGE + WAITING;
    /// To be added where it waits no more.
    pub const WAIT_ENDS: u64 = CHANGE - WAITING;

    /// The word after something was added.
    #[must_use]
    pub const fn plus(self, change: u64) -> Self {
        Self(self.0.wrapping_add(change))
    }

    /// CPUs that could run a task that waits.
    #[must_use]
    pub const fn minimum(self) -> u64 {
        let idle = self.0 & (WAITING - 1);
        let waiting = (self.0 & (CHANGE - 1)) >> 16;
        if idle < waiting { idle } else { waiting }
    }

    /// Whether `n` changes, modulo 2^24, have made it.
    #[must_use]
    pub const fn is_after(self, n: u64) -> bool {
        self.0 >> 40 == n & 0xff_ffff
    }
}

/// The word, alone in its cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleCounts {
    /// An [`IdleWord`].
    pub word: u64,
    /// Fills a cache line.
    pub reserved: [u64; 7],
}

/// What each CPU added: only its own programs write it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleSums {
    /// The sum of `-t * d`, modulo 2^64.
    pub sum: u64,
    /// Changes.
    pub n_changes: u64,
    /// Time that tasks waited which may not run on all CPUs that count: they are not in the word.
    pub restricted_ns: u64,
    /// 1 while this CPU is counted as idle.
    pub is_idle: u32,
    /// 1 where this CPU counts; set by user space.
    pub counts: u32,
    /// Fills a cache line.
    pub reserved: [u64; 4],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_follows_both_counts() {
        let mut word = IdleWord(0);
        let mut minimum = |change| {
            word = word.plus(change);
            word.minimum()
        };
        assert_eq!(minimum(IdleWord::WAIT_BEGINS), 0);
        assert_eq!(minimum(IdleWord::IDLE_BEGINS), 1);
        assert_eq!(minimum(IdleWord::IDLE_BEGINS), 1);
        assert_eq!(minimum(IdleWord::WAIT_BEGINS), 2);
        assert_eq!(minimum(IdleWord::IDLE_ENDS), 1);
        assert_eq!(minimum(IdleWord::WAIT_ENDS), 1);
        assert_eq!(minimum(IdleWord::WAIT_ENDS), 0);
        assert!(word.is_after(7));
        assert!(!word.is_after(8));
    }

    #[test]
    fn serial_wraps_without_touching_the_counts() {
        let mut word = IdleWord(u64::MAX << 40).plus(IdleWord::IDLE_BEGINS);
        word = word.plus(IdleWord::WAIT_BEGINS);
        assert_eq!(word.minimum(), 1);
        assert!(word.is_after((1 << 24) + 1));
    }
}
