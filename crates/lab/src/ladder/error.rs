//! Why a ladder ended early.

use crosswarp_cuda::{CudaError, LaunchError, ModuleError};

/// Why a ladder ended early.
#[derive(Debug, thiserror::Error)]
pub enum LadderError {
    /// A size that the rungs can not take.
    #[error("{subject} of size {size}: wanted is a multiple of {unit} from {least} to {most}")]
    Size {
        /// The subject.
        subject: &'static str,
        /// What was asked for.
        size: usize,
        /// What it must be a multiple of.
        unit: usize,
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// The GPU, the compiler, or a launch.
    #[error(transparent)]
    Cuda(#[from] crosswarp_cuda::Error),
    /// A rung of Crosswarp's own, or a peer.
    #[error("{rung}: {reason}")]
    Rung {
        /// The rung.
        rung: &'static str,
        /// What it said.
        reason: String,
    },
}

impl From<CudaError> for LadderError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error.into())
    }
}

impl From<LaunchError> for LadderError {
    fn from(error: LaunchError) -> Self {
        Self::Cuda(error.into())
    }
}

impl From<ModuleError> for LadderError {
    fn from(error: ModuleError) -> Self {
        Self::Cuda(error.into())
    }
}
