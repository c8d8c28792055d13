//! GPUs as PEs: symmetric memory, worlds and teams, waits inside kernels, and the verbs in stream order.

pub(crate) mod by_address;
pub(crate) mod collective;
pub(crate) mod error;
pub(crate) mod heap;
pub(crate) mod kernels;
pub(crate) mod nccl;
pub(crate) mod on_stream;
pub(crate) mod route;
pub(crate) mod sources;
pub(crate) mod spmd;
pub(crate) mod team;
pub(crate) mod view;
mod vmm;
pub(crate) mod wait;
pub(crate) mod world;
