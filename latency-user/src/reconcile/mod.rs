//! Pairs what a probe measured with what the kernel saw of it. Pure functions.

pub mod busy;
pub mod yields;
