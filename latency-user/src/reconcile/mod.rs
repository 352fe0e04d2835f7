//! What probes measured, ours and others', beside what the kernel saw of it: pure functions, without I/O
//! and without a clock.
//!
//! Owns the pairing of samples with events (`wake`), what all probes say of their conditions, and the
//! judgement of foreign tools (`foreign`).

mod conditions;
pub mod foreign;
pub mod wake;

pub use self::conditions::{doubts, others, rows_of};
