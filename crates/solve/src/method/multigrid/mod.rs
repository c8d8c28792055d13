//! Methods that go on until the residual is small: multigrid cycles, alone or as the preconditioner of conjugate gradients,
//! and two that know the finest level only.

mod alone;
pub(crate) mod arrays;
mod chebyshev;
#[cfg(test)]
mod failing_gpu;
mod gradients;
mod held;
mod least_eigenvalue;
mod load;
mod plain_gradients;
pub(crate) mod plane;
mod space;
mod space_alone;
pub(crate) mod space_arrays;
mod space_bound;
mod space_gradients;
mod space_load;
pub(crate) mod space_run;
mod steps;
pub(crate) mod voids;

use std::any::{Any, TypeId};
use std::io;
use std::path::Path;
use std::time::Instant;

use crc32fast::Hasher;
use crosswarp_prim::Superaccumulator;

use self::gradients::Gradients;
use self::held::{HeldRows, Line};
use self::load::Layout;
use self::steps::{Ended, Holder, raised};
use crate::element::Real;
use crate::engine::cpu::multigrid::finest::Finest;
use crate::engine::cpu::multigrid::finest_level::FinestLevel;
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::engine::cpu::multigrid::shape::HALO;
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::engine::cuda::multigrid::equations::EquationsOnGpu;
use crate::engine::cuda::multigrid::exchange;
use crate::engine::cuda::multigrid::{CyclesOf, GpuCycles};
use crate::exchange::level_puts::LevelPuts;
use crate::exchange::level_rows::LevelRows;
use crate::field::band::Band;
use crate::field::checkpoint::{self, CheckpointError, CheckpointKind, Identity, StepsState, mix};
use crate::field::storage::Field;
use crate::gpu::Gpu;
use crate::gpu::choice::Choice;
use crate::gpu::error::GpuError;
use crate::gpu::strategy::Strategy;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Cycles, First, Method, Options, OptionsError};
use crate::pes::agree::all_ready_by;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::ProblemError;
use crate::problem::scale::Scale;
use crate::stop::norms::Totals;

/// The intervals of eigenvalues of D⁻¹A that the relaxations damp, on the finest level and on the others.
const FINEST_INTERVAL: [f64; 2] = [0.5, 2.0];
const COARSE_INTERVAL: [f64; 2] = [0.45, 1.7];
/// ω of relaxations in red-black order: of the first after a correction, and of others. More than 1: Yavneh, "On red-black SOR
/// smoothing in multigrid", SIAM J. Sci. Comput. 17, 1996. Measured, 513² points with the source −1: a cycle leaves 0.033 of the
/// residual, with 1 everywhere 0.059.
const OMEGAS: [f64; 2] = [1.0, 1.1];
// Passes that correct, and kernels made for these relaxations, solve the equations of the first ones without reading the points.
const _: () = assert!(OMEGAS[0] == 1.0);

/// Cells from which on levels are dealt to PEs.
const FEWEST_CELLS: usize = 64 * 64;
const FEWEST_CELLS_ON_GPUS: usize = 1 << 21;

/// Those where `gpu` makes the steps. Where it is left to us how GPUs are used, smaller levels are not worth it; a strategy
/// that was asked for has rows to move at any size.
fn fewest_cells(gpu: Option<&Gpu>) -> usize {
    match gpu.map(|gpu| gpu.strategy) {
        Some(Strategy::Auto) => FEWEST_CELLS_ON_GPUS,
        _ => FEWEST_CELLS,
    }
}

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
    /// Nothing if it has been written elsewhere.
    pub field: Option<Band<F>>,
    /// What rounding leaves of the residual, relative to the first.
    pub floor: Option<f64>,
    /// What was taken away from an incompatible source.
    pub projected: Option<f64>,
    /// Cells that have an equation.
    pub free: u64,
    /// Cycles of an earlier run.
    pub resumed_at: usize,
    pub checkpoint_failure: Option<CheckpointError>,
}

