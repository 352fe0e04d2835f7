//! Reports of probes: a frame that is the same for all, in text and in JSON, around the tables of one.

mod json;
mod text;

pub use self::{json::render as json, text::render as text};
