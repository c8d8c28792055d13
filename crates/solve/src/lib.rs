//! Laplace's and Poisson's equation on large grids, by Jacobi sweeps or multigrid cycles, over any number of PEs.
//!
//! A solve stops at the same sweep, with the same bits in the field and in the norm of every sweep, for any number of
//! PEs (threads or processes), any depth of temporal blocking and any vector unit. How:
//! * a cell's new value is one fixed expression of its neighbours, never fused or reassociated ([`Problem2d`]);
//! * the norm of a sweep is summed per leaf of global coordinates (16 rows × 128 columns; in 1-D 2048 points) in a
//!   fixed order, and the leaves' sums are added exactly ([`crosswarp_prim::Superaccumulator`]);
//! * a pass of several sweeps leaves the norm of each, and is repeated with fewer sweeps when the stop lies inside it.
//!
//! [`Method::Multigrid`] makes cycles instead, with the same promise for their residuals. What follows is of sweeps.
//!
//! Each PE owns whole bands of leaves. It exchanges halos with its neighbours once per pass of T sweeps, T rows deep,
//! by put and signal; the norms of the T sweeps meet in one reduction. The grid is read and written in memory once per
//! pass, not once per sweep.
//!
//! [`Method::Multigrid`] solves planes and boxes on CPUs and GPUs to a small residual in about ten cycles, whatever their size, mask and sides
//! ([`Method::ConjugateGradients`] in fewer steps), and keeps the promise about bits: all it does to a cell is a fixed
//! expression of cells around it, on every level, and its norms are sums as above. So do [`Method::Chebyshev`] and
//! [`Method::PlainGradients`], which know the grid itself only.

mod element;
mod engine;
mod exchange;
mod field;
mod gpu;
mod method;
#[cfg(test)]
mod no_memory;
mod pes;
mod problem;
mod solution;
mod solve;
mod solver;
mod staged_file;
mod stop;

pub use element::Real;
pub use engine::cuda::multigrid::operator::DeviceOperator;
pub use engine::cuda::multigrid::voids::DeviceVoids;
pub use field::checkpoint::{CheckpointError, CheckpointKind, checkpoint_kind};
pub use field::view::FieldView;
pub use gpu::Gpu;
pub use gpu::choice::{Choice, Declined};
pub use gpu::error::GpuError;
pub use gpu::strategy::{Strategy, UnknownStrategy};
pub use method::error::SolveError;
pub use method::jacobi::Progress;
pub use method::multigrid::arrays::DeviceArrays;
pub use method::options::{Checkpointing, Cycles, First, Method, Options, OptionsError};
pub use pes::error::PeError;
pub use problem::space::{PlaneSource, Problem3d, Side};
pub use problem::{Boundary, Norm, Problem1d, Problem2d, ProblemError, Robin, RowSource};
pub use solution::Solution;
pub use solve::{
    fill_on_device, solve_1d, solve_2d, solve_2d_on_device, solve_3d, solve_3d_on_device,
};
pub use solver::{Gradients, Solver2d};

/// For the other crates of the project.
#[doc(hidden)]
pub mod internal {
    pub use crate::engine::cuda::sources::KERNELS;
    pub use crate::staged_file::{OutputError, StagedFile};
}
