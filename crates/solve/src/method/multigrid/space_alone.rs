//! The finest level of a box alone, for methods that need no other.

use super::chebyshev::{self, ChebyshevSteps};
use super::gradients::turn;
use super::plain_gradients::{self, Descended, GradientSteps, three};
use super::space::{DIAGONAL, Kept, Levels, Made, Solver};
use super::space_bound::least_eigenvalue;
use super::steps::{Ended, Holder};
use crate::element::Real;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::space::finest_level::{DEPTH, Workspace, alone};
use crate::engine::cpu::multigrid::space::level::Level;
use crate::engine::cpu::multigrid::space::line::Line;
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::engine::cuda::multigrid::exchange;
use crate::engine::cuda::multigrid::space::steps::BoxSteps;
use crate::engine::cuda::multigrid::steps::Part;
use crate::field::band::Band;
use crate::field::checkpoint::CheckpointKind;
use crate::field::storage::Field;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Method, Options};
use crate::pes::agree::all_ready_by;

/// The finest level, and what the method has to know of it.
pub(super) struct Alone {
    top: Level,
    work: Workspace,
    /// No eigenvalue of D⁻¹A is less, but for 0 of a singular problem; 0 where no method needs to know.
    least: f64,
}

impl Levels for Alone {
    const DEPTH: usize = DEPTH;
    fn top(&self) -> &Level {
        &self.top
    }
    fn top_mut(&mut self) -> &mut Level {
        &mut self.top
    }
    fn leave_field(&mut self) {
        self.top.leave_field();
    }
    fn count(&self) -> usize {
        0
    }
    fn shapes(_: &[Line; 3], _: &Shape) -> Vec<Shape> {
        Vec::new()
    }
    fn new<F: Real>(made: Made<'_, '_, F>) -> Result<Alone, SolveError> {
        let Made {
            problem,
            lines,
            ends,
            shape,
            scale,
            points,
            singular,
            method,
            reduction,
            ..
        } = made;
        let made = alone(lines, shape, points).map_err(SolveError::Memory);
        let top = all_ready_by(reduction, made)?;
        let least = match method {
            Method::Chebyshev => {
                let operator = &top.operator;
                least_eigenvalue(problem, operator, ends, singular, scale, reduction)?
            }
            _ => 0.0,
        };
        Ok(Alone {
            work: Workspace::new(&top),
            top,
            least,
        })
    }
    fn solve<F: Real>(
        solver: &mut Solver<'_, F, Self>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        match options.method {
            Method::Chebyshev => solver.chebyshev(ended, options, observer),
            _ => solver.plain_gradients(ended, options, observer),
        }
    }
}

impl<'a, F: Real> Solver<'a, F, Alone> {
    fn chebyshev(
        &mut self,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let least = self.levels.least;
        ended.carried = Some(chebyshev::carried(least));
        let made = self.levels.top.field(DEPTH).map_err(SolveError::Memory);
        let mut d = all_ready_by(&self.reduction, made)?;
        if let Some(path) = &options.resume {
            let (kind, others) = (CheckpointKind::Chebyshev, vec![&mut d]);
            if !self.resume(path, kind, |_, _| Ok(others), ended, options)? {
                return Ok(());
            }
        }
        let gpu = self.give_to_gpu(options, [(Part::P, &d)])?;
        ended.on_gpu = gpu.is_some();
        ended.setup_seconds = self.so_far();
        if gpu.is_none() {
            self.levels.top.update(&mut self.rows)?;
        }
        let mut steps = InBox {
            solver: self,
            kept: [d],
            others: [],
            parts: [Part::P],
            gpu,
        };
        let done = chebyshev::iterate(&mut steps, least, ended, options, observer);
        steps.solver.rows.gpus.leave_after(&done);
        done?;
        Ok(steps.fetch()?)
    }

    fn plain_gradients(
        &mut self,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let new = || self.levels.top.field(DEPTH);
        let made = three(new).map_err(SolveError::Memory);
        let [mut r, mut p, q] = all_ready_by(&self.reduction, made)?;
        if let Some(path) = &options.resume {
            let (kind, others) = (CheckpointKind::Gradients, vec![&mut r, &mut p]);
            if !self.resume(path, kind, |_, _| Ok(others), ended, options)? {
                return Ok(());
            }
        }
        let gpu = self.give_to_gpu(options, [(Part::R, &r), (Part::P, &p)])?;
        ended.on_gpu = gpu.is_some();
        ended.setup_seconds = self.so_far();
        let mut steps = InBox {
            solver: self,
            kept: [r, p],
            others: [q],
            parts: [Part::R, Part::P],
            gpu,
        };
        let done = plain_gradients::iterate(&mut steps, ended, options, observer);
        steps.solver.rows.gpus.leave_after(&done);
        done?;
        Ok(steps.fetch()?)
    }

    /// Gives the level and `others` to the GPU of `options`, if there is one. Collective.
    fn give_to_gpu<const N: usize>(
        &mut self,
        options: &Options<'_>,
        others: [(Part, &Field<f64>); N],
    ) -> Result<Option<BoxSteps>, SolveError> {
        let Some(gpu) = &options.gpu else {
            return Ok(None);
        };
        let shape = &self.levels.top.operator.shape;
        exchange::reach::<f64>(&mut self.rows, gpu, shape, [])?;
        let made = BoxSteps::of_box(gpu, &self.levels.top).and_then(|steps| {
            for (part, field) in others {
                steps.load(part, field)?;
            }
            Ok(steps)
        });
        Ok(Some(all_ready_by(&self.reduction, made)?))
    }
}

