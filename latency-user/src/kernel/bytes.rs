//! Bytes from the kernel: reading all there are, and making values of them.

use std::{
    fs::File,
    io::{self, Read as _},
    mem::MaybeUninit,
};

use aya::Pod;

/// Reads to the end. The kernel answers EAGAIN where it wants to be asked again.
pub(super) fn read_all(file: &mut File, output: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => output.extend_from_slice(&buffer[..n]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Copies a boundary type out of bytes of at least its length.
pub(crate) fn from_bytes<T: Pod>(bytes: &[u8]) -> T {
    assert!(
        bytes.len() >= size_of::<T>(),
        "the caller has checked the length"
    );
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: the length was checked; the two do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), size_of::<T>());
    }
    // SAFETY: every byte was written, and every bit pattern of a `Pod` is valid.
    unsafe { value.assume_init() }
}
