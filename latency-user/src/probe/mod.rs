//! Probes: measure actively, with threads of their own. They know nothing of BPF.

pub mod load;
pub mod preemption;
