//! NCCL, NVIDIA's collectives library, behind one option of a device world.

pub(crate) mod communicator;
pub(crate) mod library;
mod use_nccl;
