//! A plane's operator, with its levels or alone, made once and used for any number of solves.

use std::ops::Range;
use std::time::{Duration, Instant};

use crosswarp_shmem::Pe;

use super::alone::Alone;
use super::least_eigenvalue::least_eigenvalue;
use super::load::{Layout, Loaded, coefficients, fixed, is_tied_by_sides, load, sizes};
use super::steps::Ended;
use super::{
    COARSE_INTERVAL, FINEST_INTERVAL, Given, Levels, OMEGAS, Outcome, Solver, fewest_cells,
};
use crate::element::Real;
use crate::engine::cpu::multigrid::finest::{End, Finest, Held};
use crate::engine::cpu::multigrid::finest_level::FinestLevel;
use crate::engine::cpu::multigrid::hierarchy::{Hierarchy, SetUpError, coarser_shapes};
use crate::engine::cpu::multigrid::operator_rows::PARTS;
use crate::engine::cpu::multigrid::shape::{HALO, Shape};
use crate::engine::cpu::multigrid::smoothing::Smoothing;
use crate::engine::cuda::multigrid::operator::Operator;
use crate::exchange::level_rows::LevelRows;
use crate::field::band::Band;
use crate::field::checkpoint::Identity;
use crate::field::storage::Field;
use crate::gpu::Gpu;
use crate::gpu::choice::Choice;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Cycles, Method, Options};
use crate::pes::agree::{all_ready_by, first_bad, least};
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::scale::Scale;
use crate::problem::{Problem2d, ProblemError};
use crate::stop::norms::{self, Totals};

