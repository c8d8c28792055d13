//! Reductions whose result bits depend only on the values and their index: not on threads, PEs,
//! the split between them, or the width of the machine's vectors.
//!
//! [`Reducer`] reduces a slice, on one thread or many, or an array of which each PE of a team holds a
//! contiguous part. [`histogram`] counts samples in bins, in integers, so there it is the same by nature.
//! [`Transposer`], [`DeviceTransposer`] and [`WorldTransposer`] transpose on the CPU, on a GPU, and over the
//! GPUs of several PEs.
//!
//! # How a sum is made reproducible
//! 1. A *leaf* ([`mod@leaf`]) is 2048 consecutive elements by global index. Its 128 lanes (index
//!    mod 128) each add their 16 elements in order, starting from −0.0, and are then combined by
//!    halving. Only here does adding round, in an order that is fixed.
//! 2. Leaf sums are added *exactly* into an integer [`Superaccumulator`]. Integer addition commutes,
//!    so the parts of an array may be added anywhere and in any order.
//! 3. The exact total is rounded once, to nearest even.
//!
//! Nothing is contracted to fused multiply-adds and no subnormal is flushed to zero. A result that is
//! NaN is the canonical quiet NaN.
//!
//! # Values near the ends of the range
//! A leaf that its type is too narrow for is computed again. In `f32` (so of `f16` and `bf16`, too) that is a leaf
//! whose value is not finite, or, in [`norm2`](Reducer::norm2), one below 2^−100 with an element other than 0 below
//! 2^−63, whose square is no normal number. It is computed in `f64`, by the same rule, and added exactly. In `f64` the
//! terms of a leaf that is not finite are added exactly. So a sum of finite elements is never NaN, and infinite only if
//! the exact result rounds beyond the range of its type; a norm of `f32` neither overflows nor underflows on the way.
//! Products of two elements and squares of `f64` are rounded to `f64` first: one beyond its range is infinite, as
//! IEEE 754 has it, and a square below it is lost. A product of all elements ([`prod`](Reducer::prod)) over- and
//! underflows on the way like any.
//!
//! # What is the same, whatever the threads, PEs, cuts and vectors
//! | operation | types | result | also independent of the elements' order | no elements |
//! |---|---|---|---|---|
//! | `sum`, `dot` | floats | `f32` (`f64` for `f64`) | no | +0.0 |
//! | | integers | `i64`, `u64`, modulo 2^64 | yes | 0 |
//! | `exact_sum` | floats | `f32` (`f64` for `f64`) | yes | +0.0 |
//! | | integers | as `sum` | yes | 0 |
//! | `prod` | floats | `f32` (`f64` for `f64`) | no | 1 |
//! | | integers | `i64`, `u64`, modulo 2^64 | yes | 1 |
//! | `mean` | floats | `f32` (`f64` for `f64`) | no | error |
//! | | integers | `f64`, correctly rounded | yes | error |
//! | `norm2` | floats | `f32` (`f64` for `f64`) | no | +0.0 |
//! | | integers | `f64` | yes | +0.0 |
//! | `min`, `max` | all | the element type | yes | error |
//! | `argmin`, `argmax` | all | `u64`, the lowest such global index | | error |
//!
//! The contract is about one version of this crate, on any machine with IEEE 754 arithmetic.

pub mod cuda;
mod element_type;
mod float;
pub mod histogram;
mod kernels;
mod pool;
mod reduce;
mod simd;
mod source;
mod staged_upload;
mod sum;
mod threads;
mod transpose;

pub use element_type::{DType, Scalar, Value};
pub use float::Float;
pub use reduce::{Element, Op, ReduceError, Reducer, UnknownOp};
pub use simd::{Loop, Simd};
pub use source::{ReadError, Source};
pub use sum::leaf;
pub use sum::superaccumulator::Superaccumulator;
pub use transpose::cuda::{DeviceTransposeError, DeviceTransposer, WorldTransposer};
pub use transpose::{Layout, TransposeError, Transposer, part_len, rows_of};

/// For the other crates of the project.
#[doc(hidden)]
pub mod internal {
    pub use crate::kernels::{KERNELS, units};
    pub use crate::pool::{rest, share};
    pub use crate::reduce::{Rows, first_extremum};
    pub use crate::sum::leaf_total::LeafTotal;
    pub use crate::transpose::cuda::{TextbookTile, TextbookTransposer};
}

// The README's program runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
