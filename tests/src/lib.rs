//! Tests of schedlat that need root and a live kernel, and the workloads whose answers they know.
//!
//! Owns the workloads (`workload`), the ways to run the binary and a load beside it (`schedlat`,
//! `load`, `cgroup`), the tests' own reading of the JSON contract (`report`), the kernel's counters
//! (`truth`), and the judgements that live tests and the VM share (`check`, `guest`).
//! Nothing here measures; everything it sets is undone when its value is dropped.

pub mod bpf_object;
pub mod btf;
pub mod cgroup;
pub mod check;
pub mod disk;
pub mod guest;
pub mod interrupts;
pub mod load;
pub mod observe;
mod outcome;
pub mod probe;
pub mod report;
pub mod schedlat;
pub mod spin;
mod standing;
pub mod truth;
pub mod workload;
