//! How a ladder is run.

use crate::measure::Plan;

/// How a ladder is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Elements, samples, points, or rows and columns.
    pub size: usize,
    /// Bins of histograms; `None` for the usual numbers.
    pub bins: Option<u32>,
    /// How long each rung is measured.
    pub plan: Plan,
}
