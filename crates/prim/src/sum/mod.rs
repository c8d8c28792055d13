//! Reproducible sums: the leaf, which is added in floating point in a fixed order, and the superaccumulator, to which
//! leaves are added exactly.

pub mod leaf;
pub(crate) mod leaf_total;
mod pair;
pub(crate) mod rounding;
pub(crate) mod superaccumulator;
pub(crate) mod vector_leaf;
