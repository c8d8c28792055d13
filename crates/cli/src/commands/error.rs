//! Everything that can end a command, with its exit code.

use std::io;
use std::path::PathBuf;

use crosswarp::cuda::{CudaError, TableError};
use crosswarp::lab::bench::BenchError;
use crosswarp::lab::ladder::LadderError;
use crosswarp::lab::measure::ReadError;
use crosswarp::prim::histogram::{BinsError, HistogramError};
use crosswarp::prim::{DeviceTransposeError, ReduceError, TransposeError};
use crosswarp::shmem::LaunchError;
use crosswarp::solve::{CheckpointError, SolveError};

use super::install::error::InstallError;
use super::lab::gpu::UnknownArch;
use super::solve::problem::ProblemError;
use crate::drawing::files::DrawError;
use crate::input::kernel_file::KernelError;
use crate::input::npy::NpyError;
use crate::output::paths::SameOutput;
use crate::output::staged::OutputError;
use crate::problem::load::error::LoadError;
use crate::programs::nsight_compute::ProfilingError;
use crate::world::backend::BackendError;
use crate::world::pes::{JoinError, PeError};

/// Exit code of a solve that did not converge.
pub const NOT_CONVERGED: i32 = 3;
/// Exit code when standard output was closed: what a shell shows for SIGPIPE.
pub const CLOSED_OUTPUT: i32 = 141;

/// What ends a command.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A wrong combination of arguments, in words.
    #[error("{0}")]
    Usage(String),
    /// The arguments do not make a problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The problem cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Two outputs with one name.
    #[error(transparent)]
    SameOutput(#[from] SameOutput),
    /// An NPY file.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A file to write.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A picture.
    #[error(transparent)]
    Draw(#[from] DrawError),
    /// The place to work.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The world.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The launcher.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The C library.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The solve.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The reduction.
    #[error(transparent)]
    Reduce(#[from] ReduceError),
    /// Bins that make no sense.
    #[error(transparent)]
    Bins(#[from] BinsError),
    /// The histogram.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// The transposition.
    #[error(transparent)]
    Transpose(#[from] TransposeError),
    /// The transposition on a GPU.
    #[error(transparent)]
    DeviceTranspose(#[from] DeviceTransposeError),
    /// A GPU, its driver or the compiler.
    #[error(transparent)]
    Cuda(#[from] crosswarp::cuda::Error),
    /// A call of the GPU's driver.
    #[error(transparent)]
    Driver(#[from] CudaError),
    /// A kernel of Crosswarp's that does not compile.
    #[error(transparent)]
    Kernels(#[from] TableError),
    /// A kernel of the user's.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A GPU that no model knows.
    #[error(transparent)]
    UnknownArch(#[from] UnknownArch),
    /// A measurement.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// A profile.
    #[error(transparent)]
    Profile(#[from] ProfilingError),
    /// A ladder.
    #[error(transparent)]
    Ladder(#[from] LadderError),
    /// A file of measured rows that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    ReadRows {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file of measured rows.
    #[error("{}: {source}", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ReadError,
    },
    /// This command's own file.
    #[error("cannot find this command's own file: {0}")]
    Executable(io::Error),
    /// Signal handlers.
    #[error("cannot watch for Ctrl-C: {0}")]
    Signals(io::Error),
    /// Standard output.
    #[error("cannot write to standard output: {0}")]
    Stdout(#[from] io::Error),
}

impl CommandError {
    /// The exit code.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Problem(ProblemError::File(_)) => 1,
            Self::Load(error) if error.is_usage() => 2,
            Self::Solve(SolveError::Problem(_) | SolveError::Options(_)) => 2,
            Self::Usage(_)
            | Self::Problem(_)
            | Self::SameOutput(_)
            | Self::Bins(_)
            | Self::UnknownArch(_)
            | Self::Draw(DrawError::TooLarge { .. })
            | Self::Backend(BackendError::DeviceOfCpu(_))
            | Self::Join(JoinError::Contradiction { .. })
            | Self::Ladder(LadderError::Size { .. }) => 2,
            Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => CLOSED_OUTPUT,
            _ => 1,
        }
    }

    /// Whether a compiler's or another program's lines may be in it.
    pub fn has_lines(&self) -> bool {
        matches!(
            self,
            Self::Kernel(KernelError::Source { .. } | KernelError::Compile { .. })
                | Self::Cuda(_)
                | Self::Backend(BackendError::Cuda(_))
                | Self::Kernels(_)
                | Self::Bench(_)
                | Self::Ladder(_)
                | Self::Profile(_)
                | Self::Launch(_)
                | Self::Install(_)
        )
    }

    /// Whether there is nobody left to tell.
    pub fn is_silent(&self) -> bool {
        self.exit_code() == CLOSED_OUTPUT
    }
}

impl PeError for CommandError {
    fn is_echo(&self) -> bool {
        match self {
            Self::Solve(error) => matches!(
                error,
                SolveError::Pe(
                    crosswarp::solve::PeError::Collective(_) | crosswarp::solve::PeError::Wait(_)
                ) | SolveError::Checkpoint(CheckpointError::Elsewhere { .. })
            ),
            Self::Histogram(error) => matches!(error, HistogramError::Collective(_)),
            Self::Transpose(error) => matches!(error, TransposeError::Collective(_)),
            Self::Reduce(error) => matches!(
                error,
                ReduceError::Collective(_) | ReduceError::PeerFailed { .. }
            ),
            _ => false,
        }
    }
}
