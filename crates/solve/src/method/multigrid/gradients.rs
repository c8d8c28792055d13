//! Conjugate gradients with a cycle in each step.

use std::io;
use std::ops::Range;

use crosswarp_prim::Superaccumulator;

use super::held::HeldRows;
use super::steps::{Ended, Holder, fetch, raised};
use super::{Holding, Solver};
use crate::engine::cpu::multigrid::finest::Finest;
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::engine::cpu::multigrid::shape::HALO;
use crate::engine::cuda::multigrid::steps::{
    FinestPass, GpuSteps, Part, PlaneGradients, Preconditioner,
};
use crate::exchange::level_rows::LevelRows;
use crate::field::band::Band;
use crate::field::checkpoint::Identity;
use crate::field::storage::Field;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Method, Options};
use crate::pes::agree::all_ready_by;
use crate::pes::reduction::Reduction;

/// The fields of conjugate gradients.
pub(super) struct Gradients {
    pub r: Field<f64>,
    pub z: Field<f64>,
    pub p: Field<f64>,
    /// α A p of the step before.
    pub q: Field<f64>,
}

impl Gradients {
    /// Each made by `field`.
    pub fn with(field: impl Fn() -> io::Result<Field<f64>>) -> io::Result<Gradients> {
        Ok(Gradients {
            r: field()?,
            z: field()?,
            p: field()?,
            q: field()?,
        })
    }

    pub fn new(finest: &Finest) -> io::Result<Gradients> {
        Gradients::with(|| finest.field())
    }

    /// Gives those that the next step needs to a GPU, if it is not the first one.
    pub fn give<A: FinestPass, K>(
        &self,
        gpu: &GpuSteps<A, K>,
        begun: bool,
    ) -> Result<(), GpuError> {
        if !begun {
            return Ok(());
        }
        gpu.load(Part::R, &self.r)?;
        gpu.load(Part::P, &self.p)?;
        gpu.load(Part::Q, &self.q)
    }

    /// Takes these from a GPU.
    pub fn take<A: FinestPass, K>(&mut self, gpu: &GpuSteps<A, K>) -> Result<(), GpuError> {
        gpu.save(Part::R, &mut self.r)?;
        gpu.save(Part::P, &mut self.p)?;
        gpu.save(Part::Q, &mut self.q)
    }

    /// Those that the next step needs.
    pub fn kept_mut(&mut self) -> [&mut Field<f64>; 3] {
        [&mut self.r, &mut self.p, &mut self.q]
    }
}

/// Which two fields are multiplied.
#[derive(Clone, Copy)]
pub(super) enum Pair {
    /// z and q.
    Zq,
    /// z and r.
    Zr,
    /// p and r.
    Pr,
}

/// p = z + `beta` p in `rows`; without it p = z.
pub(super) fn turn(rows: Range<isize>, p: &mut Field<f64>, z: &Field<f64>, beta: Option<f64>) {
    for at in rows {
        match beta {
            Some(beta) => {
                for (p, &z) in p.row_mut(at).iter_mut().zip(z.row(at)) {
                    *p = z + beta * *p;
                }
            }
            None => p.row_mut(at).copy_from_slice(z.row(at)),
        }
    }
}

impl Pair {
    /// The product of the two on a GPU.
    pub fn on_gpu<A: FinestPass, K: Preconditioner>(
        self,
        gpu: &GpuSteps<A, K>,
        rows: &mut LevelRows<'_>,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        match self {
            Pair::Zq => gpu.product_of_correction(rows, Part::Q),
            Pair::Zr => gpu.product_of_correction(rows, Part::R),
            Pair::Pr => gpu.product_of_direction(rows),
        }
    }

    pub fn of(self, fields: &Gradients) -> [&Field<f64>; 2] {
        let Gradients { r, z, p, q } = fields;
        match self {
            Pair::Zq => [z, q],
            Pair::Zr => [z, r],
            Pair::Pr => [p, r],
        }
    }
}

/// Who has the field u and those of [`Gradients`], and works on them. All is collective but [`turn`](Self::turn).
pub(super) trait PreconditionedSteps: Holder {
    /// r = b − Au.
    fn begin(&mut self) -> Result<(), GpuError>;
    /// z = a cycle from zero for r, whose norm is `norm`.
    fn precondition(&mut self, norm: f64) -> Result<(), GpuError>;
    /// ⟨a, b⟩, in the inner product in which the operator is symmetric.
    fn product(&mut self, of: Pair) -> Result<f64, GpuError>;
    /// p = z + `beta` p; without it p = z.
    fn turn(&mut self, beta: Option<f64>) -> Result<(), GpuError>;
    /// q = −Ap. ⟨p, Ap⟩.
    fn apply(&mut self) -> Result<f64, GpuError>;
    /// q = −`alpha` q, r = r − q, u += `alpha` p. The norms of r and, as [`Ended::stop`] takes it, of u, and whether any
    /// PE is interrupted.
    fn descend(&mut self, alpha: f64, interrupted: bool) -> Result<([f64; 2], bool), GpuError>;
    /// The norms of b − Au and of u.
    fn measure(&mut self) -> Result<[f64; 2], GpuError>;
    /// Whether the next step goes on with r, p and q.
    fn keep(&mut self, keep: bool);
}