/// Solves by any method but Jacobi's. Collective; see [`solve_2d`](crate::solve_2d).
pub(crate) fn run<F: Real>(
    pe: &Pe,
    problem: &Problem2d<F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Outcome<F>, SolveError> {
    match options.method.cycles() {
        Some(cycles) => once(
            Plane::new(pe, problem, cycles, options.gpu.as_ref(), None)?,
            problem,
            options,
            observer,
        ),
        None => once(
            Plane::alone(pe, problem, options)?,
            problem,
            options,
            observer,
        ),
    }
}

/// One solve, after which all is given back. Collective.
pub(super) fn once<F: Real, L: Levels>(
    mut plane: Plane<'_, L>,
    problem: &Problem2d<F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Outcome<F>, SolveError> {
    let outcome = plane.solve(problem, options, observer);
    match outcome {
        Err(error) if error.is_of_one_pe() => Err(error),
        outcome => {
            plane.free()?;
            outcome
        }
    }
}

/// A problem's operator and levels on this PE.
pub(crate) struct Plane<'p, L> {
    pub(super) pe: &'p Pe,
    pub(super) solver: Solver<'p, L>,
    /// By what a general operator is held.
    pub(super) operator: Option<Scale>,
    /// Cells that have an equation.
    free: u64,
    /// Time that the levels took, until a solve has counted it.
    pub(super) set_up: Duration,
    /// Fields of [`apply`](Self::apply) and [`precondition`](Self::precondition), once they are needed.
    spare: Option<[Field<f64>; 2]>,
    /// That of the last solve, for the next one: making its pages takes longer than filling them.
    right_side: Option<Field<f64>>,
    /// What of the operator the GPU that makes the levels has.
    pub(super) on_gpu: Operator,
}

impl<'p> Plane<'p, Hierarchy<f32>> {
    /// Makes the levels of `problem`, which has been checked, for solves on `gpu`. `on_gpu`: what of its operator is there, if it has
    /// none of that itself.
    /// Collective.
    pub fn new<F: Real>(
        pe: &'p Pe,
        problem: &Problem2d<F>,
        cycles: &Cycles,
        gpu: Option<&Gpu>,
        on_gpu: Option<Operator>,
    ) -> Result<Self, SolveError> {
        let Cycles { pre, post, .. } = *cycles;
        Plane::with(
            pe,
            problem,
            gpu,
            on_gpu,
            coarser_shapes,
            |finest, made, rows| {
                let Made {
                    shapes,
                    singular,
                    reduction,
                    ..
                } = made;
                let symmetric = Smoothing::chebyshev(pre, post, FINEST_INTERVAL);
                // With a mask or couplings that differ, the other levels decide how fast cycles are.
                let smoothing = match finest.is_plain() && finest.shape.has_two_colours() {
                    true => Smoothing::of_colours(&symmetric, OMEGAS),
                    false => symmetric.clone(),
                };
                // Where rows differ, a GPU makes levels in less time than it takes to bring them there.
                let by_gpu = gpu.is_some() && pe.n_pes() == 1 && !finest.has_few_rows();
                let coarse = Smoothing::chebyshev(pre, post, COARSE_INTERVAL);
                let smoothing = [smoothing, symmetric, coarse];
                let made = Hierarchy::new(finest, shapes, singular, smoothing, reduction);
                let mut made = made.map_err(|error| match error {
                    SetUpError::Memory(error) => SolveError::Memory(error),
                    SetUpError::Pe(error) => error.into(),
                })?;
                if !by_gpu {
                    made.make_all(rows)?;
                }
                Ok(made)
            },
        )
    }
}

impl<'p> Plane<'p, Hierarchy<f32>> {
    /// One cycle from zero for the right side `r`. Collective.
    pub fn precondition(&mut self, r: &[f64], out: &mut [f64]) -> Result<(), SolveError> {
        let [mut held, mut z] = self.take_spare()?;
        let scale = self.operator.unwrap_or(Scale::NONE);
        self.fill_field(r, &mut held, |weight, value| value / weight);
        let norm = self.solver.product(&held, &held)?.sqrt();
        let solver = &mut self.solver;
        if norm > 0.0 && norm.is_finite() {
            let exponent = solver.exponent(norm);
            let shape = &solver.layout.shape;
            solver.rows.halo(shape, &mut held, HALO)?;
            let hierarchy = &mut solver.levels;
            hierarchy.precondition(&mut solver.rows, &mut z, &held, exponent)?;
        } else {
            z.rows().for_each(|y| z.row_mut(y).fill(norm));
        }
        self.read_field(r, out, &z, |_, value| scale.down(value));
        self.spare = Some([held, z]);
        Ok(())
    }
}

impl<'p> Plane<'p, Alone> {
    /// The finest level of `problem`, which has been checked, and what the method has to know of it. Collective.
    fn alone<F: Real>(
        pe: &'p Pe,
        problem: &Problem2d<F>,
        options: &Options<'_>,
    ) -> Result<Self, SolveError> {
        Plane::with(
            pe,
            problem,
            options.gpu.as_ref(),
            None,
            |_| Vec::new(),
            |finest, made, _| {
                let least = match options.method {
                    Method::Chebyshev => least_eigenvalue(
                        problem,
                        &finest,
                        made.layout,
                        made.singular,
                        made.reduction,
                    )?,
                    _ => 0.0,
                };
                let top = FinestLevel::new(finest, 0).map_err(SolveError::Memory);
                let top = all_ready_by(made.reduction, top)?;
                Ok(Alone { top, least })
            },
        )
    }
}

/// What levels are made of, besides the equations.
pub(super) struct Made<'m> {
    layout: &'m Layout,
    shapes: &'m [Shape],
    singular: bool,
    reduction: &'m Reduction<'m>,
}

