//! A kernel that watches its own locks (`CONFIG_PROVE_LOCKING`).

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::boot;

const STATS: &str = "/proc/lockdep_stats";

/// No lock was taken in an order, or in a context, in which another one may wait for it for ever: the
/// kernel ceases to watch once it has found that. The last check of a machine, as it is of all that ran.
pub(super) fn no_trouble() -> Result<String> {
    let stats = fs::read_to_string(STATS).context("this kernel does not watch its locks")?;
    let figure = |name: &str| {
        let value = stats
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(name))
            .and_then(|rest| rest.split_whitespace().next());
        value.with_context(|| format!("{STATS} has no {name}"))
    };
    let bad = boot::complaints(0)?;
    ensure!(bad.is_empty(), "the kernel complains: {bad:?}");
    ensure!(
        figure("debug_locks:")? == "1",
        "the kernel has ceased to watch its locks"
    );
    Ok(format!(
        "{} dependencies of locks seen",
        figure("direct dependencies:")?
    ))
}
