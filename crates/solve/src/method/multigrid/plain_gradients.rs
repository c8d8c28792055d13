//! Conjugate gradients without a preconditioner (M. R. Hestenes, E. Stiefel, *J. Res. Natl. Bur. Stand.* 49, 1952,
//! 409-436), in the inner product in which the operator is symmetric.

use std::io;

use super::alone::Alone;
use super::gradients::turn;
use super::held::HeldRows;
use super::steps::{Ended, Holder, fetch, raised};
use super::{LeafSums, Solver};
use crate::engine::cuda::multigrid::steps::{Part, PlaneSteps};
use crate::field::band::Band;
use crate::field::checkpoint::{CheckpointKind, Identity};
use crate::field::storage::Field;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::Options;
use crate::pes::agree::all_ready_by;
use crate::pes::reduction::Reduction;

/// Who has the fields u, r, p and q, and works on them. All is collective but [`turn`](Self::turn).
pub(super) trait GradientSteps: Holder {
    /// The norms of b − Au and, as [`Ended::stop`] takes it, of u.
    fn measure(&mut self) -> Result<[f64; 2], GpuError>;
    /// r = b − Au and p = r. ⟨r, r⟩.
    fn begin(&mut self) -> Result<f64, GpuError>;
    /// q = −Ap. ⟨p, Ap⟩.
    fn curvature(&mut self) -> Result<f64, GpuError>;
    /// u += `alpha` p and r += `alpha` q. What has come of it, and whether any PE is interrupted.
    fn descend(&mut self, alpha: f64, interrupted: bool) -> Result<(Descended, bool), GpuError>;
    /// p = r + `beta` p.
    fn turn(&mut self, beta: f64) -> Result<(), GpuError>;
}

/// r, p and q.
pub(super) fn three(field: impl Fn() -> io::Result<Field<f64>>) -> io::Result<[Field<f64>; 3]> {
    Ok([field()?, field()?, field()?])
}

/// The fields after a step.
pub(super) struct Descended {
    /// The norm of r.
    pub norm: f64,
    /// ⟨r, r⟩.
    pub inner: f64,
    /// The norm of u, as [`Ended::stop`] takes it.
    pub field: f64,
}

/// Steps until the residual is small. The residual is kept up to date, and computed anew where it says that it is.
pub(super) fn iterate(
    steps: &mut impl GradientSteps,
    ended: &mut Ended,
    options: &Options<'_>,
    observer: &mut impl FnMut(&Progress<'_>),
) -> Result<(), SolveError> {
    // 0, of a checkpoint too: the direction is to be made anew.
    let mut begun = ended.inner != 0.0;
    if ended.norms.is_empty() {
        let [norm, _] = steps.measure()?;
        if ended.begin(norm, steps, options)? {
            return Ok(());
        }
    }
    loop {
        if !begun {
            ended.inner = steps.begin()?;
        }
        let curvature = steps.curvature()?;
        let alpha = if curvature > 0.0 {
            ended.inner / curvature
        } else {
            0.0
        };
        let (descended, interrupted) = steps.descend(alpha, raised(options))?;
        let Descended {
            mut norm,
            inner,
            field,
        } = descended;
        ended.stop(norm, field, options, interrupted);
        begun = !(ended.converged || ended.floor_reached || alpha == 0.0);
        if begun {
            steps.turn(inner / ended.inner)?;
        } else {
            // Begun again if the residual that was kept up to date turns out to be off.
            [norm, _] = steps.measure()?;
            ended.stop(norm, field, options, interrupted);
            // Without a direction to go there is nothing better to be had.
            ended.floor_reached |= alpha == 0.0 && !ended.converged;
        }
        ended.inner = if begun { inner } else { 0.0 };
        if ended.took(norm, steps, options, observer)? {
            return Ok(());
        }
    }
}

impl Solver<'_, Alone> {
    /// Steps on a plane.
    pub(super) fn plain_gradients(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let made = three(|| self.equations().field()).map_err(SolveError::Memory);
        let [mut r, mut p, q] = all_ready_by(&self.reduction, made)?;
        if let Some(path) = &options.resume {
            let (kind, others) = (CheckpointKind::Gradients, [&mut r, &mut p]);
            if !self.resume(u, path, kind, |_| Ok(others.into()), ended, options)? {
                return Ok(());
            }
        }
        let others = [(Part::R, &r), (Part::P, &p)];
        let gpu = self.give_to_gpu(options, u, right_side, others)?;
        ended.on_gpu = gpu.is_some();
        ended.setup_seconds = self.so_far();
        let mut steps = OnPlane {
            solver: self,
            u,
            right_side,
            r,
            p,
            q,
            gpu,
        };
        let done = iterate(&mut steps, ended, options, observer);
        steps.solver.rows.gpus.leave_after(&done);
        done?;
        Ok(fetch(&steps.gpu, steps.u)?)
    }
}

