//! Multigrid cycles in three dimensions.

use std::ops::Range;
use std::path::Path;
use std::time::Instant;

use crc32fast::Hasher;
use crosswarp_prim::Superaccumulator;
use crosswarp_shmem::Pe;

use super::Outcome;
use super::held::{HeldRows, Line as HeldLine};
use super::space_load::{self, first_bad};
use super::steps::{Ended, Holder, raised};
use crate::element::Real;
use crate::engine::cpu::multigrid::finest::End;
use crate::engine::cpu::multigrid::hierarchy::{SetUpError, Smoothing};
use crate::engine::cpu::multigrid::space::hierarchy::{
    DEPTH, Hierarchy, Level, coarser_shapes, finest_shape, is_singular,
};
use crate::engine::cpu::multigrid::space::line::Line;
use crate::engine::cpu::multigrid::sums::LeafSums;
use crate::exchange::level_rows::LevelRows;
use crate::field::band::Band;
use crate::field::checkpoint::{self, CheckpointKind, Identity, StepsState, mix};
use crate::field::partition::Partition;
use crate::gpu::error::GpuError;
use crate::method::error::SolveError;
use crate::method::jacobi::Progress;
use crate::method::options::{Cycles, First, Options};
use crate::pes::agree::least;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;
use crate::problem::ProblemError;
use crate::problem::scale::Scale;
use crate::problem::space::{Problem3d, Side};
use crate::stop::norms;

/// The interval of eigenvalues of D⁻¹A that the relaxations damp.
const INTERVAL: [f64; 2] = [0.4, 2.0];

struct Solver<'a, F> {
    problem: &'a Problem3d<F>,
    hierarchy: Hierarchy,
    rows: LevelRows<'a>,
    reduction: Reduction<'a>,
    words: Vec<u64>,
    partition: Partition,
    singular: bool,
    scale: Scale,
    identity: Identity,
}

