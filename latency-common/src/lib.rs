//! What the BPF programs and user space share: the classes of waits, the counters of a task, the
//! histogram's buckets, the records that cross the boundary, and the globals set before load.
//!
//! Everything here is `repr(C)` integers and byte arrays, or arithmetic on them, so that one source
//! defines the layout and the bucket bounds for both sides.
#![no_std]

pub mod attribution;
pub mod class;
pub mod config;
pub mod counters;
pub mod cpu;
pub mod flight;
pub mod hist;
pub mod idle;
pub mod interrupt;
pub mod loss;
#[cfg(feature = "user")]
mod pod;
pub mod record;
pub mod select;
pub mod timeline;
pub mod trace;
