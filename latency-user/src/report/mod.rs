//! Reports as bytes: text for people, JSON and CSV for programs, folded stacks for flame graphs. One format per file.
//!
//! A report goes in and text comes out; nothing is measured or estimated here. Names were made
//! printable by `analysis::escape`; each format adds only its own quoting.

pub mod bench;
pub mod csv;
#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod fixture_attribution;
pub mod folded;
pub mod json;
pub mod perfetto;
pub mod probe;
pub mod text;
pub mod verify;

/// The version that is named in every format.
const VERSION: &str = env!("CARGO_PKG_VERSION");
