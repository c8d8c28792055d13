//! Solving.
//!
//! The solves are compiled here, once for each type of elements: a program that solves would else compile them all again,
//! for most of a minute.

use std::any::Any;

use crc32fast::Hasher;
use crosswarp_shmem::Pe;

use crate::element::Real;
use crate::element::simd::Isa;
use crate::engine::cpu::line::CpuLine;
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::engine::cpu::plane::CpuPlane;
use crate::engine::cuda::line::GpuLine;
use crate::engine::cuda::multigrid::operator::DeviceOperator;
use crate::engine::cuda::multigrid::voids::DeviceVoids;
use crate::engine::cuda::plane::GpuPlane;
use crate::field::checkpoint::{Identity, mix};
use crate::field::rows::LocalRows;
use crate::method::error::SolveError;
use crate::method::jacobi::{self, Progress, Settings};
use crate::method::multigrid::arrays::{DeviceArrays, OnGpu};
use crate::method::multigrid::plane::Plane;
use crate::method::multigrid::{self, Outcome};
use crate::method::options::{Cycles, Method, Options, OptionsError};
use crate::pes::agree::{all_ready_by, first_bad, least};
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::scale::{Scale, largest_of};
use crate::problem::space::Problem3d;
use crate::problem::{Norm, Problem1d, Problem2d, ProblemError};
use crate::solution::{Field, Solution};

/// Sees each pass of a solve.
pub(crate) type Observer<'a> = &'a mut dyn FnMut(&Progress<'_>);

/// What is compiled here of a type of elements. No generic function calls what is behind these pointers by its name.
pub(crate) struct Compiled<F: Real> {
    line: Solve<F, Problem1d<F>>,
    plane: Solve<F, Problem2d<F>>,
    space: Solve<F, Problem3d<F>>,
    /// Makes the levels of a plane: [`Plane::new`].
    pub levels: Levels<F>,
    /// Solves with them: [`Plane::solve`],
    pub by_levels: ByLevels<F>,
    /// and with arrays on a GPU: [`Plane::solve_arrays`].
    pub arrays_by_levels: ArraysByLevels<F>,
    arrays_of_plane: ArraysOfPlane<F>,
    arrays_of_space: ArraysOfSpace<F>,
    voids: FillVoids<F>,
}

type Solve<F, P> = fn(&Pe, &P, &Options<'_>, Observer<'_>) -> Result<Solution<F>, SolveError>;
type Levels<F> =
    for<'p> fn(&'p Pe, &Problem2d<F>, &Cycles) -> Result<Plane<'p, Hierarchy<f32>>, SolveError>;
type ByLevels<F> = fn(
    &mut Plane<'_, Hierarchy<f32>>,
    &Problem2d<F>,
    &Options<'_>,
    Observer<'_>,
) -> Result<Outcome<F>, SolveError>;

type ArraysByLevels<F> = fn(
    &mut Plane<'_, Hierarchy<f32>>,
    &Problem2d<F>,
    &DeviceArrays<'_, F>,
    &mut Option<OnGpu<F>>,
    &Options<'_>,
    Observer<'_>,
) -> Result<Option<Outcome<F>>, SolveError>;

type ArraysOfPlane<F> = fn(
    &Pe,
    &Problem2d<F>,
    &DeviceOperator<'_, F>,
    &DeviceArrays<'_, F>,
    &Options<'_>,
    Observer<'_>,
) -> Result<Option<Outcome<F>>, SolveError>;

type ArraysOfSpace<F> = fn(
    &Pe,
    &Problem3d<F>,
    &DeviceArrays<'_, F>,
    &Options<'_>,
    Observer<'_>,
) -> Result<Option<Outcome<F>>, SolveError>;

type FillVoids<F> = fn(
    &Pe,
    [usize; 2],
    &DeviceVoids<'_, F>,
    &Options<'_>,
    Observer<'_>,
) -> Result<Option<Outcome<F>>, SolveError>;

impl<F: Real> Compiled<F> {
    const fn new() -> Compiled<F> {
        Compiled {
            line,
            plane,
            space,
            levels: |pe, problem, cycles| Plane::new(pe, problem, cycles, None, None),
            by_levels: |plane, problem, options, observer| plane.solve(problem, options, observer),
            arrays_by_levels: |plane, problem, arrays, kept, options, observer| {
                plane.solve_arrays(problem, arrays, kept, options, observer)
            },
            arrays_of_plane: |pe, problem, operator, arrays, options, observer| {
                multigrid::arrays::run(pe, problem, operator, arrays, options, observer)
            },
            arrays_of_space: |pe, problem, arrays, options, mut observer| {
                multigrid::space_arrays::run(pe, problem, arrays, options, &mut observer)
            },
            voids: |pe, size, voids, options, observer| {
                multigrid::voids::run(pe, size, voids, options, observer)
            },
        }
    }
}

static OF_F32: Compiled<f32> = Compiled::new();
static OF_F64: Compiled<f64> = Compiled::new();