/// A plane.
struct OnPlane<'s, 'a> {
    solver: &'s mut Solver<'a, Alone>,
    u: &'s mut Field<f64>,
    right_side: Option<&'s Field<f64>>,
    r: Field<f64>,
    p: Field<f64>,
    q: Field<f64>,
    gpu: Option<PlaneSteps>,
}

impl Holder for OnPlane<'_, '_> {
    fn state(&mut self) -> Result<(HeldRows<'_>, &Reduction<'_>, &Identity), GpuError> {
        fetch(&self.gpu, self.u)?;
        if let Some(gpu) = &self.gpu {
            gpu.save(Part::R, &mut self.r)?;
            gpu.save(Part::P, &mut self.p)?;
        }
        let solver = &*self.solver;
        let rows = solver.held(vec![&mut *self.u, &mut self.r, &mut self.p], false);
        Ok((rows, &solver.reduction, &solver.given.identity))
    }

    fn field(&mut self) -> Result<Band<f64>, SolveError> {
        fetch(&self.gpu, self.u)?;
        Ok(self.solver.band(self.u)?.0)
    }

    fn not_finite_on(&self) -> Option<usize> {
        self.solver.totals.not_finite_on
    }
}

impl GradientSteps for OnPlane<'_, '_> {
    fn measure(&mut self) -> Result<[f64; 2], GpuError> {
        let solver = &mut *self.solver;
        if let Some(gpu) = &self.gpu {
            let sums = gpu.measure(&mut solver.rows)?;
            return Ok(solver.total_of(sums, false)?.0.map(f64::sqrt));
        }
        let mut sums = solver.sums();
        let top = &mut solver.levels.top;
        top.measure(&mut solver.rows, self.u, self.right_side, &mut sums)?;
        Ok(solver.total(sums, false)?.0.map(f64::sqrt))
    }

    fn begin(&mut self) -> Result<f64, GpuError> {
        let solver = &mut *self.solver;
        if let Some(gpu) = &self.gpu {
            gpu.residual(&mut solver.rows)?;
            gpu.turn(None)?;
            let sum = gpu.square(&mut solver.rows)?;
            return Ok(solver.total_of([sum], false)?.0[0]);
        }
        solver.residual(self.u, self.right_side, &mut self.r)?;
        turn(solver.layout.shape.own(), &mut self.p, &self.r, None);
        Ok(solver.product(&self.r, &self.r)?)
    }

    fn curvature(&mut self) -> Result<f64, GpuError> {
        let solver = &mut *self.solver;
        if let Some(gpu) = &self.gpu {
            let sum = gpu.curve(&mut solver.rows)?;
            return Ok(-solver.total_of([sum], false)?.0[0]);
        }
        let [mut sum] = solver.sums();
        let (top, rows) = (&mut solver.levels.top, &mut solver.rows);
        top.negative_product(rows, &mut self.p, &mut self.q, &mut sum)?;
        let ([sum], _) = solver.total([sum], false)?;
        Ok(-sum)
    }

    fn descend(&mut self, alpha: f64, interrupted: bool) -> Result<(Descended, bool), GpuError> {
        let solver = &mut *self.solver;
        let sums = match &self.gpu {
            Some(gpu) => {
                let [squares, of_field, inner] = gpu.descend(&mut solver.rows, alpha, false)?;
                [squares, inner, of_field]
            }
            None => {
                let mut sums = solver.sums();
                let top = &mut solver.levels.top;
                top.descend(self.u, &mut self.r, &self.p, &self.q, alpha, &mut sums);
                sums.map(LeafSums::total)
            }
        };
        let ([squares, inner, of_field], interrupted) = solver.total_of(sums, interrupted)?;
        let descended = Descended {
            norm: squares.sqrt(),
            inner,
            field: of_field.sqrt(),
        };
        Ok((descended, interrupted))
    }

    fn turn(&mut self, beta: f64) -> Result<(), GpuError> {
        if let Some(gpu) = &self.gpu {
            return gpu.turn(Some(beta));
        }
        let rows = self.solver.layout.shape.own();
        turn(rows, &mut self.p, &self.r, Some(beta));
        Ok(())
    }
}
