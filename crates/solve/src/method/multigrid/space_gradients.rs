//! Conjugate gradients with a cycle in each step, in a box.

use super::gradients::{self, Gradients, Pair, PreconditionedSteps};
use super::space::{Kept, Solver};
use super::steps::{Ended, Holder};
use crate::element::Real;
use crate::engine::cpu::multigrid::space::hierarchy::Hierarchy;
use crate::engine::cpu::multigrid::space::level::DEPTH;
use crate::field::band::Band;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;
use crate::pes::agree::all_ready_by;
use crate::pes::error::PeError;

impl<F: Real> Solver<'_, F, Hierarchy> {
    /// Steps; `resumed`: the fields to go on with.
    pub fn conjugate_gradients(
        &mut self,
        resumed: Option<Gradients>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let begun = resumed.is_some();
        let fields = match resumed {
            Some(fields) => fields,
            None => {
                let level = &self.levels.levels[0];
                let made = Gradients::with(|| level.field(DEPTH)).map_err(SolveError::Memory);
                all_ready_by(&self.reduction, made)?
            }
        };
        let mut steps = InBox {
            solver: self,
            fields,
            keep: begun,
        };
        gradients::iterate(&mut steps, begun, ended, options, observer)
    }
}

/// A box.
struct InBox<'s, 'a, F> {
    solver: &'s mut Solver<'a, F, Hierarchy>,
    fields: Gradients,
    keep: bool,
}

impl<F: Real> Holder for InBox<'_, '_, F> {
    fn state(&mut self) -> Result<Kept<'_>, GpuError> {
        let others = match self.keep {
            true => self.fields.kept_mut().into(),
            false => Vec::new(),
        };
        Ok(self.solver.held(others))
    }

    fn field(&mut self) -> Result<Band<f64>, SolveError> {
        Ok(self.solver.band()?.0)
    }

    fn not_finite_on(&self) -> Option<usize> {
        self.solver.totals.not_finite_on
    }
}

impl<F: Real> PreconditionedSteps for InBox<'_, '_, F> {
    fn begin(&mut self) -> Result<(), PeError> {
        let Hierarchy { levels, work, .. } = &mut self.solver.levels;
        work.residual(&mut levels[0], &mut self.solver.rows, &mut self.fields.r)
    }

    fn precondition(&mut self, _: f64) -> Result<(), PeError> {
        let Gradients { r, z, .. } = &mut self.fields;
        let solver = &mut *self.solver;
        solver.levels.precondition(&mut solver.rows, z, r)
    }

    fn product(&mut self, of: Pair) -> Result<f64, PeError> {
        let [a, b] = of.of(&self.fields);
        let [mut sum] = self.solver.sums();
        self.solver.levels.levels[0].product(a, b, &mut sum);
        Ok(self.solver.total([sum], false)?.0[0])
    }

    fn turn(&mut self, beta: Option<f64>) {
        let Gradients { z, p, .. } = &mut self.fields;
        let planes = self.solver.levels.levels[0].operator.shape.own();
        gradients::turn(planes, p, z, beta);
    }

    fn apply(&mut self) -> Result<f64, PeError> {
        let Gradients { p, q, .. } = &mut self.fields;
        let solver = &mut *self.solver;
        let [mut sum] = solver.sums();
        let Hierarchy { levels, work, .. } = &mut solver.levels;
        work.negative_product(&levels[0], &mut solver.rows, p, q, &mut sum)?;
        let ([sum], _) = solver.total([sum], false)?;
        Ok(-sum)
    }

    fn descend(&mut self, alpha: f64, interrupted: bool) -> Result<([f64; 2], bool), PeError> {
        let Gradients { r, p, q, .. } = &mut self.fields;
        let mut sums = self.solver.sums();
        let Hierarchy { levels, work, .. } = &mut self.solver.levels;
        work.descend(&mut levels[0], r, p, q, alpha, &mut sums);
        for plane in levels[0].operator.shape.own() {
            q.row_mut(plane).iter_mut().for_each(|q| *q = -(alpha * *q));
        }
        self.solver.norms(sums, interrupted)
    }

    fn measure(&mut self) -> Result<[f64; 2], GpuError> {
        Ok(self.solver.measure()?)
    }

    fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }
}
