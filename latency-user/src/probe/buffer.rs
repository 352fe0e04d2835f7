//! Room for the samples of one thread, made before it runs: touched, locked, and never growing.

use std::io;

/// Samples, up to a number that was fixed before.
#[derive(Debug)]
pub struct Buffer<T> {
    items: Vec<T>,
    is_locked: bool,
}

impl<T: Copy + Default> Buffer<T> {
    /// Room for `n_items`.
    #[must_use]
    pub fn with_room(n_items: usize) -> Self {
        // Written once, so that no page is missing later.
        let mut items = vec![T::default(); n_items];
        items.fill(std::hint::black_box(T::default()));
        let is_locked = lock(&items).is_ok();
        items.clear();
        Self { items, is_locked }
    }

    /// Whether it cannot be paged out.
    #[must_use]
    pub const fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Whether there is no room left.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.items.len() == self.items.capacity()
    }

    /// Keeps one more, where there is room.
    pub fn push(&mut self, item: T) {
        if !self.is_full() {
            self.items.push(item);
        }
    }

    /// What was kept. It is paged as any memory from then on.
    #[must_use]
    pub fn into_items(self) -> Vec<T> {
        self.items
    }
}

/// Pages that are freed later are unlocked by that.
fn lock<T>(items: &[T]) -> io::Result<()> {
    let bytes = size_of_val(items);
    // SAFETY: the range is that of a slice that lives through the call.
    let locked = unsafe { rustix::mm::mlock(items.as_ptr().cast_mut().cast(), bytes) };
    Ok(locked?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_keeps_what_it_has_room_for() {
        let mut buffer = Buffer::with_room(2);
        for item in 1..=3_u64 {
            assert_eq!(buffer.is_full(), item == 3);
            buffer.push(item);
        }
        assert_eq!(buffer.into_items(), [1, 2]);
        assert!(Buffer::<u64>::with_room(0).is_full());
    }
}
