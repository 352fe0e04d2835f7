//! A recording session: targets in, snapshots out.
//!
//! It drives the kernel side and turns its records into the model; it prints nothing and judges nothing.

mod attribution;
pub(crate) mod cgroups;
mod child;
pub(crate) mod convert;
mod cost;
mod ended;
mod flight;
pub(crate) mod glob;
mod interrupts;
mod names;
mod options;
pub(crate) mod sent;
mod session;
mod switches;
mod targets;
pub(crate) mod threshold;
mod waits;
mod watch;

pub use child::{Child, CommandOutput, CommandReader, signal_group, status_code, terminate};
pub use options::{DEFAULT_HISTOGRAMS, DEFAULT_RING_BYTES, SessionOptions};
pub use session::Session;
pub use targets::{TargetArgs, Targets};
pub use watch::Watch;
