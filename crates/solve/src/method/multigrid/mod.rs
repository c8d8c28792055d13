//! Multigrid cycles until the residual is small, alone or as the preconditioner of conjugate gradients.

mod load;
pub(crate) mod plane;
pub(crate) mod space;

use std::sync::atomic::Ordering;
use std::time::Instant;

use crosswarp_prim::Superaccumulator;

use self::load::Layout;
use crate::engine::cpu::multigrid::finest::Finest;
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::engine::cpu::multigrid::shape::HALO;
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::engine::cuda::multigrid::GpuCycles;
use crate::exchange::level_rows::LevelRows;
use crate::field::band::Band;
use crate::field::storage::Field;
use crate::gpu::choice::Choice;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{First, Method, Options, OptionsError};
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::ProblemError;
use crate::stop::norms;

/// The intervals of eigenvalues of D⁻¹A that the relaxations damp, on the finest level and on the others.
const FINEST_INTERVAL: [f64; 2] = [0.5, 2.0];
const COARSE_INTERVAL: [f64; 2] = [0.35, 1.8];
/// A cycle that leaves more than this part of the residual is looked at.
const SLOW: f64 = 0.4;

/// How a solve by cycles ended.
pub(crate) struct Outcome<F> {
    pub converged: bool,
    pub floor_reached: bool,
    pub interrupted: bool,
    /// The relative residual after each cycle.
    pub history: Vec<f64>,
    pub seconds: f64,
    /// Of these, what passed before the first cycle.
    pub setup_seconds: f64,
    pub levels: usize,
    pub gradients_from: Option<usize>,
    pub choice: Option<Choice>,
    pub field: Band<F>,
    /// Cells that have an equation.
    pub free: u64,
}

#[derive(Default)]
struct Ended {
    converged: bool,
    floor_reached: bool,
    interrupted: bool,
    history: Vec<f64>,
    /// ⟨z, r⟩ of conjugate gradients.
    inner: f64,
    /// The number of cycles after which conjugate gradients were taken.
    gradients_from: Option<usize>,
    seconds: f64,
    setup_seconds: f64,
}

struct Solver<'a> {
    layout: Layout,
    hierarchy: Hierarchy<f32>,
    rows: LevelRows<'a>,
    reduction: Reduction<'a>,
    words: Vec<u64>,
    /// Makes the cycles, if there is one: the field is there then.
    gpu: Option<GpuCycles>,
    /// When levels were begun to be made.
    start: Instant,
}