impl<'p, L: Levels> Plane<'p, L> {
    /// `gpu`: where steps are made; `on_gpu`: as of [`new`](Plane::new); `shapes`: those of the levels below the finest; `levels` makes
    /// them. Collective.
    pub(super) fn with<F: Real>(
        pe: &'p Pe,
        problem: &Problem2d<F>,
        gpu: Option<&Gpu>,
        on_gpu: Option<Operator>,
        shapes: impl FnOnce(&Shape) -> Vec<Shape>,
        levels: impl FnOnce(Finest, Made<'_>, &mut LevelRows<'p>) -> Result<L, SolveError>,
    ) -> Result<Self, SolveError> {
        let layout = Layout::of(problem, pe, fewest_cells(gpu));
        let reduction = Reduction::new(pe, norms::words::<f64>(4))?;
        let on_gpu = on_gpu.unwrap_or_default();
        let fixed = match &on_gpu.equations.mask {
            Some(_) => Ok(Some(Held::OnGpu)),
            None => fixed(problem, &layout).map_err(SolveError::Memory),
        };
        let mut finest = Finest::new(
            layout.shape.clone(),
            layout.ends,
            all_ready_by(&reduction, fixed)?,
        );
        let (mut operator, mut tied) = (None, false);
        if let Some(couplings) = &on_gpu.couplings {
            tied = couplings.tied || is_tied_by_sides(problem);
            finest.coefficients = Some(Held::OnGpu);
            operator = Some(couplings.scale);
        } else if problem.is_general() {
            let sizes = sizes(problem, &layout);
            if let Some(error) = first_bad(&reduction, sizes.bad, problem.nx)? {
                reduction.free()?;
                return Err(error.into());
            }
            tied = reduction.min(u64::from(!sizes.tied))? == 0;
            let scale = Scale::of(reduction.largest(sizes.largest)?);
            let couplings = coefficients(problem, &layout, &finest, scale);
            finest.coefficients = Some(Held::Here(couplings));
            operator = Some(scale);
        }
        let mut free = [match on_gpu.free {
            Some(free) => free,
            None => finest.free(layout.shape.own()),
        }];
        if layout.shape.spread {
            reduction.sum(&mut free)?;
        }
        let free = free[0];
        if free == 0 {
            reduction.free()?;
            return Err(ProblemError::NothingFree.into());
        }
        let singular = !tied
            && free == (layout.shape.x.len * layout.shape.y.len) as u64
            && layout
                .ends
                .as_flattened()
                .iter()
                .all(|&end| end != End::Fixed);

        let start = Instant::now();
        let shapes = shapes(&layout.shape);
        let mut rows = LevelRows::new::<f32>(pe, &layout.shape, &shapes, PARTS, HALO)?;
        let made = Made {
            layout: &layout,
            shapes: &shapes,
            singular,
            reduction: &reduction,
        };
        let levels = match levels(finest, made, &mut rows) {
            Ok(levels) => levels,
            // The same on every PE.
            Err(error @ SolveError::Problem(_)) => {
                rows.free()?;
                reduction.free()?;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        Ok(Plane {
            pe,
            solver: Solver {
                layout,
                levels,
                rows,
                reduction,
                totals: Totals::default(),
                gpu: None,
                start,
                singular,
                given: Given::default(),
            },
            operator,
            free,
            set_up: start.elapsed(),
            spare: None,
            right_side: None,
            on_gpu,
        })
    }

    /// Solves `problem`, which differs from that of the levels in its source, its first guess and the values of its sides
    /// only. Collective.
    pub fn solve<F: Real>(
        &mut self,
        problem: &Problem2d<F>,
        options: &Options<'_>,
        mut observer: impl FnMut(&Progress<'_>),
    ) -> Result<Outcome<F>, SolveError> {
        let (pe, solver) = (self.pe, &mut self.solver);
        let read = |solver: &Solver<'_, L>, scale, kept| {
            let (layout, finest) = (&solver.layout, solver.equations());
            let loaded = load(problem, layout, finest, scale, self.operator, kept);
            all_ready_by(&solver.reduction, loaded.map_err(SolveError::Memory))
        };
        let mut loaded = read(solver, Scale::NONE, self.right_side.take())?;
        let reduction = &solver.reduction;
        if let Some(error) = first_bad(reduction, loaded.bad.take(), problem.nx)? {
            return Err(error.into());
        }
        let scale = Scale::of(reduction.largest(loaded.largest)?);
        if scale != Scale::NONE {
            loaded = read(solver, scale, loaded.right_side.take())?;
        }
        let Loaded {
            mut u,
            mut right_side,
            ..
        } = loaded;
        // The first solve is said to take as long as its levels did, too.
        let now = Instant::now();
        solver.start = now.checked_sub(self.set_up).unwrap_or(now);
        self.set_up = Duration::ZERO;
        let hash = match options.checkpoint.is_some() || options.resume.is_some() {
            true => solver.hash(&u, right_side.as_ref())?,
            false => 0,
        };
        solver.given = Given {
            identity: Identity {
                bits: 8 * size_of::<F>() as u64,
                nx: problem.nx as u64,
                ny: problem.ny as u64,
                nz: 1,
                hash,
                exponent: scale.exponent,
            },
            scale,
            nx: problem.nx,
        };
        let ended = solver.solve(&mut u, &mut right_side, options, &mut observer)?;
        self.right_side = right_side;
        let (field, fits, norm) = solver.final_band(u)?;
        if least(pe, u64::from(fits))? == 0 {
            return Err(SolveError::OutOfRange { dtype: F::NAME });
        }
        Ok(self.outcome(ended, norm, Some(field)))
    }

    /// What is said of a solve that ended so; `norm`: that of the field, as [`Ended::stop`] takes it.
    pub(super) fn outcome<F: Real>(
        &self,
        ended: Ended,
        norm: f64,
        field: Option<Band<F>>,
    ) -> Outcome<F> {
        let solver = &self.solver;
        let levels = solver.levels.count();
        Outcome {
            converged: ended.converged,
            floor_reached: ended.floor_reached,
            floor: ended.relative_floor(norm),
            projected: ended.projected,
            interrupted: ended.interrupted,
            history: ended.history(),
            resumed_at: ended.resumed_at,
            checkpoint_failure: ended.checkpoint_failure,
            gradients_from: ended.gradients_from,
            choice: ended.on_gpu.then(|| Choice {
                declined: solver.rows.gpus.declined.clone(),
                ..Choice::of_levels(levels)
            }),
            seconds: ended.seconds,
            setup_seconds: ended.setup_seconds,
            levels,
            field,
            free: self.free,
        }
    }

    /// Gives the symmetric memory back. Collective.
    pub fn free(self) -> Result<(), PeError> {
        self.solver.rows.free()?;
        self.solver.reduction.free()
    }

    /// The rows and columns, of the grid, of the points that this PE holds of a vector.
    pub fn points(&self) -> [Range<usize>; 2] {
        let layout = &self.solver.layout;
        let [first_x, first_y] = layout.first;
        let own = layout.shape.own();
        [
            own.start as usize + first_y..own.end as usize + first_y,
            first_x..first_x + layout.shape.x.len,
        ]
    }

    /// The symmetric operator times `u`. Collective.
    pub fn apply(&mut self, u: &[f64], out: &mut [f64]) -> Result<(), SolveError> {
        let [mut held, mut residual] = self.take_spare()?;
        self.fill_field(u, &mut held, |_, value| value);
        let done = self.solver.residual(&mut held, None, &mut residual);
        let scale = self.operator.unwrap_or(Scale::NONE);
        // The residual of nothing on the right is −Au.
        self.read_field(u, out, &residual, |weight, value| scale.up(-value * weight));
        self.spare = Some([held, residual]);
        Ok(done?)
    }

    /// The first PE whose part of a [`dot`](Self::dot) made it not finite.
    pub fn not_finite_on(&self) -> Option<usize> {
        self.solver.totals.not_finite_on
    }

    /// Σ ab, with bits that do not depend on the PEs. Collective.
    pub fn dot(&mut self, a: &[f64], b: &[f64]) -> Result<f64, PeError> {
        let [mut sum] = self.solver.sums();
        let shape = &self.solver.layout.shape;
        let nx = shape.x.len;
        for (y, (a, b)) in shape.own().zip(a.chunks_exact(nx).zip(b.chunks_exact(nx))) {
            sum.add_row(y, nx, |x| a[x] * b[x]);
        }
        Ok(self.solver.total([sum], false)?.0[0])
    }

    fn take_spare(&mut self) -> Result<[Field<f64>; 2], SolveError> {
        let equations = self.solver.equations();
        let two = || Ok([equations.field()?, equations.field()?]);
        match self.spare.take() {
            Some(spare) => Ok(spare),
            None => all_ready_by(&self.solver.reduction, two().map_err(SolveError::Memory)),
        }
    }

    /// Where there is an equation `of`(its weight, the vector's value), else 0.
    fn fill_field(&self, from: &[f64], to: &mut Field<f64>, of: impl Fn(f64, f64) -> f64) {
        let finest = self.solver.equations();
        let nx = finest.shape.x.len;
        for (y, from) in finest.shape.own().zip(from.chunks_exact(nx)) {
            for (x, (to, &value)) in to.row_mut(y).iter_mut().zip(from).enumerate() {
                *to = match finest.has_equation(y, x) {
                    true => of(finest.weight(x, y), value),
                    false => 0.0,
                };
            }
        }
    }

    /// The other way; where there is no equation what `same` has.
    fn read_field(
        &self,
        same: &[f64],
        to: &mut [f64],
        from: &Field<f64>,
        of: impl Fn(f64, f64) -> f64,
    ) {
        let finest = self.solver.equations();
        let nx = finest.shape.x.len;
        let rows = same.chunks_exact(nx).zip(to.chunks_exact_mut(nx));
        for (y, (same, to)) in finest.shape.own().zip(rows) {
            for (x, (to, &value)) in to.iter_mut().zip(from.row(y)).enumerate() {
                *to = match finest.has_equation(y, x) {
                    true => of(finest.weight(x, y), value),
                    false => same[x],
                };
            }
        }
    }
}
