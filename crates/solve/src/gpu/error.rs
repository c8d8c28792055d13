//! What can go wrong on GPUs.

use crosswarp_cuda::{CudaError, DeviceWorldError, HeapError, LaunchError, SyncError};
use crosswarp_shmem::{AllocError, WaitError};

use crate::pes::error::PeError;

/// A solve on GPUs can not go on, or not as it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// The grid has more columns or rows than the kernels can number.
    #[error("a side of {longest} cells: on a GPU a side has fewer than 2^31")]
    TooLong {
        /// Cells of the longer side.
        longest: usize,
    },
    /// The box has more rows than a launch has room for.
    #[error(
        "a box of {rows} rows: on a GPU it has at most {most}, so let its columns or planes be so many, or leave the GPU out"
    )]
    TooManyRows {
        /// Rows of a plane.
        rows: usize,
        /// As many as are possible.
        most: usize,
    },
    /// Kernels of so many PEs of a GPU can not wait for each other.
    #[error("{pes} PEs on a GPU: at most {most} can put halos from kernels")]
    TooManyOnGpu {
        /// PEs of the GPU.
        pes: usize,
        /// As many as are possible.
        most: usize,
    },
    /// [`Strategy::Persistent`](crate::Strategy::Persistent) has no room for the field.
    #[error(
        "`persistent` keeps a PE's part on the chip: at most {most} cells of this problem, not {cells}"
    )]
    TooLargeForChip {
        /// Cells of the largest part.
        cells: usize,
        /// Cells that there is room for.
        most: usize,
    },
    /// The GPU, its driver or the compiler of kernels.
    #[error(transparent)]
    Cuda(#[from] crosswarp_cuda::Error),
    /// The GPUs can not work together.
    #[error(transparent)]
    DeviceWorld(#[from] DeviceWorldError),
    /// A kernel waited in vain for a neighbour, or the GPU failed.
    #[error(transparent)]
    Kernel(#[from] SyncError),
    /// No room for halos in the device heap.
    #[error(transparent)]
    DeviceHeap(#[from] HeapError),
    /// The PEs can not go on together.
    #[error(transparent)]
    Pe(#[from] PeError),
}

impl From<CudaError> for GpuError {
    fn from(error: CudaError) -> GpuError {
        GpuError::Cuda(error.into())
    }
}

impl From<LaunchError> for GpuError {
    fn from(error: LaunchError) -> GpuError {
        GpuError::Cuda(error.into())
    }
}

impl From<AllocError> for GpuError {
    fn from(error: AllocError) -> GpuError {
        GpuError::Pe(error.into())
    }
}

impl From<WaitError> for GpuError {
    fn from(error: WaitError) -> GpuError {
        GpuError::Pe(error.into())
    }
}
