//! The finest level alone, for methods that need no other.

use super::{Ended, Levels, Solver};
use crate::engine::cpu::multigrid::finest_level::FinestLevel;
use crate::engine::cuda::multigrid::exchange;
use crate::engine::cuda::multigrid::steps::{Part, PlaneSteps};
use crate::field::storage::Field;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Method, Options};
use crate::pes::agree::all_ready_by;

/// The finest level, and what the method has to know of it.
pub(crate) struct Alone {
    pub top: FinestLevel,
    /// No eigenvalue of D⁻¹A is less, but for 0 of a singular problem; 0 where no method needs to know.
    pub least: f64,
}

impl Levels for Alone {
    fn top(&self) -> &FinestLevel {
        &self.top
    }
    fn top_mut(&mut self) -> &mut FinestLevel {
        &mut self.top
    }
    fn count(&self) -> usize {
        0
    }
    fn solve(
        solver: &mut Solver<'_, Self>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        match options.method {
            Method::Chebyshev => solver.chebyshev(u, right_side, ended, options, observer),
            _ => solver.plain_gradients(u, right_side, ended, options, observer),
        }
    }
}

impl Solver<'_, Alone> {
    /// Gives the level, `u`, `right_side` and `others` to the GPU of `options`, if there is one. Collective.
    pub(super) fn give_to_gpu<const N: usize>(
        &mut self,
        options: &Options<'_>,
        u: &Field<f64>,
        right_side: Option<&Field<f64>>,
        others: [(Part, &Field<f64>); N],
    ) -> Result<Option<PlaneSteps>, SolveError> {
        let Some(gpu) = &options.gpu else {
            return Ok(None);
        };
        exchange::reach::<f64>(&mut self.rows, gpu, &self.layout.shape, [])?;
        let made = PlaneSteps::plane(gpu, self.equations(), u, right_side, self.layout.first[1]);
        let made = made.and_then(|steps| {
            for (part, field) in others {
                steps.load(part, field)?;
            }
            Ok(steps)
        });
        Ok(Some(all_ready_by(&self.reduction, made)?))
    }
}
