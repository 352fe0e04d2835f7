//! What probes measured, ours and others', beside what the kernel saw of it: pure functions, without I/O
//! and without a clock.
//!
//! Owns the pairing of samples with events (`wake`, `yields`, `busy`), the names for such events, what
//! all probes say of their conditions, and the judgement of foreign tools (`foreign`).

mod blame;
pub mod busy;
mod conditions;
pub mod foreign;
mod names;
pub mod pingpong;
pub mod wake;
pub mod yields;

use self::blame::ran_instead;
pub use self::{
    conditions::{doubts, others, rows_of},
    names::Names,
};
