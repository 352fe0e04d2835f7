//! What holds whatever others hand us: the bodies of the fuzz targets, and tests with their seeds.
//!
//! Each function gives bytes to everything of ours that reads such bytes, and panics where a promise is
//! broken. The fuzzer calls it with what it invents (`cargo xtask fuzz`, by the feature `fuzz`), the tests
//! with its seeds and with random bytes: every promise is written once.

mod arguments;
mod dump;
mod foreign;
mod names;
mod rows;
#[cfg(test)]
mod tests;

pub use self::{arguments::arguments, foreign::foreign, names::names, rows::rows};

use crate::analysis::escape;

/// Whether a terminal shows the text as one line, in its order.
fn is_harmless(text: &str) -> bool {
    !text.chars().any(char::is_control) && escape::text(text) == text
}
