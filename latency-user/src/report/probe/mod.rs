//! Reports of probes: a frame that is the same for all, in text and in JSON, around the tables of one.

mod json;
mod pingpong;
mod text;
mod wake;

pub use self::{
    json::render as json, pingpong::render as pingpong_text, wake::render as wake_text,
};
