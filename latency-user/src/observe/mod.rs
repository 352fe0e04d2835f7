//! A recording session: targets in, snapshots out.
//!
//! It drives the kernel side and turns its records into the model; it prints nothing and judges nothing.

mod attribution;
mod cgroups;
mod child;
mod convert;
mod cost;
mod ended;
mod flight;
mod glob;
mod interrupts;
mod names;
mod options;
mod sent;
mod session;
mod switches;
mod targets;
mod threshold;
mod waits;
mod watch;

pub use child::{Child, CommandOutput, CommandReader, signal_group, status_code, terminate};
pub use options::{DEFAULT_HISTOGRAMS, DEFAULT_RING_BYTES, SessionOptions};
pub use session::Session;
pub use targets::{TargetArgs, Targets};
pub use watch::Watch;
