//! What probes measured beside what the kernel saw of it: pure functions, without I/O and without a clock.
//!
//! Owns the pairing of samples with events (`wake`, `yields`, `busy`), the names for such events, and
//! what all probes say of their conditions.

mod blame;
pub mod busy;
mod conditions;
mod names;
pub mod pingpong;
pub mod wake;
pub mod yields;

use self::blame::ran_instead;
pub use self::{
    conditions::{doubts, others, rows_of},
    names::Names,
};
