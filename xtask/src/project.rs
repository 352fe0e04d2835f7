//! Where things are: the root of the project and the folders under `target/` that the tasks own.
//!
//! Promises: absolute paths, whatever the current folder; nothing here creates or removes anything.

use std::path::{Path, PathBuf};

/// The root of the project this `xtask` was built in.
pub(crate) fn root() -> &'static Path {
    // SANITY: the manifest of a workspace member always lies in a folder below the root.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies below the root of the project")
}

/// The folder `name` under `target/`, for what a task keeps between runs.
pub(crate) fn target(name: &str) -> PathBuf {
    root().join("target").join(name)
}
