//! Errors of histograms.

use crosswarp_shmem::{AllocError, CollectiveError};

use crate::source::ReadError;

/// Bins that make no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BinsError {
    /// None at all, or too many.
    #[error("{bins} bins: from 1 to {most} are possible")]
    Count {
        /// How many were asked for.
        bins: usize,
        /// The most there can be.
        most: usize,
    },
    /// A range that holds nothing, or whose ends are not numbers.
    #[error("the range from {low} to {high} is empty: the lower end must be below the upper")]
    Range {
        /// Its lower end.
        low: f64,
        /// Its upper end.
        high: f64,
    },
    /// An end of a range of floating-point samples that is infinite or so far from, or near to, the
    /// other that the width of a bin is no normal number.
    #[error("{bins} bins from {low} to {high} have no finite width in the samples' type")]
    Scale {
        /// Its lower end.
        low: f64,
        /// Its upper end.
        high: f64,
        /// How many bins.
        bins: u32,
    },
    /// An integer bound beyond what 32-bit samples can reach.
    #[error("{bound} is no bound for integer samples: from -2147483648 to 2147483648 are possible")]
    Bound {
        /// The bound.
        bound: i64,
    },
    /// An integer bound beyond what samples of a wide type can reach.
    #[error(
        "{bound} is no bound for these samples: from {least} to {} are possible",
        greatest + 1
    )]
    WideBound {
        /// The bound.
        bound: i128,
        /// The least sample there can be.
        least: i128,
        /// The greatest.
        greatest: i128,
    },
    /// Too few edges for a bin.
    #[error("a bin is between two edges, and there {}", if *edges == 0 { "are none" } else { "is only one" })]
    Edges {
        /// How many there are: 0 or 1.
        edges: usize,
    },
    /// Edges that do not ascend.
    #[error("edge {index} ({edge}) is not at or above edge {} ({before})", index - 1)]
    Unsorted {
        /// Which edge, counted from 0.
        index: usize,
        /// Its value.
        edge: f64,
        /// The value of the one before.
        before: f64,
    },
}

/// A histogram that could not be made. Over a team every PE gets an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// Not one weight per sample.
    #[error("{samples} samples need as many weights, got {weights}")]
    Weights {
        /// Number of samples.
        samples: usize,
        /// Number of weights.
        weights: usize,
    },
    /// Samples or weights of a [`Source`](crate::Source) could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No room for the totals in the symmetric heap.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// A collective of the team failed, or its PEs passed different bins.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}
