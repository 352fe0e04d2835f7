//! Probes: threads of our own that measure actively, while the recorder watches them.
//!
//! Owns how such threads are set up (`policy`, `thread`, `buffer`), what they ran under
//! (`conditions`), what runs beside them (`load`, `preemption`), and one file for each probe. It knows
//! nothing of BPF: what the kernel saw of its threads is paired with what they measured in `reconcile`.
//! A probe's loop does nothing but what it measures: no allocation, no lock, no other system call.

pub mod buffer;
pub mod busy;
pub mod conditions;
pub mod load;
pub mod pingpong;
pub mod policy;
pub mod preemption;
pub mod thread;
pub mod wake;
pub mod watchdog;
pub mod yields;

pub use self::{
    buffer::Buffer,
    policy::Policy,
    thread::{Crew, Place, Start, Stop, StopAtEnd, Working},
};