impl Solver<'_> {
    /// The sums over all PEs, rounded once, and whether any PE is interrupted. Collective.
    fn total<const N: usize>(
        &mut self,
        sums: [LeafSums; N],
        interrupted: bool,
    ) -> Result<([f64; N], bool), PeError> {
        self.total_of(sums.map(LeafSums::total), interrupted)
    }

    fn total_of<const N: usize>(
        &mut self,
        mut totals: [Superaccumulator<f64>; N],
        interrupted: bool,
    ) -> Result<([f64; N], bool), PeError> {
        // Where every PE computes all, each has the whole sum.
        let to_add = if self.layout.shape.spread {
            &mut totals[..]
        } else {
            &mut []
        };
        let interrupted =
            norms::sum_over_pes(&self.reduction, to_add, interrupted, &mut self.words)?;
        Ok((totals.map(|total| total.round()), interrupted))
    }

    fn sums<const N: usize>(&self) -> [LeafSums; N] {
        std::array::from_fn(|_| self.layout.sums())
    }

    /// Σ of(finest, y, x) over the cells. Collective.
    fn sum(&mut self, of: impl Fn(&Finest, isize, usize) -> f64) -> Result<f64, PeError> {
        let [mut sum] = self.sums();
        let nx = self.layout.shape.x.len;
        let finest = &self.hierarchy.finest;
        for y in self.layout.shape.own() {
            sum.add_row(y, nx, |x| of(finest, y, x));
        }
        Ok(self.total([sum], false)?.0[0])
    }

    /// Makes the right side of a singular problem sum to zero.
    fn make_compatible(&mut self, right_side: &mut Field<f64>) -> Result<(), SolveError> {
        let sum = self.sum(|finest, y, x| finest.weight(x, y) * right_side.row(y)[x])?;
        let size = self.sum(|finest, y, x| finest.weight(x, y) * right_side.row(y)[x].abs())?;
        let cells = self.sum(|finest, y, x| finest.part_of(x, y))?;
        const NEGLIGIBLE: f64 = 1e-6;
        if sum.abs() > NEGLIGIBLE * size {
            return Err(ProblemError::Incompatible {
                relative: sum / size,
            }
            .into());
        }
        let mean = sum / cells;
        let finest = &self.hierarchy.finest;
        for y in self.layout.shape.stored() {
            if self.layout.shape.y.has(y) {
                for (x, b) in right_side.row_mut(y).iter_mut().enumerate() {
                    *b -= mean * (finest.part_of(x, y) / finest.weight(x, y));
                }
            }
        }
        Ok(())
    }

    /// Takes the mean away from the own rows.
    fn remove_mean(&mut self, u: &mut Field<f64>) -> Result<(), PeError> {
        let sum = self.sum(|finest, y, x| finest.part_of(x, y) * u.row(y)[x])?;
        let mean = sum / self.sum(|finest, y, x| finest.part_of(x, y))?;
        for y in self.layout.shape.own() {
            u.row_mut(y).iter_mut().for_each(|u| *u -= mean);
        }
        Ok(())
    }

    fn solve(
        &mut self,
        u: &mut Field<f64>,
        right_side: &mut Option<Field<f64>>,
        singular: bool,
        first: First,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<Ended, SolveError> {
        if singular && let Some(right_side) = right_side {
            self.make_compatible(right_side)?;
        }
        let right_side = right_side.as_ref();
        // A solve before may have failed in the middle of its cycles.
        self.gpu = None;
        let mut ended = Ended::default();
        match options.method {
            Method::ConjugateGradients(_) => {
                if options.gpu.is_some() {
                    return Err(OptionsError::GradientsOnGpu.into());
                }
                ended.setup_seconds = self.start.elapsed().as_secs_f64();
                let [residual, _] = self.measure(u, right_side)?;
                if residual == 0.0 {
                    ended.converged = true;
                } else {
                    ended.gradients_from = Some(0);
                    self.conjugate_gradients(
                        u, right_side, residual, &mut ended, options, observer,
                    )?;
                }
                ended.seconds = self.start.elapsed().as_secs_f64();
            }
            _ => {
                if let Some(gpu) = &options.gpu {
                    let first = self.layout.first[1];
                    self.gpu = Some(GpuCycles::new(gpu, &self.hierarchy, u, right_side, first)?);
                }
                ended.setup_seconds = self.start.elapsed().as_secs_f64();
                self.cycles(u, right_side, first, &mut ended, options, observer)?;
                ended.seconds = self.start.elapsed().as_secs_f64();
                self.leave_gpu(u)?;
            }
        }
        if singular {
            self.remove_mean(u)?;
        }
        Ok(ended)
    }

    /// The norms of the residual and of the field.
    fn measure(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
    ) -> Result<[f64; 2], GpuError> {
        let sums = match &mut self.gpu {
            Some(gpu) => gpu.measure()?,
            None => {
                let mut sums = self.sums();
                self.hierarchy
                    .measure(&mut self.rows, u, right_side, &mut sums)?;
                sums.map(LeafSums::total)
            }
        };
        Ok(self.total_of(sums, false)?.0.map(f64::sqrt))
    }

    /// See [`Hierarchy::begin`]. The sum of squares of this PE.
    fn begin(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        full: bool,
        exponent: i32,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        if let Some(gpu) = &mut self.gpu {
            return gpu.begin(full, exponent);
        }
        let [mut sum] = self.sums();
        let rows = &mut self.rows;
        self.hierarchy
            .begin(rows, u, right_side, full, exponent, &mut sum)?;
        Ok(sum.total())
    }

    /// See [`Hierarchy::go_on`]. The sum of squares of this PE.
    fn go_on(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        exponent: i32,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        if let Some(gpu) = &mut self.gpu {
            return gpu.go_on(exponent);
        }
        let [mut sum] = self.sums();
        self.hierarchy
            .go_on(&mut self.rows, u, right_side, exponent, &mut sum)?;
        Ok(sum.total())
    }

    /// Takes the field back from the GPU, if it is there, and goes on without it.
    fn leave_gpu(&mut self, u: &mut Field<f64>) -> Result<(), GpuError> {
        match self.gpu.take() {
            Some(gpu) => gpu.save(u),
            None => Ok(()),
        }
    }

    /// Cycles until the residual is small.
    fn cycles(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        first: First,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        // The problem has been scaled: its residuals are within the range of `f32` as they are.
        let sum = self.begin(u, right_side, first == First::Full, 0)?;
        let ([sum], _) = self.total_of([sum], false)?;
        let first = sum.sqrt();
        if first == 0.0 {
            ended.converged = true;
            return Ok(());
        }
        let mut norm = first;
        loop {
            let before = norm;
            let exponent = self.exponent(norm);
            let sum = self.go_on(u, right_side, exponent)?;
            let ([sum], interrupted) = self.total_of([sum], raised(options))?;
            norm = sum.sqrt();
            let slow = norm > SLOW * before && norm > options.tolerance * first;
            // Only what hardly shrinks can be what rounding leaves.
            let field = if slow {
                self.measure(u, right_side)?[1]
            } else {
                0.0
            };
            ended.stop(norm, first, field, options, interrupted);
            if took(ended, norm / first, options, observer)? {
                return Ok(());
            }
            if slow && matches!(options.method, Method::Automatic(_)) {
                ended.gradients_from = Some(ended.history.len());
                self.leave_gpu(u)?;
                return self.conjugate_gradients(u, right_side, first, ended, options, observer);
            }
        }
    }

    /// Conjugate gradients with a V-cycle from zero as the preconditioner, in the inner product in which the operator is
    /// symmetric. β is that of the flexible method,
    /// for a cycle in `f32` is not quite the same operator each time. `first` is the norm that `history` is relative to.
    fn conjugate_gradients(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        first: f64,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let field = |solver: &Self| solver.hierarchy.finest.field().map_err(SolveError::Memory);
        let (mut r, mut z, mut p, mut q) = (field(self)?, field(self)?, field(self)?, field(self)?);
        let mut norm = first * ended.history.last().copied().unwrap_or(1.0);
        // Begun again when the residual that was kept up to date turns out to be off.
        loop {
            self.residual(u, right_side, &mut r)?;
            let mut begun = false;
            loop {
                let exponent = self.exponent(norm);
                self.rows.halo(&self.layout.shape, &mut r, HALO)?;
                self.hierarchy
                    .precondition(&mut self.rows, &mut z, &r, exponent)?;
                // β = −α ⟨z, q⟩ / ⟨z, r⟩ of the step before; kept in `q` times α.
                let rows = self.layout.shape.own();
                if begun {
                    let beta = -self.product(&z, &q)? / ended.inner;
                    for y in rows.clone() {
                        for (p, &z) in p.row_mut(y).iter_mut().zip(z.row(y)) {
                            *p = z + beta * *p;
                        }
                    }
                } else {
                    for y in rows.clone() {
                        p.row_mut(y).copy_from_slice(z.row(y));
                    }
                }
                begun = true;
                ended.inner = self.product(&z, &r)?;
                self.residual(&mut p, None, &mut q)?;
                // The residual of nothing on the right is −Ap.
                let curvature = -self.product(&p, &q)?;
                let alpha = if curvature > 0.0 {
                    self.product(&p, &r)? / curvature
                } else {
                    0.0
                };
                let [mut of_residual, mut of_field] = self.sums();
                let nx = self.layout.shape.x.len;
                for y in rows {
                    for (q, value) in q.row_mut(y).iter_mut().zip(r.row_mut(y)) {
                        *q *= alpha;
                        *value += *q;
                        *q = -*q;
                    }
                    for (u, &p) in u.row_mut(y).iter_mut().zip(p.row(y)) {
                        *u += alpha * p;
                    }
                    let (r, u) = (r.row(y), u.row(y));
                    of_residual.add_row(y, nx, |x| r[x] * r[x]);
                    of_field.add_row(y, nx, |x| u[x] * u[x]);
                }
                let (totals, interrupted) = self.total([of_residual, of_field], raised(options))?;
                let [kept, field] = totals.map(f64::sqrt);
                norm = kept;
                ended.stop(norm, first, field, options, interrupted);
                let stops = ended.converged || ended.floor_reached || alpha == 0.0;
                if stops {
                    [norm, _] = self.measure(u, right_side)?;
                    ended.stop(norm, first, field, options, interrupted);
                    // Without a direction to go there is nothing better to be had.
                    ended.floor_reached |= alpha == 0.0 && !ended.converged;
                }
                if took(ended, norm / first, options, observer)? {
                    return Ok(());
                }
                if stops {
                    break;
                }
            }
        }
    }

    /// b − Au in the own rows of `out`. Collective.
    fn residual(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        out: &mut Field<f64>,
    ) -> Result<(), PeError> {
        self.hierarchy.residual(&mut self.rows, u, right_side, out)
    }

    /// The inner product in which the operator is symmetric. Collective.
    fn product(&mut self, a: &Field<f64>, b: &Field<f64>) -> Result<f64, PeError> {
        let [mut sum] = self.sums();
        let nx = self.layout.shape.x.len;
        let finest = &self.hierarchy.finest;
        for y in self.layout.shape.own() {
            let (a, b) = (a.row(y), b.row(y));
            sum.add_row(y, nx, |x| finest.weight(x, y) * (a[x] * b[x]));
        }
        Ok(self.total([sum], false)?.0[0])
    }

    /// The exponent by which residuals of this norm are brought into the middle of the range of `f32`.
    fn exponent(&self, norm: f64) -> i32 {
        let points = self.layout.shape.x.len * self.layout.shape.y.len;
        exponent_of(norm / (points as f64).sqrt())
    }
}

