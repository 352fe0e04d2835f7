//! Two accounts of the same moments beside each other: a probe's, or somebody else's, and the kernel's.
//!
//! Pure functions on the model, without I/O and without a clock.

pub mod foreign;
