//! Solving, and what comes of it.

use std::ops::Range;

use crc32fast::Hasher;
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::element::simd::Isa;
use crate::engine::cpu::line::CpuLine;
use crate::engine::cpu::plane::CpuPlane;
use crate::engine::cuda::line::GpuLine;
use crate::engine::cuda::plane::GpuPlane;
use crate::field::band::Band;
use crate::field::checkpoint::{CheckpointError, Identity, mix};
use crate::field::gather;
use crate::field::rows::LocalRows;
use crate::gpu::choice::Choice;
use crate::method::error::SolveError;
use crate::method::jacobi::{self, Outcome, Progress, Settings};
use crate::method::multigrid;
use crate::method::options::{Method, Options, OptionsError};
use crate::pes::agree::{all_ready_by, first_bad, least};
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::scale::{Scale, largest_of};
use crate::problem::space::Problem3d;
use crate::problem::{Norm, Problem1d, Problem2d, ProblemError};

enum Field<F> {
    Line(CpuLine<F>),
    Band(Band<F>),
    Plane(CpuPlane<F>),
}

/// The end of a solve: what every PE knows, and this PE's part of the field.
pub struct Solution<F> {
    /// Sweeps done, those before a resumed checkpoint included.
    pub sweeps: usize,
    /// Whether the last norm is at most the tolerance.
    pub converged: bool,
    /// Whether an interrupt ended the solve.
    pub interrupted: bool,
    /// Norm of the last sweep.
    pub norm: f64,
    /// Norm of every sweep, from sweep 0 on.
    pub history: Vec<f64>,
    /// Wall-clock time of the sweeps of this run, set-up and output excluded, checkpoints included; of cycles, with the
    /// making of their levels.
    pub seconds: f64,
    /// Of [`seconds`](Self::seconds), those before the first cycle: levels are made, and copied to a GPU. 0 of sweeps.
    pub setup_seconds: f64,
    /// Updates of inner cells by the sweeps of this run; what was computed twice is not counted twice.
    pub cell_updates: u64,
    /// Sweeps per pass that were used.
    pub sweeps_per_pass: usize,
    /// Why the last checkpoint could not be written, if so.
    pub checkpoint_failure: Option<CheckpointError>,
    /// Multigrid's levels, if there were any.
    pub levels: Option<usize>,
    /// The number of multigrid's cycles after which conjugate gradients were taken, if they were.
    pub gradients_from: Option<usize>,
    /// Whether cycles ended because rounding allows no smaller residual.
    pub floor_reached: bool,
    /// Of methods that look at the residual: what rounding of the field alone leaves of it, relative to the first. A limit
    /// of twice that can be kept, a smaller one perhaps: a cycle below that which hardly shrinks the residual is the last.
    pub floor: Option<f64>,
    /// What was taken away from the source ([`Options::project_source`]): sources and derivatives as they were left,
    /// relative to the sum of their sizes.
    pub projected: Option<f64>,
    /// How GPUs were used, if they were.
    pub choice: Option<Choice>,
    field: Field<F>,
}

