//! Which method solves a box.

use crosswarp_shmem::Pe;

use super::Outcome;
use super::space::run_by;
use super::space_alone::Alone;
use crate::element::Real;
use crate::engine::cpu::multigrid::space::hierarchy::Hierarchy;
use crate::engine::cuda::multigrid::space::GpuBox;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;
use crate::problem::space::Problem3d;

/// Solves by any method but Jacobi's. Collective; see [`solve_3d`](crate::solve_3d).
pub(crate) fn run<F: Real>(
    pe: &Pe,
    problem: &Problem3d<F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Outcome<F>, SolveError> {
    let by_cycles = options.method.cycles().is_some();
    if options.gpu.is_some() {
        GpuBox::check(problem.size)?;
    }
    match by_cycles {
        true => run_by::<F, Hierarchy>(pe, problem, options, observer),
        false => run_by::<F, Alone>(pe, problem, options, observer),
    }
}
