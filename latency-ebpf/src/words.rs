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

/// Copies a name, which lies at an address divisible by eight wherever we keep one.
#[inline(always)]
pub(crate) fn copy_name(to: &mut [u8; 16], from: &[u8; 16]) {
    let (to, from) = (
        (&raw mut *to).cast::<u64>(),
        (&raw const *from).cast::<u64>(),
    );
    for word in 0..2 {
        // SAFETY: within the name; loads and stores need no alignment here.
        let value = unsafe { from.wrapping_add(word).read_volatile() };
        // SAFETY: as above.
        unsafe { to.wrapping_add(word).write_volatile(value) };
    }
}

/// Whether two names are one.
#[inline(always)]
pub(crate) fn is_same_name(one: &[u8; 16], other: &[u8; 16]) -> bool {
    let (one, other) = (
        (&raw const *one).cast::<u64>(),
        (&raw const *other).cast::<u64>(),
    );
    let mut difference = 0;
    for word in 0..2 {
        // SAFETY: within the name; loads need no alignment here.
        let words = unsafe {
            (
                one.wrapping_add(word).read_volatile(),
                other.wrapping_add(word).read_volatile(),
            )
        };
        difference |= words.0 ^ words.1;
    }
    difference == 0
}
