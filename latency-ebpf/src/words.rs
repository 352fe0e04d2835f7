//! Copying, clearing and adding by words.
//!
//! The compiler turns plain loops and assignments of this size into calls of `memcpy` and `memset`,
//! which go byte by byte here.

use core::intrinsics::{AtomicOrdering, atomic_xadd};

/// Copies all words.
#[inline(always)]
pub(crate) fn copy<T: Copy, const N: usize>(to: &mut [T; N], from: &[T; N]) {
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: a valid reference.
        unsafe { core::ptr::write_volatile(to, *from) };
    }
}

/// Sets all words to 0.
#[inline(always)]
pub(crate) fn clear<const N: usize>(words: &mut [u64; N]) {
    for word in words {
        // SAFETY: a valid reference.
        unsafe { core::ptr::write_volatile(word, 0) };
    }
}

/// Adds to a word of a map that interrupts, or other CPUs, may be adding to; what it was before.
///
/// Not `Relaxed`: of that LLVM makes an addition that does not tell the word before.
#[inline(always)]
pub(crate) fn add_atomically(word: *mut u64, by: u64) -> u64 {
    // SAFETY: the word lies in a map's value, at a multiple of eight bytes, and all writes are atomic.
    unsafe { atomic_xadd::<_, _, { AtomicOrdering::SeqCst }>(word, by) }
}

/// Copies a name.
#[inline(always)]
pub(crate) fn copy_name(to: &mut [u8; 16], from: &[u8; 16]) {
    for half in 0..2 {
        set_half(to, half, half_of(from, half));
    }
}

/// Whether two names are one.
#[inline(always)]
pub(crate) fn is_same_name(one: &[u8; 16], other: &[u8; 16]) -> bool {
    half_of(one, 0) == half_of(other, 0) && half_of(one, 1) == half_of(other, 1)
}

#[inline(always)]
#[expect(
    clippy::cast_ptr_alignment,
    reason = "BPF loads need no alignment here"
)]
fn half_of(name: &[u8; 16], half: usize) -> u64 {
    let words = name.as_ptr().cast::<u64>();
    // SAFETY: within the name.
    unsafe { words.wrapping_add(half).read_volatile() }
}

#[inline(always)]
#[expect(
    clippy::cast_ptr_alignment,
    reason = "BPF stores need no alignment here"
)]
fn set_half(name: &mut [u8; 16], half: usize, value: u64) {
    let words = name.as_mut_ptr().cast::<u64>();
    // SAFETY: within the name.
    unsafe { words.wrapping_add(half).write_volatile(value) };
}