/// `L`: what the method has of the grid.
pub(crate) struct Solver<'a, L> {
    layout: Layout,
    levels: L,
    // Before the GPU's memory, for the reason that stands at `OnGpus::leave_after`.
    rows: LevelRows<'a>,
    reduction: Reduction<'a>,
    totals: Totals,
    /// Makes the cycles, if there is one: the field is there then.
    gpu: Option<GpuCycles>,
    /// When levels were begun to be made.
    start: Instant,
    singular: bool,
    /// Of the problem being solved.
    given: Given,
}

/// What a method has of the grid: the finest level, alone or with others.
pub(crate) trait Levels: Sized {
    /// The finest one.
    fn top(&self) -> &FinestLevel;
    /// The same, to use its buffers.
    fn top_mut(&mut self) -> &mut FinestLevel;
    /// How many there are.
    fn count(&self) -> usize;
    /// Makes the method's steps. Collective.
    fn solve(
        solver: &mut Solver<'_, Self>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError>;
}

impl Levels for Hierarchy<f32> {
    fn top(&self) -> &FinestLevel {
        &self.top
    }
    fn top_mut(&mut self) -> &mut FinestLevel {
        &mut self.top
    }
    fn count(&self) -> usize {
        1 + self.levels.len()
    }
    fn solve(
        solver: &mut Solver<'_, Self>,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        solver.solve_by_cycles(u, right_side, ended, options, observer)
    }
}

/// What is the same in all steps of a solve.
#[derive(Default)]
struct Given {
    identity: Identity,
    scale: Scale,
    /// Columns of the grid, ghosts included.
    nx: usize,
}

impl<L: Levels> Solver<'_, L> {
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
        sums: [Superaccumulator<f64>; N],
        interrupted: bool,
    ) -> Result<([f64; N], bool), PeError> {
        let spread = self.layout.shape.spread;
        self.totals.of(&self.reduction, sums, spread, interrupted)
    }

    /// The equations.
    fn equations(&self) -> &Finest {
        &self.levels.top().equations
    }

    fn sums<const N: usize>(&self) -> [LeafSums; N] {
        std::array::from_fn(|_| self.layout.sums())
    }

    /// Σ of(finest, y, x) over the cells. Collective.
    fn sum(&mut self, of: impl Fn(&Finest, isize, usize) -> f64) -> Result<f64, PeError> {
        let [mut sum] = self.sums();
        let nx = self.layout.shape.x.len;
        let finest = self.equations();
        for y in self.layout.shape.own() {
            sum.add_row(y, nx, |x| of(finest, y, x));
        }
        Ok(self.total([sum], false)?.0[0])
    }

    /// Makes the right side of a singular problem sum to zero. What that took more than rounding, relative to the sum of its
    /// sizes.
    fn make_compatible(
        &mut self,
        right_side: &mut Field<f64>,
        options: &Options<'_>,
    ) -> Result<Option<f64>, SolveError> {
        let sum = self.sum(|finest, y, x| finest.weight(x, y) * right_side.row(y)[x])?;
        let size = self.sum(|finest, y, x| finest.weight(x, y) * right_side.row(y)[x].abs())?;
        let cells = self.sum(|finest, y, x| finest.part_of(x, y))?;
        let left = incompatible(sum, size, options)?;
        let mean = sum / cells;
        let finest = self.equations();
        for y in self.layout.shape.stored() {
            if self.layout.shape.y.has(y) {
                for (x, b) in right_side.row_mut(y).iter_mut().enumerate() {
                    *b -= mean * (finest.part_of(x, y) / finest.weight(x, y));
                }
            }
        }
        Ok(left)
    }

    /// What is taken away from the field in the end: of a singular problem the mean. Collective.
    fn surplus(&mut self, u: &Field<f64>) -> Result<f64, PeError> {
        if !self.singular {
            return Ok(0.0);
        }
        let sum = self.sum(|finest, y, x| finest.part_of(x, y) * u.row(y)[x])?;
        Ok(sum / self.sum(|finest, y, x| finest.part_of(x, y))?)
    }

    /// The own rows of the grid, as they are given to the caller, and whether all have room in the type. Collective.
    fn band<F: Real>(&mut self, u: &mut Field<f64>) -> Result<(Band<F>, bool), SolveError> {
        let surplus = self.surplus(u)?;
        let layout = &self.layout;
        self.rows.halo(&layout.shape, u, 1)?;
        let Given { scale, nx, .. } = self.given;
        let [first_x, first_y] = layout.first;
        let mut fits = true;
        let me = self.reduction.pe().my_pe();
        let band = Band::new(layout.partition, me, nx, |y, out| {
            // A level that is not spread has no rows beyond its own that are up to date, but all of its own.
            let at = y as isize - first_y as isize;
            let len = layout.shape.y.len as isize;
            let at = if layout.shape.spread {
                at
            } else {
                at.rem_euclid(len)
            };
            let row = u.row(at);
            let mut give = |out: &mut [F], row: &[f64]| {
                for (out, &value) in out.iter_mut().zip(row) {
                    *out = F::from_f64(scale.up(value - surplus));
                    fits &= out.to_f64().is_finite();
                }
            };
            // Ghosts on both sides are the columns that they stand for.
            let len = row.len();
            give(&mut out[..first_x], &row[len - first_x..]);
            give(&mut out[first_x..][..len], row);
            give(&mut out[first_x + len..], &row[..first_x]);
        });
        let band = all_ready_by(&self.reduction, band.map_err(SolveError::Memory))?;
        Ok((band, fits))
    }

    /// As [`band`](Self::band), in place where the caller's rows are those of the level, and the
    /// [norm](Self::field_norm) of the field as it was. Collective.
    fn final_band<F: Real>(
        &mut self,
        mut u: Field<f64>,
    ) -> Result<(Band<F>, bool, f64), SolveError> {
        if self.layout.first != [0, 0] || TypeId::of::<F>() != TypeId::of::<f64>() {
            let norm = self.field_norm(&u)?;
            let (band, fits) = self.band(&mut u)?;
            return Ok((band, fits, norm));
        }
        let surplus = self.surplus(&u)?;
        let [mut sum] = self.sums();
        let (partition, scale) = (self.layout.partition, self.given.scale);
        let me = self.reduction.pe().my_pe();
        let rows = partition.rows(me);
        let given = rows.start as isize..rows.end as isize;
        let top = self.levels.top();
        let fits = top.give_back(&mut u, &mut sum, given, surplus, scale);
        let norm = self.total([sum], false)?.0[0].sqrt();
        let u: Box<dyn Any> = Box::new(u);
        let values = u.downcast().expect("F is f64");
        Ok((Band::of(partition, me, *values), fits, norm))
    }

    /// The rows of `fields` that a checkpoint holds: this PE's, or as they are read where every PE computes all.
    fn held<'f>(&self, fields: Vec<&'f mut Field<f64>>, read: bool) -> HeldRows<'f> {
        let Layout {
            shape,
            first,
            partition,
            ..
        } = &self.layout;
        HeldRows {
            fields,
            partition: *partition,
            own: if read && !shape.spread {
                0..partition.total()
            } else {
                partition.rows(self.reduction.pe().my_pe())
            },
            first: first[1],
            rows: shape.y.len,
            line: Line {
                lines: 1,
                width: self.given.nx,
                first: first[0],
                stored: shape.x.len,
                begin: 0,
                stride: 0,
            },
        }
    }

    fn solve(
        &mut self,
        u: &mut Field<f64>,
        right_side: &mut Option<Field<f64>>,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<Ended, SolveError> {
        let mut ended = Ended::default();
        if self.singular
            && let Some(right_side) = right_side
        {
            ended.projected = self.make_compatible(right_side, options)?;
        }
        // A solve before may have failed in the middle of its cycles.
        self.gpu = None;
        let solved = L::solve(self, u, right_side.as_ref(), &mut ended, options, observer);
        self.rows.gpus.leave_after(&solved);
        solved?;
        ended.seconds = self.start.elapsed().as_secs_f64();
        self.leave_gpu(u)?;
        Ok(ended)
    }

    /// The norm of the field, as [`Ended::stop`] takes it. Collective.
    fn field_norm(&mut self, u: &Field<f64>) -> Result<f64, PeError> {
        let [mut sum] = self.sums();
        let finest = self.equations();
        for y in self.layout.shape.own() {
            finest.add_field(&mut sum, y, u.row(y));
        }
        Ok(self.total([sum], false)?.0[0].sqrt())
    }

    /// Takes the field back from the GPU, if it is there, and goes on without it.
    fn leave_gpu(&mut self, u: &mut Field<f64>) -> Result<(), GpuError> {
        match self.gpu.take() {
            Some(gpu) => gpu.save(u),
            None => Ok(()),
        }
    }

    /// Seconds since levels were begun to be made.
    fn so_far(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Reads `u` and what else the method goes on with from a checkpoint, and where the solve stood: `others` makes room
    /// for the other fields that the checkpoint says it has. Whether anything is left to do. Collective.
    fn resume<'f>(
        &self,
        u: &'f mut Field<f64>,
        path: &Path,
        kind: CheckpointKind,
        others: impl FnOnce(u64) -> io::Result<Vec<&'f mut Field<f64>>>,
        ended: &mut Ended,
        options: &Options<'_>,
    ) -> Result<bool, SolveError> {
        let place = |state: &StepsState| {
            let mut fields = vec![u];
            fields.extend(others(state.fields)?);
            Ok(self.held(fields, true))
        };
        let identity = &self.given.identity;
        let resumed = checkpoint::resume_steps(&self.reduction, path, identity, kind, place)?;
        let (norms, state) = resumed?;
        ended.norms = norms;
        ended.resumed_at = ended.steps();
        ended.inner = state.inner;
        ended.gradients_from = state.gradients_from.map(|from| from as usize);
        ended.converged = ended.last() <= options.tolerance * ended.norms[0];
        Ok(!ended.converged && ended.steps() < options.max_sweeps)
    }

    /// A hash of what determines the steps. Collective.
    fn hash(&self, u: &Field<f64>, right_side: Option<&Field<f64>>) -> Result<u64, PeError> {
        let Layout {
            shape,
            ends,
            first,
            partition,
        } = &self.layout;
        let finest = self.equations();
        let mut hash = [0u64];
        for y in partition.rows(self.reduction.pe().my_pe()) {
            let at = y as isize - first[1] as isize;
            if !(0..shape.y.len as isize).contains(&at) {
                continue;
            }
            let mut checksum = Hasher::new();
            checksum.update(bytemuck::cast_slice(u.row(at)));
            if let Some(right_side) = right_side {
                checksum.update(bytemuck::cast_slice(right_side.row(at)));
            }
            if let Some(fixed) = &finest.fixed {
                checksum.update(fixed.here().row(at));
            }
            if let Some(coefficients) = &finest.coefficients {
                for table in coefficients.here().tables() {
                    checksum.update(bytemuck::cast_slice(table.whole(at)));
                }
            }
            hash[0] = hash[0].wrapping_add(mix(1 + y as u64, checksum.finalize()));
        }
        self.reduction.sum(&mut hash)?;
        let kinds: Vec<u8> = ends.as_flattened().iter().map(|&end| end as u8).collect();
        let given = [
            right_side.is_some(),
            finest.fixed.is_some(),
            finest.coefficients.is_some(),
        ];
        let mut checksum = Hasher::new();
        checksum.update(&kinds);
        checksum.update(&given.map(u8::from));
        Ok(hash[0].wrapping_add(mix(0, checksum.finalize())))
    }

    /// The norms of the residual and, as [`Ended::stop`] takes it, of the field.
    fn measure(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
    ) -> Result<[f64; 2], GpuError> {
        let sums = match &mut self.gpu {
            Some(gpu) => gpu.measure(&mut self.rows)?,
            None => {
                let mut sums = self.sums();
                let top = self.levels.top_mut();
                top.measure(&mut self.rows, u, right_side, &mut sums)?;
                sums.map(LeafSums::total)
            }
        };
        Ok(self.total_of(sums, false)?.0.map(f64::sqrt))
    }

    /// b − Au in the own rows of `out`. Collective.
    fn residual(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        out: &mut Field<f64>,
    ) -> Result<(), PeError> {
        let top = self.levels.top_mut();
        top.residual(&mut self.rows, u, right_side, out)
    }

    /// The inner product in which the operator is symmetric. Collective.
    fn product(&mut self, a: &Field<f64>, b: &Field<f64>) -> Result<f64, PeError> {
        let [mut sum] = self.sums();
        let nx = self.layout.shape.x.len;
        let finest = self.equations();
        for y in self.layout.shape.own() {
            let (a, b) = (a.row(y), b.row(y));
            sum.add_row(y, nx, |x| finest.weight(x, y) * (a[x] * b[x]));
        }
        Ok(self.total([sum], false)?.0[0])
    }
}

