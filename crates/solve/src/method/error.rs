//! What a solve can fail with.

use std::io;

use crate::field::checkpoint::CheckpointError;
use crate::gpu::error::GpuError;
use crate::method::options::OptionsError;
use crate::pes::error::PeError;
use crate::problem::ProblemError;

/// Why a solve ended without a solution.
#[derive(Debug, thiserror::Error)]
pub enum SolveError {
    /// The problem makes no sense.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The options make no sense.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The checkpoint to resume from is no use.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The field does not fit this PE's memory.
    #[error("no memory for this PE's rows: {0}")]
    Memory(#[source] io::Error),
    /// A norm that is NaN or infinite, from which a solve does not come back.
    #[error("{}", not_finite(.steps, *.step, *.norm, *.pe))]
    NotFinite {
        /// What the method makes: "sweep" or "cycle".
        steps: &'static str,
        /// The number of the one that made it, the first being 1; 0: before that.
        step: usize,
        /// Its norm.
        norm: f64,
        /// The first PE whose rows made it; none where that is not known: every PE has some, as after a cycle, which carries
        /// them everywhere, or only all together made it, or GPUs have decided among themselves.
        pe: Option<usize>,
    },
    /// The solution of a problem with large values has larger ones still.
    #[error(
        "the solution leaves the range of {dtype}: smaller values or another type would be right"
    )]
    OutOfRange {
        /// The element type.
        dtype: &'static str,
    },
    /// The GPUs can not solve it.
    #[error(transparent)]
    Gpu(GpuError),
    /// The PEs can not go on together.
    #[error(transparent)]
    Pe(#[from] PeError),
}

impl SolveError {
    /// Whether it may be one PE's own, or of PEs that are not all there: nothing is collective any more. All others are
    /// the same on every PE.
    pub(crate) fn is_of_one_pe(&self) -> bool {
        match self {
            SolveError::Memory(_) | SolveError::Gpu(_) | SolveError::Pe(_) => true,
            SolveError::Problem(_)
            | SolveError::Options(_)
            | SolveError::Checkpoint(_)
            | SolveError::NotFinite { .. }
            | SolveError::OutOfRange { .. } => false,
        }
    }
}

fn not_finite(steps: &str, step: usize, norm: f64, pe: Option<usize>) -> String {
    let why = if norm.is_nan() {
        "the field holds values that are NaN or infinite"
    } else {
        "values have grown so large that the squares of their differences overflow"
    };
    let when = match step {
        0 => format!("before the first {steps}"),
        step => format!("after {steps} {step}"),
    };
    let whose = pe.map_or_else(String::new, |pe| format!(" in the rows of PE {pe}"));
    format!("{when} the norm is {norm}{whose}, and would stay so: {why}")
}

impl From<GpuError> for SolveError {
    fn from(error: GpuError) -> SolveError {
        match error {
            GpuError::Pe(error) => SolveError::Pe(error),
            error => SolveError::Gpu(error),
        }
    }
}