/// A box, with the fields that a method has beside u: `K` that the next step goes on with, and `N` others.
struct InBox<'s, 'a, F, const K: usize, const N: usize> {
    solver: &'s mut Solver<'a, F, Alone>,
    kept: [Field<f64>; K],
    others: [Field<f64>; N],
    /// What a GPU calls `kept`.
    parts: [Part; K],
    gpu: Option<BoxSteps>,
}

impl<F: Real, const K: usize, const N: usize> InBox<'_, '_, F, K, N> {
    /// Brings the field from the GPU.
    fn fetch(&mut self) -> Result<(), GpuError> {
        match &self.gpu {
            Some(gpu) => gpu.save_field(&mut self.solver.levels.top),
            None => Ok(()),
        }
    }
}

impl<F: Real, const K: usize, const N: usize> Holder for InBox<'_, '_, F, K, N> {
    fn state(&mut self) -> Result<Kept<'_>, GpuError> {
        self.fetch()?;
        if let Some(gpu) = &self.gpu {
            for (part, field) in self.parts.into_iter().zip(&mut self.kept) {
                gpu.save(part, field)?;
            }
        }
        Ok(self.solver.held(self.kept.iter_mut().collect()))
    }

    fn field(&mut self) -> Result<Band<f64>, SolveError> {
        self.fetch()?;
        Ok(self.solver.band()?.0)
    }

    fn not_finite_on(&self) -> Option<usize> {
        self.solver.totals.not_finite_on
    }
}

impl<F: Real> ChebyshevSteps for InBox<'_, '_, F, 1, 0> {
    fn step(&mut self, weights: [f64; 2], interrupted: bool) -> Result<([f64; 2], bool), GpuError> {
        let (solver, [d]) = (&mut *self.solver, &mut self.kept);
        if let Some(gpu) = &mut self.gpu {
            let sums = gpu.chebyshev(&mut solver.rows, weights)?;
            return Ok(solver.norms_of(sums, interrupted)?);
        }
        let mut sums = solver.sums();
        let Alone { top, work, .. } = &mut solver.levels;
        work.chebyshev_step(top, &mut solver.rows, d, weights, &mut sums)?;
        Ok(solver.norms(sums, interrupted)?)
    }
}

impl<F: Real> GradientSteps for InBox<'_, '_, F, 2, 1> {
    fn measure(&mut self) -> Result<[f64; 2], GpuError> {
        let solver = &mut *self.solver;
        if let Some(gpu) = &self.gpu {
            let sums = gpu.measure(&mut solver.rows)?;
            return Ok(solver.norms_of(sums, false)?.0);
        }
        let mut sums = solver.sums();
        let Alone { top, work, .. } = &mut solver.levels;
        work.measure(top, &mut solver.rows, &mut sums)?;
        Ok(solver.norms(sums, false)?.0)
    }

    fn begin(&mut self) -> Result<f64, GpuError> {
        let (solver, [r, p]) = (&mut *self.solver, &mut self.kept);
        if let Some(gpu) = &self.gpu {
            gpu.residual(&mut solver.rows)?;
            gpu.turn(None)?;
            let sum = gpu.square(&mut solver.rows)?;
            return Ok(solver.total_of([sum], false)?.0[0]);
        }
        let [mut sum] = solver.sums();
        let Alone { top, work, .. } = &mut solver.levels;
        work.residual(top, &mut solver.rows, r)?;
        turn(top.operator.shape.own(), p, r, None);
        top.product(r, r, &mut sum);
        Ok(solver.total([sum], false)?.0[0])
    }

    fn curvature(&mut self) -> Result<f64, GpuError> {
        let (solver, [_, p], [q]) = (&mut *self.solver, &mut self.kept, &mut self.others);
        if let Some(gpu) = &self.gpu {
            let sum = gpu.curve(&mut solver.rows)?;
            return Ok(-solver.total_of([sum], false)?.0[0]);
        }
        let [mut sum] = solver.sums();
        let Alone { top, work, .. } = &mut solver.levels;
        work.negative_product(top, &mut solver.rows, p, q, &mut sum)?;
        let ([sum], _) = solver.total([sum], false)?;
        Ok(-sum)
    }

    fn descend(&mut self, alpha: f64, interrupted: bool) -> Result<(Descended, bool), GpuError> {
        let (solver, [r, p], [q]) = (&mut *self.solver, &mut self.kept, &mut self.others);
        let sums = match &self.gpu {
            Some(gpu) => {
                let [squares, of_field, _] = gpu.descend(&mut solver.rows, alpha, false)?;
                [squares, of_field]
            }
            None => {
                let mut sums = solver.sums();
                let Alone { top, work, .. } = &mut solver.levels;
                work.descend(top, r, p, q, alpha, &mut sums);
                sums.map(LeafSums::total)
            }
        };
        let ([squares, of_field], interrupted) = solver.total_of(sums, interrupted)?;
        let descended = Descended {
            norm: squares.sqrt(),
            // The operator is symmetric as it is.
            inner: squares,
            field: of_field.sqrt() / DIAGONAL,
        };
        Ok((descended, interrupted))
    }

    fn turn(&mut self, beta: f64) -> Result<(), GpuError> {
        if let Some(gpu) = &self.gpu {
            return gpu.turn(Some(beta));
        }
        let [r, p] = &mut self.kept;
        turn(
            self.solver.levels.top.operator.shape.own(),
            p,
            r,
            Some(beta),
        );
        Ok(())
    }
}
