//! What probes measured beside what the kernel saw of it: pure functions, without I/O and without a clock.
//!
//! Owns the pairing of samples with events (`wake`), and what all probes say of their conditions.

mod conditions;
pub mod pingpong;
pub mod wake;

pub use self::conditions::{doubts, others, rows_of};
