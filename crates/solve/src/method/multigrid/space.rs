//! Methods that look at the residual, in three dimensions.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Instant;

use crc32fast::Hasher;
use crosswarp_prim::Superaccumulator;
use crosswarp_shmem::Pe;

use super::gradients::Gradients;
use super::held::{HeldRows, Line as HeldLine};
use super::space_load::{self, Layout, first_bad};
use super::steps::{Ended, Holder, raised};
use super::{Outcome, incompatible};
use crate::element::Real;
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::hierarchy::SetUpError;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::smoothing::Smoothing;
use crate::engine::cpu::multigrid::space::hierarchy::{Hierarchy, coarser_shapes, is_singular};
use crate::engine::cpu::multigrid::space::level::{DEPTH, Level};
use crate::engine::cpu::multigrid::space::line::Line;
use crate::engine::cpu::multigrid::space::points::Points;
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::engine::cuda::multigrid::exchange;
use crate::engine::cuda::multigrid::space::GpuBox;
use crate::exchange::level_rows::LevelRows;
use crate::field::band::Band;
use crate::field::checkpoint::{self, CheckpointKind, Identity, StepsState, mix};
use crate::field::partition::Partition;
use crate::field::storage::Field;
use crate::gpu::choice::Choice;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{First, Method, Options, OptionsError};
use crate::pes::agree::{all_ready_by, least};
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::ProblemError;
use crate::problem::scale::Scale;
use crate::problem::space::{Problem3d, Side};
use crate::stop::norms::{self, Totals};

/// The interval of eigenvalues of D⁻¹A that the relaxations damp.
const INTERVAL: [f64; 2] = [0.4, 2.0];

/// By what the norm of the field times its diagonal is divided: what rounding leaves is judged as on a plane, whose diagonal
/// is 4.
pub(super) const DIAGONAL: f64 = 4.0;

/// `L`: what the method has of the grid.
pub(super) struct Solver<'a, F, L> {
    pub problem: &'a Problem3d<F>,
    pub levels: L,
    // Before the GPU's memory, for the reason that stands at `OnGpus::leave_after`.
    pub rows: LevelRows<'a>,
    /// Where cycles are made, if not here. It has the field then.
    pub gpu: Option<GpuBox>,
    pub reduction: Reduction<'a>,
    pub totals: Totals,
    pub partition: Partition,
    pub singular: bool,
    /// Whether the field that a solve begins with is 0 everywhere, with a positive sign.
    pub from_zero: bool,
    pub scale: Scale,
    pub identity: Identity,
    /// When levels were begun to be made, but for what was read of the problem meanwhile.
    pub start: Instant,
}