impl Solver<'_, Hierarchy<f32>> {
    fn solve_by_cycles(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        let Some(Cycles { first, .. }) = options.method.cycles() else {
            return Err(OptionsError::NotOfLevels.into());
        };
        let by_gradients = matches!(options.method, Method::ConjugateGradients(_));
        let (mut gradients, mut left_by_cycles) = (None, true);
        if let Some(path) = &options.resume {
            let finest = self.equations();
            let kind = CheckpointKind::Cycles;
            let more = self.resume(
                u,
                path,
                kind,
                |fields| match fields {
                    1 => Ok(Vec::new()),
                    _ => {
                        let made = gradients.insert(Gradients::new(finest)?);
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
                ended.setup_seconds = self.so_far();
                return Ok(());
            }
            // Own rows were read. Who copies them to a GPU looks at those around them, too.
            if options.gpu.is_some() {
                self.rows.halo(&self.layout.shape, u, HALO)?;
            }
        }
        if let Some(gpu) = &options.gpu {
            let coarser = self.levels.levels.iter();
            let shapes = coarser.map(|level| &level.operator.shape);
            exchange::reach::<f32>(&mut self.rows, gpu, &self.layout.shape, shapes)?;
            // Blocks that wait for each other may not take the room of kernels that others wait for.
            let puts = self.rows.gpus.puts.as_ref();
            let whole_gpu = puts.is_none_or(LevelPuts::is_alone);
            let made = GpuCycles::new(
                gpu,
                &mut self.levels,
                &mut self.rows,
                CyclesOf {
                    u: Some(u),
                    right_side: right_side.into(),
                    on_gpu: EquationsOnGpu::default(),
                    first: self.layout.first[1],
                    full: *first == First::Full,
                    whole_gpu,
                },
            );
            self.gpu = Some(all_ready_by(&self.reduction, made)?);
            ended.on_gpu = true;
        } else {
            self.levels.make_all(&mut self.rows)?;
        }
        if by_gradients || ended.gradients_from.is_some() {
            ended.setup_seconds = self.so_far();
            if ended.norms.is_empty() {
                let [residual, _] = self.measure(u, right_side)?;
                if ended.begin(residual, &Holding::of(self, u), options)? {
                    return Ok(());
                }
            }
            ended.gradients_from.get_or_insert(ended.steps());
            return self.conjugate_gradients(u, right_side, gradients, ended, options, observer);
        }
        ended.setup_seconds = self.so_far();
        let begin = (*first, left_by_cycles);
        self.cycles(u, right_side, begin, ended, options, observer)
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
            return gpu.begin(&mut self.rows, full, exponent);
        }
        let [mut sum] = self.sums();
        let rows = &mut self.rows;
        self.levels
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
            return gpu.go_on(&mut self.rows, exponent);
        }
        let [mut sum] = self.sums();
        self.levels
            .go_on(&mut self.rows, u, right_side, exponent, &mut sum)?;
        Ok(sum.total())
    }

    /// Cycles until the residual is small. `left_by_cycles`: whether an earlier run, if there was one, ended with cycles of this
    /// smoothing; with others the first one here does less.
    fn cycles(
        &mut self,
        u: &mut Field<f64>,
        right_side: Option<&Field<f64>>,
        (first, left_by_cycles): (First, bool),
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        match ended.norms.as_slice() {
            [] => {
                // The problem has been scaled: its residuals are within the range of `f32` as they are.
                let sum = self.begin(u, right_side, first == First::Full, 0)?;
                let ([sum], _) = self.total_of([sum], false)?;
                if ended.begin(sum.sqrt(), &Holding::of(self, u), options)? {
                    return Ok(());
                }
            }
            // What the last cycle has restricted was as it says.
            [.., before, _] | [before] => {
                let exponent = self.exponent(*before);
                match &mut self.gpu {
                    Some(gpu) => gpu.resume(&mut self.rows, exponent, left_by_cycles)?,
                    None => {
                        let rows = &mut self.rows;
                        self.levels
                            .resume(rows, u, right_side, exponent, left_by_cycles)?;
                    }
                }
            }
        }
        loop {
            if matches!(options.method, Method::Automatic(_)) && ended.was_slow(options) {
                if ended.only_cycles {
                    ended.left_to_gradients = true;
                    return Ok(());
                }
                ended.gradients_from = Some(ended.steps());
                return self.conjugate_gradients(u, right_side, None, ended, options, observer);
            }
            let exponent = self.exponent(ended.last());
            let sum = self.go_on(u, right_side, exponent)?;
            let ([sum], interrupted) = self.total_of([sum], raised(options))?;
            let norm = sum.sqrt();
            // A cycle that shrinks the residual well says that the next one may keep a limit below twice the floor.
            let field = match ended.is_slow(ended.last(), norm, options) {
                true => self.measure(u, right_side)?[1],
                false => 0.0,
            };
            ended.stop(norm, field, options, interrupted);
            let mut holder = Holding::of(self, u);
            if ended.took(norm, &mut holder, options, observer)? {
                return Ok(());
            }
        }
    }

    /// The exponent by which residuals of this norm are brought into the middle of the range of `f32`.
    fn exponent(&self, norm: f64) -> i32 {
        let points = self.layout.shape.x.len * self.layout.shape.y.len;
        exponent_of(norm / (points as f64).sqrt())
    }
}

