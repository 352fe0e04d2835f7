//! Everything that can stop a measurement, one variant per thing a user can act on.

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {}
