//! Which method solves a box.

use crosswarp_shmem::Pe;

use super::Outcome;
use super::space::run_by;
use super::space_alone::Alone;
use crate::element::Real;
use crate::engine::cpu::multigrid::space::hierarchy::Hierarchy;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Options, OptionsError};
use crate::problem::space::Problem3d;

/// Solves by any method but Jacobi's. Collective; see [`solve_3d`](crate::solve_3d).
pub(crate) fn run<F: Real>(
    pe: &Pe,
    problem: &Problem3d<F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Outcome<F>, SolveError> {
    match options.method.cycles() {
        Some(_) => run_by::<F, Hierarchy>(pe, problem, options, observer),
        None if options.gpu.is_some() => {
            let method = options.method.name();
            Err(OptionsError::NotOnGpu { method }.into())
        }
        None => run_by::<F, Alone>(pe, problem, options, observer),
    }
}