/// Solves Laplace's equation on a line.
///
/// Collective: every PE calls it with the same arguments (but for the interrupt flag). `observer` is called after each
/// pass, on every PE. Field, norms and number of sweeps have the same bits for any number of PEs, any number
/// of sweeps per pass and any vector unit. Not reaching the tolerance is no error.
///
/// Errors: see [`SolveError`]; the same on every PE unless the world itself fails.
///
/// ```
/// use crosswarp_solve::{Norm, Options, Problem1d, solve_1d};
///
/// let problem = Problem1d { points: 5000, left: 5.0f32, right: 10.0, norm: Norm::Rms };
/// let sweeps = crosswarp_shmem::spmd(2, |pe| {
///     let solution = solve_1d(pe, &problem, &Options::new(1e-3, 10_000), |_| {}).unwrap();
///     assert!(solution.converged && solution.norm <= 1e-3);
///     solution.sweeps
/// })
/// .unwrap();
/// assert_eq!(sweeps[0], sweeps[1]);
/// ```
pub fn solve_1d<F: Real>(
    pe: &Pe,
    problem: &Problem1d<F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Solution<F>, SolveError> {
    problem.check()?;
    options.check()?;
    let ends = [problem.left, problem.right];
    let scale = Scale::of(largest_of(F::ZERO, &ends).to_f64());
    let held = Problem1d {
        left: scale.element_down(problem.left),
        right: scale.element_down(problem.right),
        ..*problem
    };
    let reduction = Reduction::new(pe, jacobi::reduced_words::<F>())?;
    let slab = CpuLine::new(&held, pe.my_pe(), pe.n_pes(), Isa::widest());
    let mut slab = all_ready_by(&reduction, slab.map_err(SolveError::Memory))?;
    let settings = Settings {
        norm: problem.norm,
        points: problem.points,
        identity: identity_1d(problem, scale),
        scale,
        options,
    };
    let (outcome, choice) = match &options.gpu {
        None => (
            jacobi::run(pe, reduction, &mut slab, &settings, observer)?,
            None,
        ),
        Some(gpu) => {
            let mut line = GpuLine::new(pe, &slab, gpu)?;
            let outcome = jacobi::run(pe, reduction, &mut line, &settings, observer)?;
            line.save(&mut slab)?;
            (outcome, Some(line.choice().clone()))
        }
    };
    if scale != Scale::NONE {
        // Points lie between the ends, so they all have room.
        slab.unscale(scale);
    }
    Ok(Solution::new(
        outcome,
        choice,
        problem.points as u64 - 2,
        Field::Line(slab),
    ))
}

/// Solves Laplace's or Poisson's equation on a grid.
///
/// As [`solve_1d`] in everything else.
///
/// ```
/// use crosswarp_solve::{Boundary, Options, Problem2d, solve_2d};
///
/// // One side at 1, the others at 0: by symmetry ¼ in the middle.
/// let problem = Problem2d { top: Boundary::Fixed(vec![1.0f64; 33]), ..Problem2d::laplace(33, 33) };
/// let middle = crosswarp_shmem::spmd(2, |pe| {
///     let solution = solve_2d(pe, &problem, &Options::new(1e-12, 100_000), |_| {}).unwrap();
///     solution.rows().contains(&16).then(|| solution.row(16)[16])
/// })
/// .unwrap();
/// assert!((middle.iter().flatten().next().unwrap() - 0.25).abs() < 1e-9);
/// ```
pub fn solve_2d<F: Real>(
    pe: &Pe,
    problem: &Problem2d<F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Solution<F>, SolveError> {
    problem.check()?;
    options.check()?;
    if options.method != Method::Jacobi {
        let outcome = multigrid::plane::run(pe, problem, options, observer)?;
        return Ok(Solution::of_cycles(outcome));
    }
    problem.check_for_jacobi()?;
    let isa = options.gpu.is_none().then(Isa::widest);
    let reduction = Reduction::new(pe, jacobi::reduced_words::<F>())?;
    let slab = CpuPlane::new(problem, pe.my_pe(), pe.n_pes(), isa);
    let mut slab = all_ready_by(&reduction, slab.map_err(SolveError::Memory))?;
    let loaded = slab.load(problem, Scale::NONE);
    let bad = first_bad(&reduction, loaded.bad, problem.nx)?;
    let mut free = [loaded.free];
    reduction.sum(&mut free)?;
    let nothing_free = (free[0] == 0).then_some(ProblemError::NothingFree);
    if let Some(error) = bad.or(nothing_free) {
        reduction.free()?;
        return Err(error.into());
    }
    let scale = Scale::of(reduction.largest(loaded.largest)?);
    if scale != Scale::NONE {
        slab.load(problem, scale);
    }
    let settings = Settings {
        norm: problem.norm,
        points: problem.nx * problem.ny,
        identity: identity_2d(&reduction, problem, &slab, options, scale)?,
        scale,
        options,
    };
    let (outcome, choice) = match &options.gpu {
        None => (
            jacobi::run(pe, reduction, &mut slab, &settings, observer)?,
            None,
        ),
        Some(gpu) => {
            let mut plane = GpuPlane::new(pe, problem, &slab, gpu)?;
            let outcome = jacobi::run(pe, reduction, &mut plane, &settings, observer)?;
            plane.save(&mut slab)?;
            (outcome, Some(plane.choice().clone()))
        }
    };
    if scale != Scale::NONE {
        let fits = slab.unscale(scale);
        if least(pe, u64::from(fits))? == 0 {
            return Err(SolveError::OutOfRange { dtype: F::NAME });
        }
    }
    let inner = (problem.nx as u64 - 2) * (problem.ny as u64 - 2);
    Ok(Solution::new(outcome, choice, inner, Field::Plane(slab)))
}

/// Solves a problem in three dimensions by any method that looks at the residual. Collective; all PEs give the
/// same problem and options.
///
/// The grid is dealt by planes: [`Solution::rows`] are planes, and [`Solution::row`] gives the nx·ny values of one, in the
/// order of [`Solution::gather`].
///
/// Errors: a problem or options that make no sense, a method that there is not in three dimensions, no memory, a PE that
/// is gone.
///
/// ```
/// use crosswarp_solve::{Cycles, Method, Options, Problem3d, Side, solve_3d};
///
/// // 1 at the front, 0 at the back, no flow across the other sides: linear between.
/// let problem = Problem3d {
///     sides: [[Side::Neumann(0.0); 2], [Side::Neumann(0.0); 2], [Side::Fixed; 2]],
///     initial: Some(std::sync::Arc::new(|z, _, row: &mut [f64]| row.fill(if z == 0 { 1.0 } else { 0.0 }))),
///     ..Problem3d::laplace([9, 9, 17])
/// };
/// let options = Options { method: Method::Multigrid(Cycles::default()), ..Options::new(1e-10, 50) };
/// let middle = crosswarp_shmem::spmd(1, |pe| solve_3d(pe, &problem, &options, |_| {}).unwrap().row(8)[40]).unwrap();
/// assert!((middle[0] - 0.5).abs() < 1e-9);
/// ```
pub fn solve_3d<F: Real>(
    pe: &Pe,
    problem: &Problem3d<F>,
    options: &Options<'_>,
    observer: impl FnMut(&Progress<'_>),
) -> Result<Solution<F>, SolveError> {
    problem.check()?;
    options.check()?;
    if options.gpu.is_some() && problem.is_general() {
        return Err(OptionsError::SpaceOnGpu.into());
    }
    match &options.method {
        Method::Jacobi => Err(OptionsError::NotInSpace.into()),
        _ => {
            let outcome = multigrid::space_run::run(pe, problem, options, observer)?;
            Ok(Solution::of_cycles(outcome))
        }
    }
}

fn norm_code(norm: Norm) -> u64 {
    match norm {
        Norm::L2 => 0,
        Norm::Rms => 1,
    }
}

fn identity_1d<F: Real>(problem: &Problem1d<F>, scale: Scale) -> Identity {
    let mut checksum = Hasher::new();
    for word in [
        problem.left.to_f64().to_bits(),
        problem.right.to_f64().to_bits(),
        norm_code(problem.norm),
    ] {
        checksum.update(&word.to_le_bytes());
    }
    Identity {
        bits: 8 * size_of::<F>() as u64,
        nx: problem.points as u64,
        ny: 1,
        nz: 1,
        hash: mix(0, checksum.finalize()),
        exponent: scale.exponent,
    }
}

/// Collective.
fn identity_2d<F: Real>(
    reduction: &Reduction<'_>,
    problem: &Problem2d<F>,
    slab: &CpuPlane<F>,
    options: &Options<'_>,
    scale: Scale,
) -> Result<Identity, PeError> {
    let mut hash = [0u64];
    if options.checkpoint.is_some() || options.resume.is_some() {
        for y in slab.own() {
            let mut checksum = Hasher::new();
            checksum.update(bytemuck::cast_slice(slab.row(y)));
            let (fixed, source) = slab.givens(y);
            checksum.update(fixed.unwrap_or_default());
            checksum.update(bytemuck::cast_slice(source.unwrap_or_default()));
            hash[0] = hash[0].wrapping_add(mix(1 + y as u64, checksum.finalize()));
        }
        reduction.sum(&mut hash)?;
        let mut checksum = Hasher::new();
        let kinds = u64::from(problem.wrap_x()) | u64::from(problem.wrap_y()) << 1;
        let givens = u64::from(problem.fixed.is_some()) | u64::from(problem.source.is_some()) << 1;
        for word in [kinds, givens, norm_code(problem.norm)] {
            checksum.update(&word.to_le_bytes());
        }
        hash[0] = hash[0].wrapping_add(mix(0, checksum.finalize()));
    }
    let bits = 8 * size_of::<F>() as u64;
    Ok(Identity {
        bits,
        nx: problem.nx as u64,
        ny: problem.ny as u64,
        nz: 1,
        hash: hash[0],
        exponent: scale.exponent,
    })
}

impl<F: Real> Solution<F> {
    fn new(outcome: Outcome, choice: Option<Choice>, inner: u64, field: Field<F>) -> Solution<F> {
        let sweeps = outcome.history.len();
        Solution {
            sweeps,
            converged: outcome.converged,
            interrupted: outcome.interrupted,
            norm: outcome.history.last().copied().unwrap_or(f64::NAN),
            cell_updates: inner * (sweeps - outcome.resumed_at) as u64,
            history: outcome.history,
            seconds: outcome.seconds,
            setup_seconds: 0.0,
            sweeps_per_pass: outcome.sweeps_per_pass,
            checkpoint_failure: outcome.checkpoint_failure,
            choice,
            levels: None,
            gradients_from: None,
            floor_reached: false,
            floor: None,
            projected: None,
            field,
        }
    }

    pub(crate) fn of_cycles(outcome: multigrid::Outcome<F>) -> Solution<F> {
        let cycles = outcome.history.len();
        Solution {
            sweeps: cycles,
            converged: outcome.converged,
            interrupted: outcome.interrupted,
            norm: outcome.history.last().copied().unwrap_or(0.0),
            cell_updates: outcome.free * (cycles - outcome.resumed_at) as u64,
            history: outcome.history,
            seconds: outcome.seconds,
            setup_seconds: outcome.setup_seconds,
            sweeps_per_pass: 1,
            checkpoint_failure: outcome.checkpoint_failure,
            choice: outcome.choice,
            levels: (outcome.levels > 0).then_some(outcome.levels),
            gradients_from: outcome.gradients_from,
            floor_reached: outcome.floor_reached,
            floor: outcome.floor,
            projected: outcome.projected,
            field: Field::Band(outcome.field),
        }
    }

    /// The rows of the grid (1-D: the points) that this PE owns; empty if there are more PEs than leaves.
    pub fn rows(&self) -> Range<usize> {
        match &self.field {
            Field::Line(slab) => slab.own(),
            Field::Plane(slab) => slab.own(),
            Field::Band(band) => band.own(),
        }
    }

    /// Row `y` of a 2-D field; of a 1-D field, the one value of point `y`.
    ///
    /// Panics if this PE does not own it.
    pub fn row(&self, y: usize) -> &[F] {
        match &self.field {
            Field::Line(slab) => {
                let at = y.checked_sub(slab.own().start).unwrap_or(usize::MAX);
                std::slice::from_ref(&slab.values()[at])
            }
            Field::Plane(slab) => slab.row(y),
            Field::Band(band) => band.row(y),
        }
    }

    /// Hands the whole field, row-major, to `take` on PE 0, in pieces of whole rows, in order.
    ///
    /// Collective; PE 0 never holds more than a few pieces. When `take` fails it is not called again.
    ///
    /// Errors: outer, the world's; inner (on PE 0 only), what `take` returned.
    pub fn gather<E>(
        &self,
        pe: &Pe,
        take: impl FnMut(&[F]) -> Result<(), E>,
    ) -> Result<Result<(), E>, SolveError> {
        match &self.field {
            Field::Line(slab) => Ok(gather::stream(pe, slab, take)?),
            Field::Plane(slab) => Ok(gather::stream(pe, slab, take)?),
            Field::Band(band) => Ok(gather::stream(pe, band, take)?),
        }
    }

    /// The whole field, row-major, on PE 0; empty on the others. Collective.
    ///
    /// Errors: the world's.
    pub fn gather_all(&self, pe: &Pe) -> Result<Vec<F>, SolveError> {
        let mut all = Vec::new();
        let taken = self.gather(pe, |values| {
            all.extend_from_slice(values);
            Ok::<(), std::convert::Infallible>(())
        })?;
        match taken {
            Ok(()) => Ok(all),
            Err(impossible) => match impossible {},
        }
    }
}
