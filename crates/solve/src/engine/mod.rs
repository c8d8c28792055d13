//! What makes the sweeps: processors and GPUs.

pub(crate) mod cpu;
pub(crate) mod cuda;
pub(crate) mod slab;