impl Ended {
    /// What a residual of norm `norm`, before the first cycle `first`, of a field of norm `field` means.
    fn stop(
        &mut self,
        norm: f64,
        first: f64,
        field: f64,
        options: &Options<'_>,
        interrupted: bool,
    ) {
        self.converged = norm <= options.tolerance * first;
        // Rounding of 4u alone leaves that much.
        self.floor_reached = !self.converged && norm <= 4.0 * f64::EPSILON * field;
        self.interrupted = interrupted;
    }
}

/// Takes what a cycle has left, and says whether to end.
fn took(
    ended: &mut Ended,
    relative: f64,
    options: &Options<'_>,
    observer: &mut impl FnMut(&Progress<'_>),
) -> Result<bool, SolveError> {
    ended.history.push(relative);
    let cycles = ended.history.len();
    observer(&Progress {
        sweeps: cycles,
        norms: &ended.history[cycles - 1..],
        checkpoint_failure: None,
    });
    if !relative.is_finite() {
        return Err(SolveError::NotFinite {
            sweep: cycles,
            norm: relative,
        });
    }
    ended.interrupted &= !ended.converged && !ended.floor_reached;
    let over = cycles >= options.max_sweeps;
    Ok(over || ended.converged || ended.floor_reached || ended.interrupted)
}

fn raised(options: &Options<'_>) -> bool {
    options
        .interrupt
        .is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// The exponent of a positive number.
fn exponent_of(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}
