//! Reports of probes: a frame that is the same for all, in text and in JSON, around the tables of one.

mod json;
pub(super) mod text;
mod wake;

pub use self::{json::render as json, wake::render as wake_text};
