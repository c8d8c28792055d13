//! Why a bench ended early.

use crosswarp_cuda::{CudaError, DeviceWorldError, SyncError};
use crosswarp_prim::histogram::{BinsError, HistogramError};
use crosswarp_prim::{DeviceTransposeError, ReduceError, TransposeError};
use crosswarp_shmem::{AllocError, CollectiveError, DeliveryError, WaitError};
use crosswarp_solve::SolveError;

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
    /// No room in the symmetric heap.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// A put did not arrive.
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    /// A signal or a lock.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// A histogram.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// A transposition on a processor.
    #[error(transparent)]
    HostTranspose(#[from] TransposeError),
    /// A sum.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
    /// Bins of a histogram.
    #[error(transparent)]
    Bins(#[from] BinsError),
    /// A transposition.
    #[error(transparent)]
    Transpose(#[from] DeviceTransposeError),
    /// A solve.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

impl From<CudaError> for BenchError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error.into())
    }
}