/// What is compiled of `F`.
pub(crate) fn compiled<F: Real>() -> &'static Compiled<F> {
    let all: [&dyn Any; 2] = [&OF_F32, &OF_F64];
    let of = all.into_iter().find_map(|of| of.downcast_ref());
    of.expect("the types of elements are f32 and f64")
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
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Solution<F>, SolveError> {
    (compiled().line)(pe, problem, options, &mut observer)
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
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Solution<F>, SolveError> {
    (compiled().plane)(pe, problem, options, &mut observer)
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
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Solution<F>, SolveError> {
    (compiled().space)(pe, problem, options, &mut observer)
}

/// Solves as [`solve_2d`] by cycles, from arrays in the memory of the GPU of `options` and into one: none of them comes to the host.
/// Fixed cells, the coefficient and the factor c may lie there, too.
///
/// Bits, errors, panics and what is left to the host are as of [`Solver2d::solve_on_device`](crate::Solver2d::solve_on_device). With
/// arrays in `operator` the host has to be asked, too, where one of their values is wrong (it says which), on planes of at most 2048
/// points, 32 rows or 32 columns or of more than 65,535 rows, where an axis of an odd number of points wraps around, where the problem
/// delivers a coefficient or a factor c by rows, and for fixed cells with sides that something crosses.
pub fn solve_2d_on_device<F: Real>(
    pe: &Pe,
    problem: &Problem2d<F>,
    operator: &DeviceOperator<'_, F>,
    arrays: &DeviceArrays<'_, F>,
    options: &Options<'_>,
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Option<Solution<F>>, SolveError> {
    problem.check()?;
    options.check()?;
    operator.assert_points(problem);
    arrays.assert_points(problem.nx * problem.ny);
    let solve = compiled().arrays_of_plane;
    let outcome = solve(pe, problem, operator, arrays, options, &mut observer)?;
    Ok(outcome.map(Solution::of_cycles))
}

/// Fills the voids of an array of `size` columns and rows in the memory of the GPU of `options`, as [`solve_2d`] solves
/// [`Problem2d::fill_natural`] by cycles: with the same bits, and without the array on the host. The call waits for the end of its
/// work, not for that of other streams before it.
///
/// `None` where the host has to be asked: without a known cell, or with one whose value is not finite (it says which), and for what
/// [`Solver2d::solve_on_device`](crate::Solver2d::solve_on_device) leaves to the host.
///
/// Errors: sizes below 3 or too large, nothing unknown, and as of [`solve_2d`]. Panics if an array has not as many elements as the grid has cells.
pub fn fill_on_device<F: Real>(
    pe: &Pe,
    size: [usize; 2],
    voids: &DeviceVoids<'_, F>,
    options: &Options<'_>,
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Option<Solution<F>>, SolveError> {
    let [nx, ny] = size;
    Problem2d::<F>::laplace(nx, ny).check()?;
    options.check()?;
    let lengths = [
        Some(voids.values.len()),
        voids.known.map(|known| known.len()),
        Some(voids.field.len()),
    ];
    for len in lengths.into_iter().flatten() {
        assert_eq!(len, nx * ny, "an array has an element for each cell");
    }
    let outcome = (compiled().voids)(pe, size, voids, options, &mut observer)?;
    Ok(outcome.map(Solution::of_cycles))
}

/// Solves as [`solve_3d`], from arrays in the memory of the GPU of `options` and into one: none of them comes to the host. Field, norms
/// and number of cycles have the same bits. The call waits for the end of its work, not for that of other streams before it.
///
/// `None`, and the field is not written, where [`solve_3d`] has to be asked, with the arrays on the host: for fixed points inside,
/// coefficients, factors c and mixed sides, and for what
/// [`Solver2d::solve_on_device`](crate::Solver2d::solve_on_device) leaves to the host.
///
/// Errors: as of [`solve_3d`]. Panics if an array has not as many elements as the box has points.
pub fn solve_3d_on_device<F: Real>(
    pe: &Pe,
    problem: &Problem3d<F>,
    arrays: &DeviceArrays<'_, F>,
    options: &Options<'_>,
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Option<Solution<F>>, SolveError> {
    problem.check()?;
    options.check()?;
    arrays.assert_points(problem.size.iter().product());
    let outcome = (compiled().arrays_of_space)(pe, problem, arrays, options, &mut observer)?;
    Ok(outcome.map(Solution::of_cycles))
}

fn line<F: Real>(
    pe: &Pe,
    problem: &Problem1d<F>,
    options: &Options<'_>,
    observer: Observer<'_>,
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

fn plane<F: Real>(
    pe: &Pe,
    problem: &Problem2d<F>,
    options: &Options<'_>,
    observer: Observer<'_>,
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

fn space<F: Real>(
    pe: &Pe,
    problem: &Problem3d<F>,
    options: &Options<'_>,
    observer: Observer<'_>,
) -> Result<Solution<F>, SolveError> {
    problem.check()?;
    options.check()?;
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
