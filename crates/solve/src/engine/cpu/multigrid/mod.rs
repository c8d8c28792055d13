//! Multigrid on the CPU.
//!
//! The finest level is in `f64` and holds the field; the coarse ones hold corrections, in `f32` unless the caller wants
//! otherwise: what a cycle leaves is corrected by the next, so their rounding costs no digit.

mod blocks;
pub(crate) mod coarse;
pub(crate) mod coefficients;
pub(crate) mod cycle;
pub(crate) mod dense;
pub(crate) mod finest;
pub(crate) mod finest_level;
mod finest_rows;
pub(crate) mod galerkin;
mod galerkin_product;
mod half_rows;
pub(crate) mod hierarchy;
mod hooks;
pub(crate) mod interpolation;
mod neighbours;
pub(crate) mod operator_rows;
mod red_black;
pub(crate) mod row_table;
mod rows;
pub(crate) mod shape;
pub(crate) mod smoothing;
pub(crate) mod space;
pub(crate) mod sums;
mod transfer_rows;
mod wavefront;
mod written;
