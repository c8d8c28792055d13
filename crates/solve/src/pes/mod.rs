//! What the PEs of a solve must know of each other: small sums and minima over all of them.

pub(crate) mod agree;
pub(crate) mod reduction;
