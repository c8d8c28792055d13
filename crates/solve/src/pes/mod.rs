//! What the PEs of a solve tell each other besides halos: sums and minima of a few words, and whether all are ready.

pub(crate) mod agree;
pub(crate) mod error;
pub(crate) mod reduction;
