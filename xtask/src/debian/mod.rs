//! Debian packages from the machine's own mirror, unpacked under `target/`.
//!
//! [`archive`] fetches packages of any suite without touching the system's apt state; [`sources`]
//! knows which mirror the machine uses.

pub(crate) mod archive;
mod sources;
