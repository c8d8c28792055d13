//! Everything that can end a command, with its exit code.

use std::io;

use crosswarp::prim::histogram::{BinsError, HistogramError};
use crosswarp::prim::{DeviceTransposeError, ReduceError, TransposeError};
use crosswarp::shmem::{InitError, LaunchError, WorldError};
use crosswarp::solve::{CheckpointError, PeError, ProblemError as GridError, SolveError};

use crate::expression::ExpressionError;
use crate::image_input::ImageError;
use crate::npy::NpyError;
use crate::outputs::SameOutput;
use crate::problem::ProblemError;
use crate::staged::OutputError;

/// Exit code of a solve that did not converge.
pub const NOT_CONVERGED: i32 = 3;
/// Exit code when standard output was closed: what a shell shows for SIGPIPE.
pub const CLOSED_OUTPUT: i32 = 141;

/// What ends a command.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The arguments do not make a problem.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The problem makes no sense.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// Two outputs with one name.
    #[error(transparent)]
    SameOutput(#[from] SameOutput),
    /// A formula without a finite value somewhere.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// More cells than this machine can hold.
    #[error(
        "{cells} cells need {needed:.1} GiB for two copies of the field, this machine has {present:.1} GiB"
    )]
    Memory {
        /// Number of cells.
        cells: u128,
        /// Memory for two copies.
        needed: f64,
        /// Memory and swap of the machine.
        present: f64,
    },
    /// A number that only the wider type holds.
    #[error(
        "{value:e} is more than f32 can hold ({:e} at most); use --dtype f64",
        f32::MAX
    )]
    BeyondSingle {
        /// The number.
        value: f64,
    },
    /// A wrong combination of arguments, in words.
    #[error("{0}")]
    Usage(String),
    /// An NPY file.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A PNG to read.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A file to write.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The threads' world.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The processes' world.
    #[error(transparent)]
    Init(#[from] InitError),
    /// The launcher.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The C library.
    #[error(transparent)]
    Install(#[from] crate::install::InstallError),
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
    Driver(#[from] crosswarp::cuda::CudaError),
    /// A kernel that does not compile.
    #[error(transparent)]
    Kernels(#[from] crosswarp::cuda::TableError),
    /// A measurement.
    #[error(transparent)]
    Bench(#[from] crosswarp::lab::bench::BenchError),
    /// A profile.
    #[error(transparent)]
    Profile(#[from] crate::lab::ProfilingError),
    /// A ladder.
    #[error(transparent)]
    Ladder(#[from] crosswarp::lab::ladder::LadderError),
    /// A kernel of the user's.
    #[error(transparent)]
    Kernel(#[from] crate::lab::KernelError),
    /// A file to read.
    #[error("cannot read {}: {source}", path.display())]
    Input {
        /// The file.
        path: std::path::PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file of measured rows.
    #[error("{}: {source}", path.display())]
    Rows {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        source: crosswarp::lab::measure::ReadError,
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

impl CliError {
    /// The exit code.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Problem(ProblemError::File(_)) => 1,
            Self::Problem(_)
            | Self::Grid(_)
            | Self::SameOutput(_)
            | Self::Expression(_)
            | Self::Bins(_)
            | Self::BeyondSingle { .. }
            | Self::Usage(_)
            | Self::Ladder(crosswarp::lab::ladder::LadderError::Size { .. }) => 2,
            Self::Solve(error) if crate::solve::is_usage(error) => 2,
            Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => CLOSED_OUTPUT,
            _ => 1,
        }
    }

    /// Whether the error only says that another PE has failed.
    pub fn is_echo(&self) -> bool {
        match self {
            Self::Solve(error) => matches!(
                error,
                SolveError::Pe(PeError::Collective(_) | PeError::Wait(_))
                    | SolveError::Checkpoint(CheckpointError::Elsewhere { .. })
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

    /// Whether a compiler's or another program's lines may be in it.
    pub fn has_lines(&self) -> bool {
        matches!(
            self,
            Self::Kernel(
                crate::lab::KernelError::Source { .. } | crate::lab::KernelError::Compile { .. }
            ) | Self::Cuda(_)
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
