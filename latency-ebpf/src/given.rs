//! What an exported function is given: the verifier takes its pointers for null until they are looked at.

/// The value behind a pointer that the caller made from a reference.
#[inline(always)]
pub(crate) fn given<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: null, or made from a reference that outlives the call.
    unsafe { pointer.as_ref() }
}

/// As above, to be written.
#[inline(always)]
pub(crate) fn given_mut<'a, T>(pointer: *mut T) -> Option<&'a mut T> {
    // SAFETY: as above; no two arguments of a call overlap.
    unsafe { pointer.as_mut() }
}
