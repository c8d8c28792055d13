//! Which source this command is built from.

/// The commit; rows of benchmarks have it.
pub const COMMIT: &str = env!("CROSSWARP_COMMIT");
