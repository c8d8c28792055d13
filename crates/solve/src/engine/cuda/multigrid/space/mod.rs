//! Cycles in boxes on a GPU, with the bits of the CPU's: as those on planes.
//!
//! Operators are those of lines, a few numbers for each point of an axis, or have couplings for each point (`points.rs`). All
//! fields stay in the GPU's memory, planes laid
//! out as on the CPU; the coarsest level is solved there, too. After each cycle the host reads the sum of the squares of the
//! residual, and decides.
#![allow(unsafe_code)] // Launches of kernels.

pub(crate) mod arrays;
pub(super) mod level;
mod pass_kernels;
mod point_passes;
mod points;
pub(crate) mod steps;

use crosswarp_cuda::{ByValue, Function, Launch, Stream};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use self::level::{DeviceLevel, Plan};
use self::pass_kernels::{MOST_BLOCKS, MOST_ROWS, Passes, pass_kernels};
use self::point_passes::PointKernels;
use super::exchange;
use super::steps::Preconditioner;
use super::storage::DeviceField;
use super::sums::{self, LeafSums};
use crate::engine::cpu::multigrid::smoothing::Smoothing;
use crate::engine::cpu::multigrid::space::hierarchy::{Hierarchy, OF_CORRECTION, SmoothingOf};
use crate::engine::cpu::multigrid::space::level::Level;
use crate::engine::cpu::multigrid::space::operator::Operator;
use crate::engine::cuda::arena::{Arena, ArenaBuffer};
use crate::engine::cuda::kernels;
use crate::exchange::level_rows::LevelRows;
use crate::gpu::Gpu;
use crate::gpu::box_arguments::{
    BOX_THREADS, BoxPass, COARSEST_OF_LANE, RESTRICTING_COLUMNS, RESTRICTING_ROWS,
};
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{START_CORRECTED, START_CORRECTION, START_FIELD, START_ZERO};

/// The kernels beside passes.
const RESTRICT_RIGHT_SIDE: &str = "box_restrict_right_side";
const SQUARE: &str = "box_square";
const SOLVE_COARSEST: &str = "box_solve_coarsest";

/// Blocks that make right sides of finer ones: so many keep a large GPU busy.
const RESTRICTING_BLOCKS: usize = 2048;
/// Planes of such a block, at most, where a launch has that many blocks.
const MOST_RESTRICTED: usize = 32;

/// All levels of a box, in the memory of a GPU.
pub(crate) struct GpuBox {
    levels: Vec<DeviceLevel>,
    /// Rows of leaves of the finest.
    bands: usize,
    passes: AllPasses,
    smoothing: SmoothingOf,
    restrict_right_side: Function,
    square: Function,
    solve_coarsest: Function,
    sums: LeafSums,
    stream: Stream,
    _kept: Kept,
}

/// What makes passes.
enum AllPasses {
    Lines(Passes),
    Points(Box<PointKernels>),
}

/// What kernels reach by address only.
struct Kept {
    _factor: ArenaBuffer<f64>,
    _active: ArenaBuffer<u8>,
}

impl GpuBox {
    /// Whether kernels can number the points of a box of this size.
    pub(crate) fn check(size: [usize; 3]) -> Result<(), GpuError> {
        let [nx, ny, nz] = size;
        let longest = nx.max(ny).max(nz);
        if longest > i32::MAX as usize - 4096 {
            return Err(GpuError::TooLong { longest });
        }
        if ny > MOST_ROWS {
            return Err(GpuError::TooManyRows {
                rows: ny,
                most: MOST_ROWS,
            });
        }
        Ok(())
    }

    /// Copies the levels, with the field and the right side of the finest. The size has been
    /// [checked](Self::check). `uses`: whether it makes cycles of their own (false), and those of a preconditioner (true).
    pub(crate) fn new(gpu: &Gpu, hierarchy: &Hierarchy, uses: &[bool]) -> Result<GpuBox, GpuError> {
        let levels = GpuBox::with_room(gpu, hierarchy, uses)?;
        levels.levels[0].upload(&levels.stream, &hierarchy.levels[0])?;
        Ok(levels)
    }

