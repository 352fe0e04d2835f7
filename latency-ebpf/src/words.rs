//! Copying and clearing by words.
//!
//! The compiler turns plain loops and assignments of this size into calls of `memcpy` and `memset`,
//! which go byte by byte here.

/// Copies all words.
#[inline(always)]
pub(crate) fn copy<const N: usize>(to: &mut [u64; N], from: &[u64; N]) {
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
