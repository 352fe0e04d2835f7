//! The report of `schedlat verify`, as text and as JSON.

mod json;
mod text;

pub use self::{json::render as json, text::render as text};

#[cfg(test)]
mod fixture;