/// What is left of sources and derivatives that must cancel, relative to the sum of their sizes, if it is more than
/// rounding and may be taken away. `sum`: of them, `size`: of their sizes.
fn incompatible(sum: f64, size: f64, options: &Options<'_>) -> Result<Option<f64>, ProblemError> {
    const NEGLIGIBLE: f64 = 1e-6;
    if sum.abs() <= NEGLIGIBLE * size {
        return Ok(None);
    }
    let relative = sum / size;
    match options.project_source {
        true => Ok(Some(relative)),
        false => Err(ProblemError::Incompatible { relative }),
    }
}

/// The exponent of a positive number.
fn exponent_of(value: f64) -> i32 {
    ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023
}

/// The field of a solve on a plane, and who has the rest.
struct Holding<'s, 'a, L> {
    solver: &'s mut Solver<'a, L>,
    u: &'s mut Field<f64>,
}

impl<'s, 'a, L> Holding<'s, 'a, L> {
    fn of(solver: &'s mut Solver<'a, L>, u: &'s mut Field<f64>) -> Holding<'s, 'a, L> {
        Holding { solver, u }
    }

    /// Brings the field from the GPU.
    fn fetch(&mut self) -> Result<(), GpuError> {
        match &self.solver.gpu {
            Some(gpu) => gpu.save(self.u),
            None => Ok(()),
        }
    }
}

impl<L: Levels> Holder for Holding<'_, '_, L> {
    fn state(&mut self) -> Result<(HeldRows<'_>, &Reduction<'_>, &Identity), GpuError> {
        self.fetch()?;
        let solver = &*self.solver;
        Ok((
            solver.held(vec![&mut *self.u], false),
            &solver.reduction,
            &solver.given.identity,
        ))
    }

    fn field(&mut self) -> Result<Band<f64>, SolveError> {
        self.fetch()?;
        Ok(self.solver.band(self.u)?.0)
    }

    fn not_finite_on(&self) -> Option<usize> {
        self.solver.totals.not_finite_on
    }
}
