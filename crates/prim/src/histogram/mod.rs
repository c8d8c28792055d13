//! Histograms: how many samples, or how much weight, fall into each bin.
//!
//! [`Bins`] says which bin a sample belongs to, in arithmetic that is the same everywhere, so counts
//! are equal on CPU and GPU, for any number of threads, blocks and PEs. [`Histogram`] counts on the CPU,
//! [`DeviceHistogram`](crate::cuda::DeviceHistogram) on a GPU.
//!
//! # Which bin
//! As in NumPy: bin k holds the samples x with edge k ≤ x < edge k + 1, and the last bin those that are
//! its upper edge, too. So 0, 1, 2 and 3 in three even bins from 0 to 3 are 1, 1 and 2.
//!
//! | bins | samples | bin of x |
//! |---|---|---|
//! | [`even`](Bins::even) | integers | ⌊(x − low) · bins / (high − low)⌋, exactly; bins − 1 for x = high |
//! | | `f32`, `f64` | the integer part of (x − low) · scale, at most bins − 1, for low ≤ x ≤ high |
//! | [`integers`](Bins::integers) | integers | x − low, for low ≤ x < high: a bin is one value |
//! | [`edges`](Bins::edges) | all | the last k with edge k ≤ x, at most bins − 1 |
//!
//! Here scale = bins / (high − low), and each operation is rounded once, to nearest even, in the type of the samples:
//! no fused multiply-add, no flush to zero. So a floating-point sample closer to an even edge than the roundings of
//! three operations can lie on either side of it, the same one everywhere; with explicit edges it can not. There NumPy
//! may differ: it compares with the rounded edges of its `linspace`, also for integers, whose even edges here are exact
//! fractions. To get its bins there, too, pass its edges to [`edges`](Bins::edges).
//!
//! Samples are integers of 8 to 64 bits, or `f32` and `f64`; GPUs count `u8`, `u16`, `i32`, `f32` and `f64`.
//!
//! Samples outside are dropped, or count in the first or last bin ([`OutOfRange`]). A NaN is in no bin
//! and is dropped in any case.
//!
//! # What is counted
//! Totals are 64-bit. Weights are 32-bit unsigned integers, and their totals are exact modulo 2^64.
//! There are no floating-point weights: their sums would depend on the order or cost a
//! [`Superaccumulator`](crate::Superaccumulator) a bin. Scale them to integers instead.

mod bins;
mod count;
pub(crate) mod cuda;
mod edges;
mod error;
mod even;
mod key;
mod rule;
mod sample;

pub use bins::{Bins, OutOfRange};
pub use count::Histogram;
pub use error::{BinsError, HistogramError};
pub use sample::{DeviceSample, Sample};

pub(crate) use rule::{BinRule, Tables, Visit};
