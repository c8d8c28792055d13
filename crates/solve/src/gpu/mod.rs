//! The GPU of a PE: which one, how it is used, and what can go wrong.

pub(crate) mod arguments;
pub(crate) mod box_arguments;
pub(crate) mod choice;
pub(crate) mod error;
pub(crate) mod level_arguments;
pub(crate) mod strategy;

use crosswarp_cuda::Device;
use strategy::Strategy;

/// A GPU to solve on, and how.
#[derive(Clone, Copy, Debug)]
pub struct Gpu {
    /// This PE's GPU. PEs that are threads may share one.
    pub device: Device,
    /// How sweeps are launched and halos exchanged.
    pub strategy: Strategy,
}
