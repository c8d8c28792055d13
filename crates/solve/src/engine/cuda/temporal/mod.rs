//! Passes of several sweeps: how a band is cut.

pub(crate) mod block_order;
pub(crate) mod strips;