/// Solves by cycles. Collective; see [`solve_3d`](crate::solve_3d).
pub(crate) fn run<F: Real>(
    pe: &Pe,
    problem: &Problem3d<F>,
    options: &Options<'_>,
    cycles: &Cycles,
    mut observer: impl FnMut(&Progress<'_>),
) -> Result<Outcome<F>, SolveError> {
    let ends = problem.sides.map(|sides| {
        sides.map(|side| match side {
            Side::Fixed => End::Fixed,
            Side::Neumann(_) | Side::Robin { .. } => End::Mirror,
            Side::Periodic => End::Wrap,
        })
    });
    let lines: [Line; 3] = std::array::from_fn(|axis| {
        Line::finest(problem.size[axis], ends[axis], problem.spacing[axis])
    });
    let [nx, ny, nz] = problem.size;
    let partition = Partition::new(nz, 1, pe.n_pes());
    let cuts = (0..=pe.n_pes())
        .map(|pe| match pe {
            0 => 0,
            pe => partition.rows(pe - 1).end,
        })
        .collect();
    let shape = finest_shape(&lines, cuts, pe.my_pe());
    let reduction = Reduction::new(pe, norms::words::<f64>(4))?;
    let smoothing = Smoothing::new(cycles.pre, cycles.post, INTERVAL);
    let mut general = None;
    let (mut tied, mut operator) = (false, Scale::NONE);
    if problem.is_general() {
        let sizes = space_load::sizes(problem, &shape);
        if let Some(error) = first_bad(&reduction, sizes.bad, problem.size)? {
            reduction.free()?;
            return Err(error.into());
        }
        // The largest one's bits are the complement of the smallest complement.
        operator = Scale::of(f64::from_bits(!reduction.min(!sizes.largest.to_bits())?));
        tied = reduction.min(u64::from(!sizes.tied))? == 0;
        let points = space_load::points(problem, &lines, &shape, operator);
        general = Some(points.map_err(SolveError::Memory)?);
    }
    let start = Instant::now();
    let coarser = coarser_shapes(&lines, &shape);
    let mut rows = LevelRows::new::<f64>(pe, &shape, &coarser, 1, DEPTH)?;
    let free_of = |free: u64| -> Result<u64, PeError> {
        let mut free = [free];
        if shape.spread {
            reduction.sum(&mut free)?;
        }
        Ok(free[0])
    };
    let mut free = 0;
    let mut singular = is_singular(&ends);
    let hierarchy = match general {
        None => Hierarchy::new(lines, shape.clone(), singular, smoothing).map_err(SetUpError::from),
        Some(points) => {
            free = free_of(points.count_free(shape.own()))?;
            if free == 0 {
                rows.free()?;
                reduction.free()?;
                return Err(ProblemError::NothingFree.into());
            }
            singular &= !tied && free == (nx * ny * nz) as u64;
            Hierarchy::of_points(lines, points, singular, smoothing, &mut rows)
        }
    };
    let mut hierarchy = match hierarchy {
        Ok(hierarchy) => hierarchy,
        Err(SetUpError::Memory(error)) => return Err(SolveError::Memory(error)),
        Err(SetUpError::Pe(error)) => return Err(error.into()),
    };
    let set_up = start.elapsed();
    let mut read = space_load::load(problem, &mut hierarchy.levels[0], Scale::NONE, operator);
    if free == 0 {
        free = free_of(hierarchy.levels[0].operator.count_free(shape.own()))?;
    }
    if let Some(error) = first_bad(&reduction, read.bad, problem.size)? {
        rows.free()?;
        reduction.free()?;
        return Err(error.into());
    }
    // As above.
    let largest = !reduction.min(!read.largest.to_bits())?;
    let scale = Scale::of(f64::from_bits(largest));
    if scale != Scale::NONE {
        read = space_load::load(problem, &mut hierarchy.levels[0], scale, operator);
    }
    let _ = read;
    let start = Instant::now();
    let mut solver = Solver {
        problem,
        hierarchy,
        rows,
        reduction,
        words: Vec::new(),
        partition,
        singular,
        scale,
        identity: Identity {
            bits: 8 * size_of::<F>() as u64,
            nx: nx as u64,
            ny: ny as u64,
            nz: nz as u64,
            hash: 0,
            exponent: scale.exponent,
        },
    };
    if options.checkpoint.is_some() || options.resume.is_some() {
        solver.identity.hash = solver.hash()?;
    }
    let mut ended = Ended::default();
    let setup_seconds = (set_up + start.elapsed()).as_secs_f64();
    let solved = solver.solve(cycles.first, &mut ended, options, &mut observer);
    if let Err(SolveError::Pe(error)) = solved {
        return Err(error.into());
    }
    let seconds = (set_up + start.elapsed()).as_secs_f64();
    let levels = solver.hierarchy.levels.len();
    let field = match solved {
        Ok(()) => Some(solver.band()?),
        Err(_) => None,
    };
    solver.rows.free()?;
    solver.reduction.free()?;
    // The same on every PE.
    solved?;
    let (field, fits) = field.expect("it was solved");
    if least(pe, u64::from(fits))? == 0 {
        return Err(SolveError::OutOfRange { dtype: F::NAME });
    }
    Ok(Outcome {
        converged: ended.converged,
        floor_reached: ended.floor_reached,
        interrupted: ended.interrupted,
        history: ended.history(),
        resumed_at: ended.resumed_at,
        checkpoint_failure: ended.checkpoint_failure,
        choice: None,
        gradients_from: None,
        seconds,
        setup_seconds,
        levels,
        field,
        free,
    })
}

impl<F: Real> Solver<'_, F> {
    /// A sum over the points of this PE's planes.
    fn sums(&self) -> LeafSums {
        LeafSums::new(0..self.problem.size[1] as isize, self.problem.size[0], 0)
    }

    /// The sum over all PEs, rounded once, and whether any PE is interrupted. Collective.
    fn total(&mut self, sum: LeafSums, interrupted: bool) -> Result<(f64, bool), PeError> {
        let mut total: [Superaccumulator<f64>; 1] = [sum.total()];
        // Where every PE computes all, each has the whole sum.
        let to_add = if self.hierarchy.levels[0].operator.shape.spread {
            &mut total[..]
        } else {
            &mut []
        };
        let interrupted =
            norms::sum_over_pes(&self.reduction, to_add, interrupted, &mut self.words)?;
        Ok((total[0].round(), interrupted))
    }

    /// Σ of(x, y, z, value) over the field or the right side. Collective.
    fn sum_of(
        &mut self,
        right_side: bool,
        of: impl Fn(usize, usize, isize, f64) -> f64,
    ) -> Result<f64, PeError> {
        let mut sum = self.sums();
        let level = &self.hierarchy.levels[0];
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
        Ok(self.total(sum, false)?.0)
    }

    /// Changes every point of the stored planes of the right side by `by`(its volume).
    fn shift_right_side(&mut self, by: impl Fn(f64) -> f64) {
        let level = &mut self.hierarchy.levels[0];
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

    fn volume(&mut self) -> f64 {
        let sum = |line: &Line| line.mass.iter().sum::<f64>();
        let [x, y, z] = self.hierarchy.levels[0].operator.lines.each_ref().map(sum);
        x * y * z
    }

    /// What is taken away from the field in the end: of a singular problem the mean. Collective.
    fn surplus(&mut self) -> Result<f64, PeError> {
        if !self.singular {
            return Ok(0.0);
        }
        let masses: Vec<Vec<f64>> = {
            let lines = &self.hierarchy.levels[0].operator.lines;
            lines.iter().map(|line| line.mass.clone()).collect()
        };
        let [mx, my, mz] = [&masses[0], &masses[1], &masses[2]];
        let sum = self.sum_of(false, |x, y, z, u| mx[x] * (my[y] * mz[z as usize]) * u)?;
        Ok(sum / self.volume())
    }

    /// The own planes as they are given to the caller, and whether all have room in the type. Collective.
    fn band<T: Real>(&mut self) -> Result<(Band<T>, bool), SolveError> {
        let surplus = self.surplus()?;
        let level = &self.hierarchy.levels[0];
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
        Ok((band.map_err(SolveError::Memory)?, fits))
    }

    /// A hash of what determines the steps. Collective.
    fn hash(&self) -> Result<u64, PeError> {
        let level = &self.hierarchy.levels[0];
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
        first: First,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        if self.singular {
            let sum = self.sum_of(true, |_, _, _, b| b)?;
            let size = self.sum_of(true, |_, _, _, b| b.abs())?;
            const NEGLIGIBLE: f64 = 1e-6;
            if sum.abs() > NEGLIGIBLE * size {
                let relative = sum / size;
                return Err(ProblemError::Incompatible { relative }.into());
            }
            let mean = sum / self.volume();
            self.shift_right_side(|volume| -mean * volume);
        }
        if let Some(path) = &options.resume {
            self.resume(path, ended)?;
            ended.converged = ended.last() <= options.tolerance * ended.norms[0];
            if ended.converged || ended.steps() >= options.max_sweeps {
                return Ok(());
            }
        }
        self.cycles(first, ended, options, observer)
    }

    /// Reads the field and where a solve stood from a checkpoint. Collective.
    fn resume(&mut self, path: &Path, ended: &mut Ended) -> Result<(), SolveError> {
        let level = &mut self.hierarchy.levels[0];
        let partition = self.partition;
        // As where every PE computes all.
        let own = match level.operator.shape.spread {
            true => partition.rows(self.reduction.pe().my_pe()),
            false => 0..partition.total(),
        };
        let size = self.problem.size;
        let place = |_: &StepsState| Ok(held(level, size, own, partition));
        let resumed = checkpoint::resume_steps(
            &self.reduction,
            path,
            &self.identity,
            CheckpointKind::Cycles,
            place,
        )?;
        (ended.norms, _) = resumed?;
        ended.resumed_at = ended.steps();
        let level = &mut self.hierarchy.levels[0];
        for z in level.operator.shape.own() {
            level.operator.beyond(level.u.row_mut(z));
        }
        Ok(())
    }

    fn cycles(
        &mut self,
        first: First,
        ended: &mut Ended,
        options: &Options<'_>,
        observer: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), SolveError> {
        if ended.norms.is_empty() {
            let mut sum = self.sums();
            self.hierarchy
                .begin(&mut self.rows, first == First::Full, &mut sum)?;
            let first = self.total(sum, false)?.0.sqrt();
            ended.norms.push(first);
            if first == 0.0 {
                ended.converged = true;
                return Ok(());
            }
        } else {
            self.hierarchy.resume(&mut self.rows)?;
        }
        loop {
            let mut sum = self.sums();
            self.hierarchy.go_on(&mut self.rows, &mut sum)?;
            let (sum, interrupted) = self.total(sum, raised(options))?;
            let norm = sum.sqrt();
            let mut field = 0.0;
            // Only what hardly shrinks can be what rounding leaves.
            if ended.is_slow(ended.last(), norm, options) {
                let mut sum = self.sums();
                self.hierarchy.add_field(&mut sum);
                // What is multiplied by the couplings, whose sum along all axes is the diagonal.
                field = self.total(sum, false)?.0.sqrt() / 4.0;
            }
            ended.stop(norm, field, options, interrupted);
            if ended.took(norm, self, options, observer)? {
                return Ok(());
            }
        }
    }
}

/// The planes `own` of the finest level.
fn held(
    level: &mut Level,
    [nx, ny, nz]: [usize; 3],
    own: Range<usize>,
    partition: Partition,
) -> HeldRows<'_> {
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
            stride: level.operator.stride(),
        },
        fields: vec![&mut level.u],
    }
}

impl<F: Real> Holder for Solver<'_, F> {
    fn state(&mut self) -> Result<(HeldRows<'_>, &Reduction<'_>, &Identity), GpuError> {
        let own = self.partition.rows(self.reduction.pe().my_pe());
        let level = &mut self.hierarchy.levels[0];
        let rows = held(level, self.problem.size, own, self.partition);
        Ok((rows, &self.reduction, &self.identity))
    }

    fn field(&mut self) -> Result<Band<f64>, SolveError> {
        Ok(self.band()?.0)
    }
}