/// What a method has of the grid: the finest level, alone or with others.
pub(super) trait Levels: Sized {
    /// Planes around its own that a PE needs of a field, at most.
    const DEPTH: usize;
    /// The finest one.
    fn top(&self) -> &Level;
    /// The same, to change its fields.
    fn top_mut(&mut self) -> &mut Level;
    /// How many there are.
    fn count(&self) -> usize;
    /// Gives back the memory of all but the finest level's operator and field.
    fn leave_field(&mut self);
    /// The shapes of those below the finest.
    fn shapes(lines: &[Line; 3], finest: &Shape) -> Vec<Shape>;
    /// Makes them. Collective.
    fn new<F: Real>(made: Made<'_, '_, F>) -> Result<Self, SolveError>;
    /// Makes the method's steps. Collective.
    fn solve<F: Real>(
        solver: &mut Solver<'_, F, Self>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError>;
}

/// What levels are made of.
pub(super) struct Made<'m, 'a, F> {
    pub problem: &'m Problem3d<F>,
    pub lines: [Line; 3],
    pub ends: [[End; 2]; 3],
    pub shape: Shape,
    /// Of a problem that is not one of lines.
    pub points: Option<Points>,
    /// How the operator is held.
    pub scale: Scale,
    pub singular: bool,
    pub method: &'m Method,
    /// So many make levels.
    pub threads: usize,
    pub rows: &'m mut LevelRows<'a>,
    pub reduction: &'m Reduction<'a>,
}

impl Levels for Hierarchy {
    const DEPTH: usize = DEPTH;
    fn top(&self) -> &Level {
        &self.levels[0]
    }
    fn top_mut(&mut self) -> &mut Level {
        &mut self.levels[0]
    }
    fn count(&self) -> usize {
        self.levels.len()
    }
    fn leave_field(&mut self) {
        self.levels.truncate(1);
        self.levels[0].leave_field();
    }
    fn shapes(lines: &[Line; 3], finest: &Shape) -> Vec<Shape> {
        coarser_shapes(lines, finest)
    }
    fn new<F: Real>(made: Made<'_, '_, F>) -> Result<Hierarchy, SolveError> {
        let Made {
            lines,
            shape,
            points,
            singular,
            method,
            threads,
            rows,
            reduction,
            ..
        } = made;
        let cycles = method.cycles().ok_or(OptionsError::NotOfLevels)?;
        let smoothing = Smoothing::chebyshev(cycles.pre, cycles.post, INTERVAL);
        let hierarchy = match points {
            None => {
                let made = Hierarchy::new(lines, shape, singular, smoothing);
                all_ready_by(reduction, made.map_err(SetUpError::from))
            }
            Some(points) => {
                Hierarchy::of_points(lines, points, singular, smoothing, threads, rows, reduction)
            }
        };
        hierarchy.map_err(|error| match error {
            SetUpError::Memory(error) => SolveError::Memory(error),
            SetUpError::Pe(error) => error.into(),
        })
    }
    fn solve<F: Real>(
        solver: &mut Solver<'_, F, Self>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let cycles = options.method.cycles().ok_or(OptionsError::NotOfLevels)?;
        let (mut gradients, mut left_by_cycles) = (None, true);
        if let Some(path) = &options.resume {
            let kind = CheckpointKind::Cycles;
            let more = solver.resume(
                path,
                kind,
                |level, fields| match fields {
                    1 => Ok(Vec::new()),
                    _ => {
                        let made = gradients.insert(Gradients::with(|| level.field(DEPTH))?);
                        Ok(made.kept_mut().into())
                    }
                },
                ended,
                options,
            )?;
            // Cycles go on from any field.
            if matches!(options.method, Method::Multigrid(_)) {
                left_by_cycles = ended.gradients_from.take().is_none();
            }
            if !more {
                return Ok(());
            }
        }
        let by_gradients = matches!(options.method, Method::ConjugateGradients(_));
        if let Some(gpu) = &options.gpu {
            let levels = solver.levels.levels.iter();
            let mut shapes = levels.map(|level| &level.operator.shape);
            let finest = shapes.next().expect("there is a level");
            exchange::reach::<f64>(&mut solver.rows, gpu, finest, shapes)?;
            // Cycles, and those of a preconditioner.
            let uses: &[bool] = match options.method {
                Method::Multigrid(_) => &[false],
                Method::ConjugateGradients(_) => &[true],
                _ => &[false, true],
            };
            let made = GpuBox::new(gpu, &solver.levels, uses);
            solver.gpu = Some(all_ready_by(&solver.reduction, made)?);
            ended.on_gpu = true;
        }
        ended.setup_seconds = solver.so_far();
        if by_gradients || ended.gradients_from.is_some() {
            if ended.norms.is_empty() {
                let [norm, _] = solver.measure()?;
                if ended.begin(norm, solver, options)? {
                    return Ok(());
                }
            }
            ended.gradients_from.get_or_insert(ended.steps());
            return solver.conjugate_gradients(gradients, ended, options, observer);
        }
        solver.cycles((cycles.first, left_by_cycles), ended, options, observer)?;
        ended.seconds = solver.so_far();
        solver.leave_gpu()
    }
}

/// Threads that make levels. Where a GPU makes the steps the processors have nothing else to do; else a PE is one thread.
fn set_up_threads(pe: &Pe, options: &Options<'_>) -> usize {
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    match options.gpu {
        Some(_) => (processors() / pe.n_pes()).max(1),
        None => 1,
    }
}

/// Solves with what the method has of the grid. Collective.
pub(super) fn run_by<F: Real, L: Levels>(
    pe: &Pe,
    problem: &Problem3d<F>,
    options: &Options<'_>,
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Outcome<F>, SolveError> {
    let Layout {
        ends,
        lines,
        partition,
        shape,
    } = Layout::of(pe, problem, options);
    let [nx, ny, nz] = problem.size;
    let reduction = Reduction::new(pe, norms::words::<f64>(4))?;
    let mut points = None;
    let threads = set_up_threads(pe, options);
    let (mut tied, mut operator) = (false, Scale::NONE);
    if problem.is_general() {
        let sizes = space_load::sizes(problem, &shape);
        if let Some(error) = first_bad(&reduction, sizes.bad, problem.size)? {
            reduction.free()?;
            return Err(error.into());
        }
        operator = Scale::of(reduction.largest(sizes.largest)?);
        tied = reduction.min(u64::from(!sizes.tied))? == 0;
        let made = space_load::points(problem, &lines, &shape, operator, threads);
        points = Some(all_ready_by(&reduction, made.map_err(SolveError::Memory))?);
    }
    let start = Instant::now();
    let mut rows = LevelRows::new::<f64>(pe, &shape, &L::shapes(&lines, &shape), 1, L::DEPTH)?;
    let free_of = |free: u64| -> Result<u64, PeError> {
        let mut free = [free];
        if shape.spread {
            reduction.sum(&mut free)?;
        }
        Ok(free[0])
    };
    let mut free = 0;
    let mut singular = is_singular(&ends);
    if let Some(points) = &points {
        free = free_of(points.count_free(shape.own()))?;
        if free == 0 {
            rows.free()?;
            reduction.free()?;
            return Err(ProblemError::NothingFree.into());
        }
        singular &= !tied && free == (nx * ny * nz) as u64;
    }
    let levels = L::new(Made {
        problem,
        lines,
        ends,
        shape: shape.clone(),
        points,
        scale: operator,
        singular,
        method: &options.method,
        threads,
        rows: &mut rows,
        reduction: &reduction,
    });
    let mut levels = match levels {
        Ok(levels) => levels,
        // The same on every PE.
        Err(error @ SolveError::Problem(_)) => {
            rows.free()?;
            reduction.free()?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let set_up = start.elapsed();
    let mut read = space_load::load(problem, levels.top_mut(), Scale::NONE, operator);
    if free == 0 {
        free = free_of(levels.top().operator.count_free(shape.own()))?;
    }
    if let Some(error) = first_bad(&reduction, read.bad, problem.size)? {
        rows.free()?;
        reduction.free()?;
        return Err(error.into());
    }
    let scale = Scale::of(reduction.largest(read.largest)?);
    if scale != Scale::NONE {
        read = space_load::load(problem, levels.top_mut(), scale, operator);
    }
    let from_zero = reduction.min(u64::from(read.zero))? == 1;
    let now = Instant::now();
    let mut solver = Solver {
        problem,
        levels,
        gpu: None,
        rows,
        reduction,
        totals: Totals::default(),
        partition,
        singular,
        from_zero,
        scale,
        identity: Identity {
            bits: 8 * size_of::<F>() as u64,
            nx: nx as u64,
            ny: ny as u64,
            nz: nz as u64,
            hash: 0,
            exponent: scale.exponent,
        },
        start: now.checked_sub(set_up).unwrap_or(now),
    };
    if options.checkpoint.is_some() || options.resume.is_some() {
        solver.identity.hash = solver.hash()?;
    }
    let mut ended = Ended {
        setup_seconds: solver.so_far(),
        ..Ended::default()
    };
    let solved = solver.solve(&mut ended, options, &mut observer);
    let solved = match solved {
        Err(error) if error.is_of_one_pe() => return Err(error),
        solved => solved,
    };
    if ended.seconds == 0.0 {
        ended.seconds = solver.so_far();
    }
    let levels = solver.levels.count();
    let field = match solved {
        Ok(()) => {
            let floor = ended.relative_floor(solver.field_norm()?);
            // What is given back has room where that was, in pages that the system need not make.
            solver.levels.leave_field();
            Some((solver.band()?, floor))
        }
        Err(_) => None,
    };
    let declined = solver.rows.gpus.declined.clone();
    solver.rows.free()?;
    solver.reduction.free()?;
    // The same on every PE.
    solved?;
    let ((field, fits), floor) = field.expect("it was solved");
    if least(pe, u64::from(fits))? == 0 {
        return Err(SolveError::OutOfRange { dtype: F::NAME });
    }
    Ok(Outcome {
        floor,
        choice: ended.on_gpu.then(|| Choice {
            declined,
            ..Choice::of_levels(levels)
        }),
        field: Some(field),
        ..outcome(ended, levels, free)
    })
}

/// What a solve says that ended so, but for its floor, the GPUs' use and the field.
pub(super) fn outcome<F>(ended: Ended, levels: usize, free: u64) -> Outcome<F> {
    Outcome {
        converged: ended.converged,
        floor_reached: ended.floor_reached,
        floor: None,
        projected: ended.projected,
        interrupted: ended.interrupted,
        history: ended.history(),
        resumed_at: ended.resumed_at,
        checkpoint_failure: ended.checkpoint_failure,
        choice: None,
        gradients_from: ended.gradients_from,
        seconds: ended.seconds,
        setup_seconds: ended.setup_seconds,
        levels,
        field: None,
        free,
    }
}

impl<F: Real, L: Levels> Solver<'_, F, L> {
    /// Seconds since `start`.
    pub fn so_far(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Sums over the points of this PE's planes.
    pub fn sums<const N: usize>(&self) -> [LeafSums; N] {
        let [nx, ny, _] = self.problem.size;
        std::array::from_fn(|_| LeafSums::new(0..ny as isize, nx, 0))
    }

    /// The sums over all PEs, rounded once, and whether any PE is interrupted. Collective.
    pub fn total<const N: usize>(
        &mut self,
        sums: [LeafSums; N],
        interrupted: bool,
    ) -> Result<([f64; N], bool), PeError> {
        self.total_of(sums.map(LeafSums::total), interrupted)
    }

    /// As [`total`](Self::total). Collective.
    pub fn total_of<const N: usize>(
        &mut self,
        sums: [Superaccumulator<f64>; N],
        interrupted: bool,
    ) -> Result<([f64; N], bool), PeError> {
        let spread = self.levels.top().operator.shape.spread;
        self.totals.of(&self.reduction, sums, spread, interrupted)
    }

    /// The norms of what the sums are of, a residual and a field times its diagonal, as [`Ended::stop`] takes them.
    pub fn norms(
        &mut self,
        sums: [LeafSums; 2],
        interrupted: bool,
    ) -> Result<([f64; 2], bool), PeError> {
        self.norms_of(sums.map(LeafSums::total), interrupted)
    }

    /// As [`norms`](Self::norms).
    pub fn norms_of(
        &mut self,
        sums: [Superaccumulator<f64>; 2],
        interrupted: bool,
    ) -> Result<([f64; 2], bool), PeError> {
        let (totals, interrupted) = self.total_of(sums, interrupted)?;
        let [norm, field] = totals.map(f64::sqrt);
        Ok(([norm, field / DIAGONAL], interrupted))
    }

    /// The norm of the field, as [`Ended::stop`] takes it. Collective.
    pub fn field_norm(&mut self) -> Result<f64, GpuError> {
        let sum = match &mut self.gpu {
            Some(gpu) => gpu.square(&mut self.rows)?,
            None => {
                let [mut sum] = self.sums();
                self.levels.top().add_field(&mut sum);
                sum.total()
            }
        };
        let ([sum], _) = self.total_of([sum], false)?;
        Ok(sum.sqrt() / DIAGONAL)
    }

    /// Σ of(x, y, z, value) over the field or the right side. Collective.
    fn sum_of(
        &mut self,
        right_side: bool,
        of: impl Fn(usize, usize, isize, f64) -> f64,
    ) -> Result<f64, PeError> {
        let [mut sum] = self.sums();
        let level = self.levels.top();
        let field = if right_side {
            &level.right_side
        } else {
            &level.u
        };
        let [nx, ny, _] = self.problem.size;
        let stride = level.operator.stride();
        for z in level.operator.shape.own() {
            for y in 0..ny {
                let row = &field.row(z)[y * stride + 1..][..nx];
                sum.add_row(y as isize, nx, |x| of(x, y, z, row[x]));
            }
        }
        Ok(self.total([sum], false)?.0[0])
    }

    /// Changes every point of the stored planes of the right side by `by`(its volume).
    fn shift_right_side(&mut self, by: impl Fn(f64) -> f64) {
        let level = self.levels.top_mut();
        let operator = &level.operator;
        let field = &mut level.right_side;
        let [nx, ny, _] = self.problem.size;
        for z in field.rows().filter(|&z| operator.shape.y.has(z)) {
            for y in 0..ny {
                let row = &mut field.row_mut(z)[y * operator.stride() + 1..][..nx];
                for (x, value) in row.iter_mut().enumerate() {
                    *value += by(operator.mass(x, y, z));
                }
            }
        }
    }

    pub fn volume(&self) -> f64 {
        let sum = |line: &Line| line.mass.iter().sum::<f64>();
        let [x, y, z] = self.levels.top().operator.lines.each_ref().map(sum);
        x * y * z
    }

    /// What is taken away from the field in the end: of a singular problem the mean. Collective.
    fn surplus(&mut self) -> Result<f64, PeError> {
        if !self.singular {
            return Ok(0.0);
        }
        let masses: Vec<Vec<f64>> = {
            let lines = &self.levels.top().operator.lines;
            lines.iter().map(|line| line.mass.clone()).collect()
        };
        let [mx, my, mz] = [&masses[0], &masses[1], &masses[2]];
        let sum = self.sum_of(false, |x, y, z, u| mx[x] * (my[y] * mz[z as usize]) * u)?;
        Ok(sum / self.volume())
    }

    /// The own planes as they are given to the caller, and whether all have room in the type. Collective.
    pub fn band<T: Real>(&mut self) -> Result<(Band<T>, bool), SolveError> {
        let surplus = self.surplus()?;
        let level = self.levels.top();
        let stride = level.operator.stride();
        let [nx, ny, _] = self.problem.size;
        let mut fits = true;
        let me = self.reduction.pe().my_pe();
        let band = Band::new(self.partition, me, nx * ny, |z, out| {
            let plane = level.u.row(z as isize);
            for (out, row) in out.chunks_exact_mut(nx).zip(plane.chunks_exact(stride)) {
                for (out, &value) in out.iter_mut().zip(&row[1..]) {
                    *out = T::from_f64(self.scale.up(value - surplus));
                    fits &= out.to_f64().is_finite();
                }
            }
        });
        let band = all_ready_by(&self.reduction, band.map_err(SolveError::Memory))?;
        Ok((band, fits))
    }

    /// A hash of what determines the steps. Collective.
    fn hash(&self) -> Result<u64, PeError> {
        let level = self.levels.top();
        let [nx, ny, _] = self.problem.size;
        let stride = level.operator.stride();
        let mut hash = [0u64];
        for z in self.partition.rows(self.reduction.pe().my_pe()) {
            let mut checksum = Hasher::new();
            let couplings = level.operator.points.iter();
            let couplings =
                couplings.flat_map(|points| points.parts.iter().chain([&points.excess]));
            for field in [&level.u, &level.right_side].into_iter().chain(couplings) {
                for line in field.row(z as isize).chunks_exact(stride).take(ny) {
                    checksum.update(bytemuck::cast_slice(&line[1..][..nx]));
                }
            }
            hash[0] = hash[0].wrapping_add(mix(1 + z as u64, checksum.finalize()));
        }
        self.reduction.sum(&mut hash)?;
        let mut checksum = Hasher::new();
        for side in self.problem.sides.as_flattened() {
            let kind = match side {
                Side::Fixed => 0u8,
                Side::Neumann(_) => 1,
                Side::Periodic => 2,
                Side::Robin { .. } => 3,
            };
            checksum.update(&[kind]);
        }
        for spacing in self.problem.spacing {
            checksum.update(&spacing.to_bits().to_le_bytes());
        }
        Ok(hash[0].wrapping_add(mix(0, checksum.finalize())))
    }

    fn solve(
        &mut self,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        if self.singular {
            let sum = self.sum_of(true, |_, _, _, b| b)?;
            let size = self.sum_of(true, |_, _, _, b| b.abs())?;
            ended.projected = incompatible(sum, size, options)?;
            let mean = sum / self.volume();
            self.shift_right_side(|volume| -mean * volume);
        }
        L::solve(self, ended, options, observer)
    }

    /// Reads the field and what else the method goes on with from a checkpoint, and where the solve stood: `others` makes
    /// room for the other fields that the checkpoint says it has. Whether anything is left to do. Collective.
    pub fn resume<'f>(
        &mut self,
        path: &Path,
        kind: CheckpointKind,
        others: impl FnOnce(&Level, u64) -> io::Result<Vec<&'f mut Field<f64>>>,
        ended: &mut Ended,
        options: &Options<'_>,
    ) -> Result<bool, SolveError> {
        let level = self.levels.top_mut();
        let partition = self.partition;
        // As where every PE computes all.
        let own = match level.operator.shape.spread {
            true => partition.rows(self.reduction.pe().my_pe()),
            false => 0..partition.total(),
        };
        let size = self.problem.size;
        let place = |state: &StepsState| {
            let others = others(level, state.fields)?;
            Ok(held(level, others, size, own, partition))
        };
        let resumed = checkpoint::resume_steps(&self.reduction, path, &self.identity, kind, place)?;
        let (norms, state) = resumed?;
        ended.norms = norms;
        ended.resumed_at = ended.steps();
        ended.inner = state.inner;
        ended.gradients_from = state.gradients_from.map(|from| from as usize);
        let level = self.levels.top_mut();
        for z in level.operator.shape.own() {
            level.operator.beyond(level.u.row_mut(z));
        }
        ended.converged = ended.last() <= options.tolerance * ended.norms[0];
        Ok(!ended.converged && ended.steps() < options.max_sweeps)
    }

    /// The planes of the field and of `others`, as a checkpoint takes them.
    pub fn held<'h>(&'h mut self, others: Vec<&'h mut Field<f64>>) -> Kept<'h> {
        let own = self.partition.rows(self.reduction.pe().my_pe());
        let rows = held(
            self.levels.top_mut(),
            others,
            self.problem.size,
            own,
            self.partition,
        );
        (rows, &self.reduction, &self.identity)
    }
}

/// What a checkpoint takes.
pub(super) type Kept<'h> = (HeldRows<'h>, &'h Reduction<'h>, &'h Identity);

impl<F: Real> Solver<'_, F, Hierarchy> {
    /// Brings the field from the GPU.
    fn fetch(&mut self) -> Result<(), GpuError> {
        match &self.gpu {
            Some(gpu) => gpu.save(self.levels.top_mut()),
            None => Ok(()),
        }
    }

    /// Takes the field back from the GPU, if it is there, and goes on without it.
    fn leave_gpu(&mut self) -> Result<(), SolveError> {
        self.fetch()?;
        self.gpu = None;
        Ok(())
    }

    /// See [`Hierarchy::begin`]. The sum of squares of this PE.
    fn begin(&mut self, full: bool) -> Result<Superaccumulator<f64>, GpuError> {
        if let Some(gpu) = &mut self.gpu {
            return gpu.begin(&mut self.rows, full, self.from_zero);
        }
        let [mut sum] = self.sums();
        self.levels.begin(&mut self.rows, full, &mut sum)?;
        Ok(sum.total())
    }

    /// See [`Hierarchy::go_on`]. The sum of squares of this PE.
    fn go_on(&mut self) -> Result<Superaccumulator<f64>, GpuError> {
        if let Some(gpu) = &mut self.gpu {
            return gpu.go_on(&mut self.rows);
        }
        let [mut sum] = self.sums();
        self.levels.go_on(&mut self.rows, &mut sum)?;
        Ok(sum.total())
    }

    /// The norms of b − Au and of the field. Collective.
    pub fn measure(&mut self) -> Result<[f64; 2], GpuError> {
        if let Some(gpu) = &mut self.gpu {
            let rows = &mut self.rows;
            let sums = [gpu.residual(rows)?, gpu.square(rows)?];
            return Ok(self.norms_of(sums, false)?.0);
        }
        let mut sums = self.sums();
        let Hierarchy { levels, work, .. } = &mut self.levels;
        work.measure(&mut levels[0], &mut self.rows, &mut sums)?;
        Ok(self.norms(sums, false)?.0)
    }

    /// Cycles until the residual is small. `left_by_cycles`: whether an earlier run, if there was one, ended with cycles.
    pub fn cycles(
        &mut self,
        (first, left_by_cycles): (First, bool),
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        if ended.norms.is_empty() {
            let sum = self.begin(first == First::Full)?;
            let ([sum], _) = self.total_of([sum], false)?;
            if ended.begin(sum.sqrt(), self, options)? {
                return Ok(());
            }
        } else {
            match &mut self.gpu {
                Some(gpu) => gpu.resume(&mut self.rows, left_by_cycles)?,
                None => self.levels.resume(&mut self.rows, left_by_cycles)?,
            }
        }
        loop {
            if matches!(options.method, Method::Automatic(_)) && ended.was_slow(options) {
                if ended.only_cycles {
                    ended.left_to_gradients = true;
                    return Ok(());
                }
                ended.gradients_from = Some(ended.steps());
                return self.conjugate_gradients(None, ended, options, observer);
            }
            let sum = self.go_on()?;
            let ([sum], interrupted) = self.total_of([sum], raised(options))?;
            let norm = sum.sqrt();
            // A cycle that shrinks the residual well says that the next one may keep a limit below twice the floor.
            let field = match ended.is_slow(ended.last(), norm, options) {
                true => self.field_norm()?,
                false => 0.0,
            };
            ended.stop(norm, field, options, interrupted);
            if ended.took(norm, self, options, observer)? {
                return Ok(());
            }
        }
    }
}

/// The planes `own` of the finest level's field and of `others`.
fn held<'h>(
    level: &'h mut Level,
    others: Vec<&'h mut Field<f64>>,
    [nx, ny, nz]: [usize; 3],
    own: Range<usize>,
    partition: Partition,
) -> HeldRows<'h> {
    let stride = level.operator.stride();
    let mut fields = vec![&mut level.u];
    fields.extend(others);
    HeldRows {
        partition,
        own,
        first: 0,
        rows: nz,
        line: HeldLine {
            lines: ny,
            width: nx,
            first: 0,
            stored: nx,
            begin: 1,
            stride,
        },
        fields,
    }
}

impl<F: Real> Holder for Solver<'_, F, Hierarchy> {
    fn state(&mut self) -> Result<Kept<'_>, GpuError> {
        self.fetch()?;
        Ok(self.held(Vec::new()))
    }

    fn field(&mut self) -> Result<Band<f64>, SolveError> {
        self.fetch()?;
        Ok(self.band()?.0)
    }

    fn not_finite_on(&self) -> Option<usize> {
        self.totals.not_finite_on
    }
}
