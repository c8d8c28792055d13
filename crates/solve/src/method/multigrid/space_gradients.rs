//! Conjugate gradients with a cycle in each step, in a box.

use super::gradients::{self, Gradients, Pair, PreconditionedSteps};
use super::space::{Kept, Levels, Solver};
use super::steps::{Ended, Holder};
use crate::element::Real;
use crate::engine::cpu::multigrid::space::hierarchy::Hierarchy;
use crate::engine::cpu::multigrid::space::level::DEPTH;
use crate::engine::cuda::multigrid::space::steps::BoxGradients;
use crate::field::band::Band;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Method, Options};
use crate::pes::agree::all_ready_by;

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
        let may_leave = matches!(options.method, Method::Automatic(_));
        let gpu = self.steps_on_gpu(&fields, begun, may_leave)?;
        let mut steps = InBox {
            solver: self,
            fields,
            keep: begun,
            gpu,
        };
        let done = gradients::iterate(&mut steps, begun, ended, options, observer);
        steps.solver.rows.gpus.leave_after(&done);
        done?;
        Ok(steps.fetch()?)
    }

    /// As that of a plane. Collective.
    fn steps_on_gpu(
        &mut self,
        fields: &Gradients,
        begun: bool,
        may_leave: bool,
    ) -> Result<Option<BoxGradients>, SolveError> {
        let Some(levels) = self.gpu.take() else {
            return Ok(None);
        };
        let (made, ready) = match BoxGradients::of_levels(levels) {
            Ok(gpu) => {
                let given = fields.give(&gpu, begun);
                (Ok(gpu), given)
            }
            Err(failed) => {
                let (levels, error) = *failed;
                (Err(levels), Err(error))
            }
        };
        let top = self.levels.top_mut();
        match (all_ready_by(&self.reduction, ready), made) {
            (Ok(()), Ok(gpu)) => return Ok(Some(gpu)),
            (Err(error), _) if !may_leave => return Err(error.into()),
            (_, Ok(gpu)) => gpu.save_field(top)?,
            (_, Err(levels)) => levels.save(top)?,
        }
        Ok(None)
    }
}

/// A box.
struct InBox<'s, 'a, F> {
    solver: &'s mut Solver<'a, F, Hierarchy>,
    fields: Gradients,
    keep: bool,
    gpu: Option<BoxGradients>,
}

impl<F: Real> InBox<'_, '_, F> {
    /// Brings the field from the GPU.
    fn fetch(&mut self) -> Result<(), GpuError> {
        match &self.gpu {
            Some(gpu) => gpu.save_field(self.solver.levels.top_mut()),
            None => Ok(()),
        }
    }
}

impl<F: Real> Holder for InBox<'_, '_, F> {
    fn state(&mut self) -> Result<Kept<'_>, GpuError> {
        self.fetch()?;
        if let Some(gpu) = &self.gpu
            && self.keep
        {
            self.fields.take(gpu)?;
        }
        let others = match self.keep {
            true => self.fields.kept_mut().into(),
            false => Vec::new(),
        };
        Ok(self.solver.held(others))
    }

    fn field(&mut self) -> Result<Band<f64>, SolveError> {
        self.fetch()?;
        Ok(self.solver.band()?.0)
    }

    fn not_finite_on(&self) -> Option<usize> {
        self.solver.totals.not_finite_on
    }
}

impl<F: Real> PreconditionedSteps for InBox<'_, '_, F> {
    fn begin(&mut self) -> Result<(), GpuError> {
        if let Some(gpu) = &self.gpu {
            return gpu.residual(&mut self.solver.rows);
        }
        let Hierarchy { levels, work, .. } = &mut self.solver.levels;
        let r = &mut self.fields.r;
        Ok(work.residual(&mut levels[0], &mut self.solver.rows, r)?)
    }

    fn precondition(&mut self, _: f64) -> Result<(), GpuError> {
        let Gradients { r, z, .. } = &mut self.fields;
        let solver = &mut *self.solver;
        if let Some(gpu) = &mut self.gpu {
            return gpu.precondition(&mut solver.rows, 0);
        }
        Ok(solver.levels.precondition(&mut solver.rows, z, r)?)
    }

    fn product(&mut self, of: Pair) -> Result<f64, GpuError> {
        if let Some(gpu) = &self.gpu {
            let sum = of.on_gpu(gpu, &mut self.solver.rows)?;
            return Ok(self.solver.total_of([sum], false)?.0[0]);
        }
        let [a, b] = of.of(&self.fields);
        let [mut sum] = self.solver.sums();
        self.solver.levels.levels[0].product(a, b, &mut sum);
        Ok(self.solver.total([sum], false)?.0[0])
    }

    fn turn(&mut self, beta: Option<f64>) -> Result<(), GpuError> {
        if let Some(gpu) = &self.gpu {
            return gpu.turn_to_correction(beta);
        }
        let Gradients { z, p, .. } = &mut self.fields;
        let planes = self.solver.levels.levels[0].operator.shape.own();
        gradients::turn(planes, p, z, beta);
        Ok(())
    }

    fn apply(&mut self) -> Result<f64, GpuError> {
        let Gradients { p, q, .. } = &mut self.fields;
        let solver = &mut *self.solver;
        if let Some(gpu) = &self.gpu {
            let sum = gpu.curve(&mut solver.rows)?;
            return Ok(-solver.total_of([sum], false)?.0[0]);
        }
        let [mut sum] = solver.sums();
        let Hierarchy { levels, work, .. } = &mut solver.levels;
        work.negative_product(&levels[0], &mut solver.rows, p, q, &mut sum)?;
        let ([sum], _) = solver.total([sum], false)?;
        Ok(-sum)
    }

    fn descend(&mut self, alpha: f64, interrupted: bool) -> Result<([f64; 2], bool), GpuError> {
        if let Some(gpu) = &self.gpu {
            let [of_residual, of_field, _] = gpu.descend(&mut self.solver.rows, alpha, true)?;
            let sums = [of_residual, of_field];
            return Ok(self.solver.norms_of(sums, interrupted)?);
        }
        let Gradients { r, p, q, .. } = &mut self.fields;
        let mut sums = self.solver.sums();
        let Hierarchy { levels, work, .. } = &mut self.solver.levels;
        work.descend(&mut levels[0], r, p, q, alpha, &mut sums);
        for plane in levels[0].operator.shape.own() {
            q.row_mut(plane).iter_mut().for_each(|q| *q = -(alpha * *q));
        }
        Ok(self.solver.norms(sums, interrupted)?)
    }

    fn measure(&mut self) -> Result<[f64; 2], GpuError> {
        if let Some(gpu) = &self.gpu {
            let sums = gpu.measure(&mut self.solver.rows)?;
            return Ok(self.solver.norms_of(sums, false)?.0);
        }
        self.solver.measure()
    }

    fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }
}
