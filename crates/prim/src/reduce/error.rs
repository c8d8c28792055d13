//! Errors of reductions.

use crosswarp_shmem::{AllocError, CollectiveError};

use crate::source::ReadError;
use crate::{DType, Op};

/// A reduction that has no result. Over a team every PE gets an error, the same one unless a GPU failed,
/// and the team can go on, except after [`Alloc`](Self::Alloc) and [`Collective`](Self::Collective).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReduceError {
    /// There are no elements, and the operation has no value for none.
    #[error("{op} of no elements is undefined")]
    Empty {
        /// The operation.
        op: Op,
    },
    /// The flag of [`Reducer::stop_when`](crate::Reducer::stop_when) was set.
    #[error("{op} was stopped")]
    Stopped {
        /// The operation.
        op: Op,
    },
    /// Not as many input arrays as the operation takes.
    #[error("{op} takes {expected} input array(s), got {got} on PE {pe}")]
    Inputs {
        /// The operation.
        op: Op,
        /// The first PE with the wrong number; 0 without a team.
        pe: usize,
        /// Arrays the operation takes.
        expected: usize,
        /// Arrays given.
        got: usize,
    },
    /// Two input arrays of unequal length.
    #[error("{op} needs inputs of the same length, got {left} and {right} elements on PE {pe}")]
    Length {
        /// The operation.
        op: Op,
        /// The first PE with unequal lengths; 0 without a team.
        pe: usize,
        /// Elements of the first input.
        left: u64,
        /// Elements of the second input.
        right: u64,
    },
    /// The PEs of the team called different reductions.
    #[error("PE 0 called {op} of {dtype}, but PE {pe} called {other_op} of {other_dtype}")]
    Mismatch {
        /// What PE 0 called.
        op: Op,
        /// With which element type.
        dtype: DType,
        /// The first PE that called something else.
        pe: usize,
        /// What that one called.
        other_op: Op,
        /// With which element type.
        other_dtype: DType,
    },
    /// An operation that is not there for segments.
    #[error(
        "segments can be reduced by sum, mean, norm2 and dot of floats, not by {op} of {dtype}"
    )]
    NotSegmented {
        /// The operation.
        op: Op,
        /// The element type.
        dtype: DType,
    },
    /// Expressions are of floating-point elements.
    #[error("expressions are summed over floats, not over {dtype}")]
    NoExpression {
        /// The element type.
        dtype: DType,
    },
    /// A GPU, its driver or the compiler of its kernels failed.
    #[error(transparent)]
    Cuda(#[from] crosswarp_cuda::Error),
    /// Elements of a [`Source`](crate::Source) could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Another PE has no result of its part to add; it got the error that says why.
    #[error("PE {pe} could not reduce its part")]
    PeerFailed {
        /// The first such PE.
        pe: usize,
    },
    /// No room for the exchange in the symmetric heap.
    #[error(transparent)]
    Alloc(#[from] AllocError),
    /// A collective of the team failed.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

impl From<crosswarp_cuda::CudaError> for ReduceError {
    fn from(error: crosswarp_cuda::CudaError) -> Self {
        Self::Cuda(error.into())
    }
}

impl From<crosswarp_cuda::LaunchError> for ReduceError {
    fn from(error: crosswarp_cuda::LaunchError) -> Self {
        Self::Cuda(error.into())
    }
}
