//! What `crosswarp bench` measures of GPUs beside peers: the rows, each measured by [`measure`](crate::measure).

mod reduce;
mod shmem;

use crosswarp_cuda::{CudaError, DeviceWorldError, SyncError};
use crosswarp_prim::ReduceError;
use crosswarp_shmem::CollectiveError;

pub use reduce::reduce;
pub use shmem::{SHMEM, shmem};

/// A measurement that failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The device world or a launch.
    #[error(transparent)]
    World(#[from] DeviceWorldError),
    /// The compiler, the driver or a module.
    #[error(transparent)]
    Cuda(#[from] crosswarp_cuda::Error),
    /// A kernel.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The PEs did not meet.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// A sum.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
}

impl From<CudaError> for BenchError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error.into())
    }
}