/// Conjugate gradients with a V-cycle from zero as the preconditioner, in the inner product in which the operator is
/// symmetric. β is that of the flexible method, for a cycle in `f32` is not quite the same operator each time. `begun`:
/// whether the fields are those of a step before.
pub(super) fn iterate(
    steps: &mut impl PreconditionedSteps,
    mut begun: bool,
    ended: &mut Ended,
    options: &Options<'_>,
    observer: &mut impl FnMut(&Progress<'_>),
) -> Result<(), SolveError> {
    loop {
        if !begun {
            steps.begin()?;
        }
        steps.precondition(ended.last())?;
        // β = −α ⟨z, Ap⟩ / ⟨z, r⟩, all but z of the step before; α A p is kept in q.
        let beta = match begun {
            true => Some(-steps.product(Pair::Zq)? / ended.inner),
            false => None,
        };
        steps.turn(beta)?;
        ended.inner = steps.product(Pair::Zr)?;
        let curvature = steps.apply()?;
        let alpha = if curvature > 0.0 {
            steps.product(Pair::Pr)? / curvature
        } else {
            0.0
        };
        let ([mut norm, field], interrupted) = steps.descend(alpha, raised(options))?;
        ended.stop(norm, field, options, interrupted);
        // Begun again when the residual that was kept up to date turns out to be off.
        begun = !(ended.converged || ended.floor_reached || alpha == 0.0);
        if !begun {
            [norm, _] = steps.measure()?;
            ended.stop(norm, field, options, interrupted);
            // Without a direction to go there is nothing better to be had.
            ended.floor_reached |= alpha == 0.0 && !ended.converged;
        }
        steps.keep(begun);
        if ended.took(norm, steps, options, observer)? {
            return Ok(());
        }
    }
}

impl Solver<'_, Hierarchy<f32>> {
    /// Steps on a plane. `resumed`: the fields to go on with.
    pub(super) fn conjugate_gradients(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        resumed: Option<Gradients>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let begun = resumed.is_some();
        let fields = match resumed {
            Some(gradients) => gradients,
            None => {
                let made = Gradients::new(self.equations()).map_err(SolveError::Memory);
                all_ready_by(&self.reduction, made)?
            }
        };
        let may_leave = matches!(options.method, Method::Automatic(_));
        let gpu = self.steps_on_gpu(u, &fields, begun, may_leave)?;
        let mut steps = OnPlane {
            solver: self,
            u,
            right_side,
            fields,
            keep: begun,
            gpu,
        };
        let done = iterate(&mut steps, begun, ended, options, observer);
        steps.solver.rows.gpus.leave_after(&done);
        done?;
        Ok(fetch(&steps.gpu, steps.u)?)
    }

    /// Goes on with the GPU that has the levels; `u` has the field then only if that has no room, where one `may_leave` it,
    /// and there is none. Collective.
    fn steps_on_gpu(
        &mut self,
        u: &mut Field<f64>,
        fields: &Gradients,
        begun: bool,
        may_leave: bool,
    ) -> Result<Option<PlaneGradients>, SolveError> {
        let Some(cycles) = self.gpu.take() else {
            return Ok(None);
        };
        let (made, ready) = match PlaneGradients::of_cycles(cycles) {
            Ok(gpu) => {
                let given = fields.give(&gpu, begun);
                (Ok(gpu), given)
            }
            Err(failed) => {
                let (cycles, error) = *failed;
                (Err(cycles), Err(error))
            }
        };
        match (all_ready_by(&self.reduction, ready), made) {
            (Ok(()), Ok(gpu)) => return Ok(Some(gpu)),
            (Err(error), _) if !may_leave => return Err(error.into()),
            (_, Ok(gpu)) => gpu.save(Part::U, u)?,
            (_, Err(cycles)) => cycles.save(u)?,
        }
        self.levels.make_all(&mut self.rows)?;
        Ok(None)
    }
}

/// A plane.
struct OnPlane<'s, 'a> {
    solver: &'s mut Solver<'a, Hierarchy<f32>>,
    u: &'s mut Field<f64>,
    right_side: Option<&'s Field<f64>>,
    fields: Gradients,
    keep: bool,
    gpu: Option<PlaneGradients>,
}

