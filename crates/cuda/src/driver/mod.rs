//! The CUDA driver: the library, GPUs, streams, events, graphs and memory.

pub(crate) mod device;
pub(crate) mod error;
pub(crate) mod graph;
pub(crate) mod libcuda;
pub(crate) mod memory;
pub(crate) mod stream;
