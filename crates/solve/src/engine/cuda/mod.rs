//! Solves on GPUs: the same field bits, norms and stopping sweep as on the CPU.
//!
//! A PE's rows live in its GPU's memory ([`plane`], [`line`]). The kernels round as the CPU does: the same fixed
//! expression a cell, no contraction; leaves of the norm in the same order; their sums added exactly into the words of
//! a superaccumulator, with integer atomics, in any order.

mod arena;
pub(crate) mod kernels;
mod layout;
pub(crate) mod line;
pub(crate) mod multigrid;
mod on_chip;
pub(crate) mod plane;
pub(crate) mod sources;
mod sums;
mod temporal;
