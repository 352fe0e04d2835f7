//! Reports of probes: a frame that is the same for all, in text and in JSON, around the tables of one.

mod busy;
mod json;
mod pingpong;
pub(super) mod text;
mod wake;
mod yields;

pub use self::{
    busy::render as busy_text, json::render as json, pingpong::render as pingpong_text,
    wake::render as wake_text, yields::render as yield_text,
};