    /// As [`new`](Self::new), without the field and the right side: they are zero.
    pub(crate) fn with_room(
        gpu: &Gpu,
        hierarchy: &Hierarchy,
        uses: &[bool],
    ) -> Result<GpuBox, GpuError> {
        let finest = &hierarchy.levels[0].operator;
        let device = &gpu.device;
        let stream = Stream::new(device)?;
        let smoothing = hierarchy.smoothing.clone();
        let of_points = finest.points.is_some();
        let mut kernels_of_passes = Vec::new();
        let mut names = vec![RESTRICT_RIGHT_SIDE, SQUARE, SOLVE_COARSEST];
        match of_points {
            true => names.extend(point_passes::KERNELS),
            false => {
                let wraps = finest.lines.iter().any(|line| line.axis.wraps);
                let smoothings = uses
                    .iter()
                    .flat_map(|&symmetric| smoothing.of_relaxed(symmetric));
                kernels_of_passes = pass_kernels(smoothings, wraps);
                names.extend(kernels_of_passes.iter().map(|pass| pass.name));
            }
        }
        kernels::compile_together(device, names.into_iter().chain(sums::KERNELS));
        let arena = Arena::new(&stream);
        let mut levels: Vec<DeviceLevel> = Vec::new();
        for level in hierarchy.levels.iter().rev() {
            levels.push(DeviceLevel::new(&arena, level, levels.last())?);
        }
        levels.reverse();
        let dense = &hierarchy.dense;
        assert!(dense.points() <= 32 * COARSEST_OF_LANE);
        let active: Vec<u8> = dense.active().iter().map(|&active| active.into()).collect();
        let factor = arena.copied(&mirrored(dense.factor(), dense.points()))?;
        let active = arena.copied(&active)?;
        let last = levels.last_mut().expect("there is a level");
        last.solve_by(factor.address(), active.address());
        let columns = finest.lines[0].axis.len;
        let bands = bands_of(finest);
        let sums = LeafSums::new(&arena, columns, 0..bands, 1)?;
        levels[0].measure_to(sums.place());
        let find = |name| kernels::find_plain(device, name);
        Ok(GpuBox {
            passes: match of_points {
                true => AllPasses::Points(Box::new(PointKernels::new(device)?)),
                false => AllPasses::Lines(Passes::new(device, &kernels_of_passes)?),
            },
            levels,
            bands,
            smoothing,
            restrict_right_side: find(RESTRICT_RIGHT_SIDE)?,
            square: find(SQUARE)?,
            solve_coarsest: find(SOLVE_COARSEST)?,
            sums,
            stream,
            _kept: Kept {
                _factor: factor,
                _active: active,
            },
        })
    }

    /// See `Hierarchy::begin`. The sum of squares. `from_zero`: the field is 0 everywhere, on all PEs.
    pub(crate) fn begin(
        &mut self,
        rows: &mut LevelRows<'_>,
        full: bool,
        from_zero: bool,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        let Smoothing { pre, .. } = self.smoothing_of(0, false);
        let from_zero = full && from_zero && matches!(self.passes, AllPasses::Lines(_));
        if from_zero {
            // The right side is the residual.
            self.restrict_right_side(0, true)?;
        } else {
            let plan = Plan {
                start: START_FIELD,
                steps: if full { &[] } else { &pre },
                measured: Some(0),
                restrict: true,
                solved: None,
            };
            self.pass(rows, 0, &plan)?;
        }
        self.sums.publish(&self.stream, 1)?;
        if full {
            let count = self.levels.len();
            for at in 1..count {
                self.complete_right_side(rows, at)?;
                if at + 1 < count {
                    self.restrict_right_side(at, false)?;
                }
            }
            self.solve_coarsest()?;
            for at in (1..count - 1).rev() {
                self.cycle_below(rows, at, START_CORRECTION, false)?;
            }
            let plan = Plan {
                start: START_CORRECTION,
                steps: &pre,
                measured: None,
                restrict: true,
                solved: None,
            };
            if from_zero {
                self.pass(rows, 0, &plan)?;
            } else {
                let plan = Plan {
                    start: START_CORRECTED,
                    restrict: false,
                    ..plan
                };
                self.pass(rows, 0, &plan)?;
                // Two launches take less time than one that does all.
                self.resume(rows, true)?;
            }
        }
        self.sum(rows)
    }

