//! schedlat: why did this task not run when it wanted to?
//!
//! Data flows one way: `kernel` → `observe` → `model` → `analysis` → `report`; `cli` connects them.
//! `probe` measures with threads of its own, and `reconcile` pairs that with what the kernel saw.

pub mod analysis;
pub mod cli;
pub mod clocks;
pub mod cpus;
pub mod doctor;
mod error;
pub mod host;
pub mod kernel;
pub mod model;
pub mod observe;
pub mod probe;
pub mod reconcile;
pub mod report;
pub mod tasks;
pub mod topology;
pub mod units;

pub use error::Error;
