//! Sweeps on processors: passes of several sweeps while rows are in cache, written once for all vector units.

pub(crate) mod line;
mod line_pass;
pub(crate) mod multigrid;
pub(crate) mod plane;
mod plane_pass;
mod plane_rows;

/// Most sweeps of one pass.
pub(crate) const MAX_DEPTH: usize = 32;