    /// See `Hierarchy::resume`.
    pub(crate) fn resume(
        &mut self,
        rows: &mut LevelRows<'_>,
        left_by_cycles: bool,
    ) -> Result<(), GpuError> {
        let solved = self.smoothing_of(0, false).solved_before();
        // It measures, too, because no kernel only restricts.
        let plan = Plan {
            start: START_FIELD,
            steps: &[],
            measured: Some(0),
            restrict: true,
            solved: solved.filter(|_| left_by_cycles),
        };
        self.pass(rows, 0, &plan)
    }

    /// See `Hierarchy::go_on`. The sum of squares.
    pub(crate) fn go_on(
        &mut self,
        rows: &mut LevelRows<'_>,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        self.cycle_below(rows, 1, START_ZERO, false)?;
        let Smoothing { pre, post } = self.smoothing_of(0, false);
        let plan = Plan {
            start: START_CORRECTED,
            steps: &[&post[..], &pre[..]].concat(),
            measured: Some(post.len() + pre.len()),
            restrict: true,
            solved: None,
        };
        self.pass(rows, 0, &plan)?;
        self.sums.publish(&self.stream, 1)?;
        self.sum(rows)
    }

    /// The sum of squares of b − Au. The next level's right side is made, too, because no kernel only measures.
    pub(crate) fn residual(
        &mut self,
        rows: &mut LevelRows<'_>,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        self.resume(rows, false)?;
        self.sums.publish(&self.stream, 1)?;
        self.sum(rows)
    }

