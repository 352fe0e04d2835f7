//! How tasks are chosen in the kernel: a compiled glob, and the words user space may change at run time.

/// Most globs of one recording.
pub const N_GLOBS: usize = 16;

/// Most elements (characters, classes, `?`) of one glob; names have 15 characters.
pub const GLOB_ELEMENTS: usize = 63;

/// A glob as a bit-parallel automaton: bit `i` of the state means that `i` elements have matched.
///
/// One step on byte `c`: `((state & accepts[c]) << 1) | (state & stars)`.
/// This needs no backtracking, so the verifier sees fifteen plain steps.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Glob {
    /// For each byte, the elements that accept it.
    pub accepts: [u64; 256],
    /// The states at which `*` lets any byte pass.
    pub stars: u64,
    /// The state in which the whole glob has matched.
    pub accept_state: u64,
}

impl Glob {
    /// The state before the first byte.
    pub const START: u64 = 1;

    /// The state after one more byte.
    #[inline]
    #[must_use]
    pub fn step(&self, state: u64, byte: u8) -> u64 {
        // A `u8` always indexes within 256.
        ((state & self.accepts[byte as usize]) << 1) | (state & self.stars)
    }
}

/// Words that user space changes while programs run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Control {
    /// New processes made by this thread are followed; 0 for none.
    pub spawner_tid: u32,
    /// 1 once the tasks that existed at the start have been looked at.
    pub is_seeded: u32,
    /// Stacks are taken where somebody has waited longer.
    pub stacks_over_ns: u64,
}
