//! Debian packages from the machine's own mirror: unpacked under `target/`, or installed.
//!
//! [`archive`] fetches packages of any suite without touching the system's apt state; [`install`]
//! installs the programs the tests drive; [`sources`] knows which mirror the machine uses.

pub(crate) mod archive;
pub(crate) mod install;
pub(crate) mod sources;