    /// The sum of squares of the field times its diagonal.
    pub(crate) fn square(
        &mut self,
        rows: &mut LevelRows<'_>,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        if let AllPasses::Points(kernels) = &self.passes {
            kernels.square(&self.stream, &self.levels[0])?;
            self.sums.publish(&self.stream, 1)?;
            return self.sum(rows);
        }
        let arguments = self.levels[0].arguments();
        let chunks = (arguments.size[0] as usize).div_ceil(BOX_THREADS);
        let blocks = chunks * self.bands;
        // SAFETY: the parameter is a `box_pass` whose arrays have its extent; blocks cover the columns of all leaves.
        unsafe { self.launch(&self.square, blocks, BOX_THREADS, arguments) }?;
        self.sums.publish(&self.stream, 1)?;
        self.sum(rows)
    }

    /// Copies the field to that of `level`, the finest.
    pub(crate) fn save(&self, level: &mut Level) -> Result<(), GpuError> {
        let Level { operator, u, .. } = level;
        self.levels[0].save(&self.stream, operator, u)
    }

    /// # Safety
    /// As of a launch; `kernel` takes a `box_pass`.
    unsafe fn launch(
        &self,
        kernel: &Function,
        blocks: usize,
        threads: usize,
        arguments: BoxPass,
    ) -> Result<(), GpuError> {
        let launch = Launch::new(kernel)
            .grid(blocks as u32)
            .block(threads as u32);
        // SAFETY: the caller's.
        Ok(unsafe { launch.launch(&self.stream, (ByValue(arguments),)) }?)
    }

    fn pass(
        &mut self,
        rows: &mut LevelRows<'_>,
        at: usize,
        plan: &Plan<'_>,
    ) -> Result<(), GpuError> {
        let correction = self.levels[at + 1].field().address();
        let (level, stream) = (&mut self.levels[at], &self.stream);
        match &self.passes {
            AllPasses::Lines(passes) => level.pass(stream, rows, passes, plan, correction),
            AllPasses::Points(kernels) => {
                level.pass_points(stream, rows, kernels, plan, correction)
            }
        }
    }

    /// What has been published. Waits for it.
    fn sum(&self, rows: &mut LevelRows<'_>) -> Result<Superaccumulator<f64>, GpuError> {
        let [sum] = self.sums.read(&self.stream, rows)?;
        Ok(sum)
    }

    /// `measures`: it leaves the sums of squares of this right side, too, that of the finest level.
    fn restrict_right_side(&self, at: usize, measures: bool) -> Result<(), GpuError> {
        if let AllPasses::Points(kernels) = &self.passes {
            return kernels.restrict_right_side(&self.stream, &self.levels[at]);
        }
        let mut arguments = self.levels[at].arguments();
        let [across, rows, _] = arguments.coarse_size.map(|n| n as usize);
        let planes = (arguments.coarse_end - arguments.coarse_start) as usize;
        let rows_of_a_block = BOX_THREADS / 32 * RESTRICTING_ROWS;
        let columns = across.div_ceil(RESTRICTING_COLUMNS) * rows.div_ceil(rows_of_a_block);
        arguments.planes = planes_to_restrict(planes, columns) as i32;
        arguments.measured = if measures { 0 } else { -1 };
        let launch = Launch::new(&self.restrict_right_side)
            .grid((
                columns as u32,
                planes.div_ceil(arguments.planes as usize) as u32,
            ))
            .block(BOX_THREADS as u32);
        // SAFETY: the parameter is a `box_pass` whose arrays have its extent, and the next level's right side that of its
        // own; blocks cover the coarse planes that lie in the own ones.
        unsafe { launch.launch(&self.stream, (ByValue(arguments),)) }?;
        Ok(())
    }

    /// As on the CPU.
    fn complete_right_side(&mut self, rows: &mut LevelRows<'_>, at: usize) -> Result<(), GpuError> {
        let (finer, level) = (&self.levels[at - 1].shape, &self.levels[at]);
        let shape = &level.shape;
        if finer.spread && !shape.spread {
            exchange::gather(&self.stream, rows, shape, &level.operator.right_side)?;
        }
        let Smoothing { pre, post } = &self.smoothing.symmetric;
        let depth = pre.len().max(post.len()) + 2;
        exchange::halo(&self.stream, rows, shape, &level.operator.right_side, depth)
    }

    /// As on the CPU.
    fn cycle_below(
        &mut self,
        rows: &mut LevelRows<'_>,
        first: usize,
        start: i32,
        symmetric: bool,
    ) -> Result<(), GpuError> {
        let count = self.levels.len();
        for at in first..count {
            let start = if at == first { start } else { START_ZERO };
            if start == START_ZERO {
                self.complete_right_side(rows, at)?;
            }
            if at + 1 < count {
                let Smoothing { pre, .. } = self.smoothing_of(at, symmetric);
                let down = Plan {
                    start,
                    steps: &pre,
                    measured: None,
                    restrict: true,
                    solved: None,
                };
                self.pass(rows, at, &down)?;
            }
        }
        self.solve_coarsest()?;
        for at in (first..count - 1).rev() {
            let Smoothing { post, .. } = self.smoothing_of(at, symmetric);
            let up = Plan {
                start: START_CORRECTED,
                steps: &post,
                measured: None,
                restrict: false,
                solved: None,
            };
            self.pass(rows, at, &up)?;
            let level = &self.levels[at];
            exchange::halo(
                &self.stream,
                rows,
                &level.shape,
                level.field(),
                OF_CORRECTION,
            )?;
        }
        Ok(())
    }

    /// Of level `at`, in cycles or, if `symmetric`, in a preconditioner.
    fn smoothing_of(&self, at: usize, symmetric: bool) -> Smoothing {
        self.smoothing.of_level(at, symmetric).clone()
    }

    fn solve_coarsest(&self) -> Result<(), GpuError> {
        let last = self.levels.last().expect("there is a level");
        // SAFETY: the parameter is a `box_pass` of the coarsest level, whose arrays have its extent, with its factor. Every
        // PE has all of it.
        unsafe { self.launch(&self.solve_coarsest, 1, 32, last.arguments()) }
    }
}