impl Holder for OnPlane<'_, '_> {
    fn state(&mut self) -> Result<(HeldRows<'_>, &Reduction<'_>, &Identity), GpuError> {
        fetch(&self.gpu, self.u)?;
        if let Some(gpu) = &self.gpu
            && self.keep
        {
            self.fields.take(gpu)?;
        }
        let solver = &*self.solver;
        let mut fields = vec![&mut *self.u];
        if self.keep {
            fields.extend(self.fields.kept_mut());
        }
        let rows = solver.held(fields, false);
        Ok((rows, &solver.reduction, &solver.given.identity))
    }

    fn field(&mut self) -> Result<Band<f64>, SolveError> {
        fetch(&self.gpu, self.u)?;
        Holding::of(self.solver, self.u).field()
    }

    fn not_finite_on(&self) -> Option<usize> {
        self.solver.totals.not_finite_on
    }
}

impl PreconditionedSteps for OnPlane<'_, '_> {
    fn begin(&mut self) -> Result<(), GpuError> {
        if let Some(gpu) = &self.gpu {
            return gpu.residual(&mut self.solver.rows);
        }
        let Gradients { r, .. } = &mut self.fields;
        Ok(self.solver.residual(self.u, self.right_side, r)?)
    }

    fn precondition(&mut self, norm: f64) -> Result<(), GpuError> {
        let Gradients { r, z, .. } = &mut self.fields;
        let solver = &mut *self.solver;
        let exponent = solver.exponent(norm);
        if let Some(gpu) = &mut self.gpu {
            return gpu.precondition(&mut solver.rows, exponent);
        }
        solver.rows.halo(&solver.layout.shape, r, HALO)?;
        Ok(solver
            .levels
            .precondition(&mut solver.rows, z, r, exponent)?)
    }

    fn product(&mut self, of: Pair) -> Result<f64, GpuError> {
        if let Some(gpu) = &self.gpu {
            let sum = of.on_gpu(gpu, &mut self.solver.rows)?;
            return Ok(self.solver.total_of([sum], false)?.0[0]);
        }
        let [a, b] = of.of(&self.fields);
        Ok(self.solver.product(a, b)?)
    }

    fn turn(&mut self, beta: Option<f64>) -> Result<(), GpuError> {
        if let Some(gpu) = &self.gpu {
            return gpu.turn_to_correction(beta);
        }
        let Gradients { z, p, .. } = &mut self.fields;
        turn(self.solver.layout.shape.own(), p, z, beta);
        Ok(())
    }

    fn apply(&mut self) -> Result<f64, GpuError> {
        if let Some(gpu) = &self.gpu {
            let sum = gpu.curve(&mut self.solver.rows)?;
            return Ok(-self.solver.total_of([sum], false)?.0[0]);
        }
        let Gradients { p, q, .. } = &mut self.fields;
        let [mut sum] = self.solver.sums();
        let (top, rows) = (&mut self.solver.levels.top, &mut self.solver.rows);
        top.negative_product(rows, p, q, &mut sum)?;
        Ok(-self.solver.total([sum], false)?.0[0])
    }

    fn descend(&mut self, alpha: f64, interrupted: bool) -> Result<([f64; 2], bool), GpuError> {
        if let Some(gpu) = &self.gpu {
            let [of_residual, of_field, _] = gpu.descend(&mut self.solver.rows, alpha, true)?;
            let sums = [of_residual, of_field];
            let (totals, interrupted) = self.solver.total_of(sums, interrupted)?;
            return Ok((totals.map(f64::sqrt), interrupted));
        }
        let Gradients { r, p, q, .. } = &mut self.fields;
        let [mut of_residual, mut of_field] = self.solver.sums();
        let nx = self.solver.layout.shape.x.len;
        for y in self.solver.layout.shape.own() {
            for (q, value) in q.row_mut(y).iter_mut().zip(r.row_mut(y)) {
                *q *= alpha;
                *value += *q;
                *q = -*q;
            }
            for (u, &p) in self.u.row_mut(y).iter_mut().zip(p.row(y)) {
                *u += alpha * p;
            }
            let (r, u) = (r.row(y), self.u.row(y));
            of_residual.add_row(y, nx, |x| r[x] * r[x]);
            self.solver.equations().add_field(&mut of_field, y, u);
        }
        let sums = [of_residual, of_field];
        let (totals, interrupted) = self.solver.total(sums, interrupted)?;
        Ok((totals.map(f64::sqrt), interrupted))
    }

    fn measure(&mut self) -> Result<[f64; 2], GpuError> {
        if let Some(gpu) = &self.gpu {
            let sums = gpu.measure(&mut self.solver.rows)?;
            return Ok(self.solver.total_of(sums, false)?.0.map(f64::sqrt));
        }
        self.solver.measure(self.u, self.right_side)
    }

    fn keep(&mut self, keep: bool) {
        self.keep = keep;
    }
}