impl Preconditioner for GpuBox {
    fn correction(&self) -> u64 {
        self.levels[0].field().address()
    }

    fn cycle(
        &mut self,
        rows: &mut LevelRows<'_>,
        r: &DeviceField<f64>,
        _: i32,
    ) -> Result<(), GpuError> {
        let Smoothing { pre, post } = self.smoothing_of(0, true);
        let depth = pre.len().max(post.len()) + 2;
        exchange::halo(&self.stream, rows, &self.levels[0].shape, r, depth)?;
        let down = Plan {
            start: START_ZERO,
            steps: &pre,
            measured: None,
            restrict: true,
            solved: None,
        };
        self.pass(rows, 0, &down)?;
        self.cycle_below(rows, 1, START_ZERO, true)?;
        let up = Plan {
            start: START_CORRECTED,
            steps: &post,
            restrict: false,
            ..down
        };
        self.pass(rows, 0, &up)
    }
}

/// A lower triangle of `n` rows, above its diagonal the same transposed.
fn mirrored(lower: &[f64], n: usize) -> Vec<f64> {
    let at = |i: usize, j: usize| lower[i.max(j) * n + i.min(j)];
    (0..n * n).map(|place| at(place / n, place % n)).collect()
}

/// Planes of a block that restricts right sides, of `planes`, where a plane has `columns` blocks: planes between two blocks are
/// read by both, so there are as few of these as keep the GPU busy.
fn planes_to_restrict(planes: usize, columns: usize) -> usize {
    let busy = planes.div_ceil((RESTRICTING_BLOCKS / columns).max(1));
    busy.clamp(1, MOST_RESTRICTED)
        .max(planes.div_ceil(MOST_BLOCKS))
}

/// Rows of leaves of the planes that this PE has.
pub(super) fn bands_of(finest: &Operator) -> usize {
    finest.shape.own().len() * finest.lines[1].axis.len.div_ceil(LEAF_ROWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_sides_are_restricted_by_enough_blocks_and_no_more_than_a_launch_has() {
        // Of 1025³ and 33³ points: by their 17 · 33 and 1 · 2 blocks a plane.
        assert_eq!(planes_to_restrict(513, 17 * 33), MOST_RESTRICTED);
        assert_eq!(planes_to_restrict(17, 2), 1);
        for planes in [1, 2, 1000, 65_536, 3_000_000, 1 << 30] {
            for columns in [1, 561, 100_000] {
                let of_a_block = planes_to_restrict(planes, columns);
                let blocks = planes.div_ceil(of_a_block);
                assert!((1..=MOST_BLOCKS).contains(&blocks), "{planes} {columns}");
            }
        }
    }

    #[test]
    fn boxes_that_launches_have_no_room_for_are_refused() {
        let error = |size| GpuBox::check(size).expect_err("too large").to_string();
        assert!(GpuBox::check([3, 2_097_120, 3]).is_ok());
        assert!(GpuBox::check([3_000_000, 3, 3_000_000]).is_ok());
        let text = error([3, 3_000_000, 3]);
        assert!(
            text.contains("3000000") && text.contains("2097120"),
            "{text}"
        );
        assert!(error([1 << 31, 3, 3]).contains("2147483648"));
    }
}
