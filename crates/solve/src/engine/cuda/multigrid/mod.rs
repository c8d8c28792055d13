//! Cycles on a GPU, with the bits of the CPU's.
//!
//! The host makes the levels and copies them once, with a mask or couplings of many different rows the GPU of a single PE makes the
//! large ones itself (`galerkin.rs`). Field, right side and corrections stay in the GPU's memory. After each cycle the host reads the sum of
//! the squares of the residual, and decides. Levels are dealt to PEs as on the CPU; each pass computes the own rows from
//! those around them, which are exchanged before it.
#![allow(unsafe_code)] // Launches of kernels.

mod array_kernels;
pub(crate) mod arrays;
pub(crate) mod equations;
pub(crate) mod exchange;
pub(crate) mod galerkin;
mod level;
pub(crate) mod operator;
mod pass_kernels;
mod small;
pub(crate) mod space;
pub(crate) mod steps;
pub(crate) mod storage;
mod sums;
pub(crate) mod voids;

use std::collections::BTreeSet;
use std::ops::Range;

use crosswarp_cuda::{ByValue, Function, Launch, Stream};
use crosswarp_prim::Superaccumulator;
use crosswarp_prim::leaf::ROWS as LEAF_ROWS;

use self::equations::{DeviceEquations, EquationsOnGpu, RightSide};
use self::galerkin::MadeLevel;
use self::level::{DeviceLevel, Plan};
use self::pass_kernels::{
    Kind, PassKernel, coarse_kernels, finest_kernels, fitting, preconditioning_kernels,
};
use self::small::Small;
use self::steps::{Made, PlaneGradients, Preconditioner};
use self::storage::{DeviceField, DeviceTable, Stored, pitch_of};
use self::sums::LeafSums;
use crate::engine::cpu::multigrid::cycle::power_of_two;
use crate::engine::cpu::multigrid::finest::Finest;
use crate::engine::cpu::multigrid::galerkin::{Transfer, computed_rows};
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::engine::cpu::multigrid::shape::Shape;
use crate::engine::cpu::multigrid::smoothing::{Smoothing, Step};
use crate::engine::cuda::arena::{Arena, ArenaBuffer};
use crate::engine::cuda::kernels;
use crate::exchange::level_rows::LevelRows;
use crate::field::storage::Field;
use crate::gpu::Gpu;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    END_FIXED, END_OPEN, END_WRAP, LEVEL_THREADS, LevelPass, MOST_STEPS, RESTRICTED_ROWS,
    START_CORRECTED, START_CORRECTION, START_FIELD, START_ZERO,
};

/// Rows of a correction that the finer level needs beyond its own: those of a launch's, halved.
const OF_CORRECTION: usize = (MOST_STEPS + 2) / 2 + 1;
/// Rows of a block on coarse levels are a multiple of it.
const COARSE_ROWS: usize = 2;

/// The kernels beside passes.
const BEGIN: &str = "level_begin";
const RESTRICT_RIGHT_SIDE: &str = "level_restrict_right_side";
const SQUARE: &str = "level_square";

/// A coarse level.
struct Coarse {
    level: DeviceLevel<f32>,
    right_side: DeviceField<f32>,
    _tables: [DeviceTable<f32>; 2],
    /// From here to the next level.
    _transfer: Option<DeviceTable<f32>>,
}

/// What cycles begin with.
pub(crate) struct CyclesOf<'a> {
    /// The field, which else is zero.
    pub u: Option<&'a Field<f64>>,
    pub right_side: RightSide<'a>,
    /// What the host does not have of the equations.
    pub on_gpu: EquationsOnGpu,
    /// Row 0's number in the leaves.
    pub first: usize,
    /// What [`begin`](GpuCycles::begin) will be told.
    pub full: bool,
    /// See [`Small::new`].
    pub whole_gpu: bool,
}

/// All levels, in the memory of a GPU.
pub(crate) struct GpuCycles {
    finest: DeviceLevel<f64>,
    levels: Vec<Coarse>,
    smoothing: Smoothing,
    symmetric_smoothing: Smoothing,
    coarse_smoothing: Smoothing,
    /// The finest level's ω are multiplied by it.
    inverse: f64,
    exponent: i32,
    begin: Function,
    restrict_right_side: Function,
    square: Function,
    small: Small,
    sums: LeafSums,
    equations: DeviceEquations,
    stream: Stream,
    _kept: Kept,
}

/// What kernels reach by address only.
struct Kept {
    _transfer: DeviceTable<f32>,
    _dense: (ArenaBuffer<f64>, ArenaBuffer<u8>),
}

impl GpuCycles {
    /// Copies the levels, or makes those that have been left to it, the field and the right side.
    pub(crate) fn new(
        gpu: &Gpu,
        hierarchy: &mut Hierarchy<f32>,
        rows: &mut LevelRows<'_>,
        of: CyclesOf<'_>,
    ) -> Result<GpuCycles, GpuError> {
        let CyclesOf {
            u,
            right_side,
            on_gpu,
            first,
            full,
            whole_gpu,
        } = of;
        let finest = &hierarchy.top.equations;
        DeviceEquations::check(finest)?;
        let device = &gpu.device;
        let stream = Stream::new(device)?;
        let arena = Arena::new(&stream);
        let equations = DeviceEquations::new(&arena, finest, right_side, on_gpu, first)?;
        let kind = Kind::of(&equations.arguments);
        let shared = device.properties().shared_per_block_optin;
        let passes = finest_kernels(kind, &finest.shape, &hierarchy.smoothing, full, shared);
        let coarse_passes = coarse_kernels(&hierarchy.coarse_smoothing, full);
        let varied = galerkin::count_of(hierarchy) > 0;
        let of_levels = hierarchy.levels.iter();
        let of_levels =
            of_levels.flat_map(|level| fitting(&coarse_passes, &level.operator.shape, varied));
        let names: BTreeSet<_> = (passes.iter().copied().chain(of_levels))
            .map(|pass| pass.name)
            .collect();
        let others = [BEGIN, RESTRICT_RIGHT_SIDE, SQUARE, small::KERNEL];
        let makers = match varied {
            false => Vec::new(),
            true => galerkin::kernels_of(kind).to_vec(),
        };
        let others = others.into_iter().chain(sums::KERNELS).chain(makers);
        kernels::compile_together(device, names.into_iter().chain(others));
        let made = galerkin::make(&arena, hierarchy, rows, equations.arguments)?;
        let finest = &hierarchy.top.equations;
        let (levels, made) = coarse_levels(&arena, hierarchy, made, varied, &coarse_passes)?;
        let coarse = &hierarchy.levels[0].operator.shape;
        let transfer = match made {
            Some(transfer) => transfer,
            None => transfer_table(&arena, &hierarchy.transfer, &finest.shape, coarse)?,
        };
        let bands = equations.bands.clone();
        let sums = LeafSums::new(&arena, finest.shape.x.len, bands, 1)?;
        let next = levels.first().expect("there is a coarse level");
        let stored = Stored::of(&finest.shape);
        let [calm_start, calm_end] = match hierarchy.made_from() {
            0 => longest_run(stored.inside(), |y| hierarchy.transfer.identity(y / 2)),
            _ => [0; 2],
        };
        let [transfer_index, transfer_rows] = transfer.addresses();
        let arguments = LevelPass {
            transfer_index,
            transfer_rows,
            sums: sums.place().sums,
            sum_pitch: sums.place().sum_pitch,
            leaf_bands: sums.place().leaf_bands,
            calm_start,
            calm_end,
            ..beside(equations.arguments, Some(next))
        };
        let shape = &finest.shape;
        let mut level = DeviceLevel::new(&arena, shape, arguments, &passes, LEAF_ROWS)?;
        if let Some(u) = u {
            level.upload(&stream, u)?;
        }
        let dense = &hierarchy.dense;
        let active: Vec<u8> = dense.active().iter().map(|&active| active.into()).collect();
        let factor = (arena.copied(dense.factor())?, arena.copied(&active)?);
        let smoothing = &hierarchy.coarse_smoothing;
        let small = Small::new(gpu, &arena, &levels, whole_gpu, &factor, smoothing)?;
        let find = |name| kernels::find_plain(device, name);
        Ok(GpuCycles {
            finest: level,
            levels,
            smoothing: hierarchy.smoothing.clone(),
            symmetric_smoothing: hierarchy.symmetric_smoothing.clone(),
            coarse_smoothing: hierarchy.coarse_smoothing.clone(),
            inverse: same_inverse(finest),
            exponent: 0,
            begin: find(BEGIN)?,
            restrict_right_side: find(RESTRICT_RIGHT_SIDE)?,
            square: find(SQUARE)?,
            small,
            sums,
            equations,
            stream,
            _kept: Kept {
                _transfer: transfer,
                _dense: factor,
            },
        })
    }

    /// See `Hierarchy::begin`. The sum of squares.
    pub(crate) fn begin(
        &mut self,
        rows: &mut LevelRows<'_>,
        full: bool,
        exponent: i32,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        let pre = self.steps(&self.smoothing.pre);
        let plan = Plan {
            start: START_FIELD,
            steps: if full { &[] } else { &pre },
            solved: None,
            measured: Some(0),
            restrict: true,
            up_scale: power_of_two(self.exponent),
            down_scale: power_of_two(-exponent),
        };
        self.exponent = exponent;
        if full && self.is_right_side_alone() {
            let (stream, level) = (&self.stream, &self.finest);
            // As a pass does, which another PE may make.
            exchange::halo(stream, rows, &level.shape, level.field(), 2)?;
            let arguments = LevelPass {
                down_scale: plan.down_scale,
                ..level.arguments()
            };
            restrict_right_side(stream, &self.begin, &level.shape, arguments)?;
        } else {
            self.on_finest(rows, &plan)?;
        }
        self.sums.publish(&self.stream, 1)?;
        if full {
            self.solve_coarse(rows)?;
            let begun = self.steps(&self.smoothing.begun());
            let plan = Plan {
                start: START_CORRECTED,
                steps: &begun,
                measured: None,
                up_scale: power_of_two(exponent),
                ..plan
            };
            self.on_finest(rows, &plan)?;
        }
        self.sum(rows)
    }

    /// Whether the finest level's residual is its right side, but for what the first and the last row, which keep their values,
    /// add beside them.
    fn is_right_side_alone(&self) -> bool {
        let of = &self.equations.arguments;
        let sides_are_fixed = of.ends.iter().all(|&end| end == END_FIXED);
        let is_plain = Kind::of(of) == Kind::Plain;
        self.finest.is_zero() && of.right_side != 0 && is_plain && sides_are_fixed
    }

    /// See `Hierarchy::resume`.
    pub(crate) fn resume(
        &mut self,
        rows: &mut LevelRows<'_>,
        exponent: i32,
        left_by_cycles: bool,
    ) -> Result<(), GpuError> {
        let plan = Plan {
            start: START_FIELD,
            steps: &[],
            solved: self.smoothing.solved_before().filter(|_| left_by_cycles),
            measured: None,
            restrict: true,
            up_scale: 1.0,
            down_scale: power_of_two(-exponent),
        };
        self.exponent = exponent;
        self.on_finest(rows, &plan)
    }

    /// See `Hierarchy::go_on`. The sum of squares.
    pub(crate) fn go_on(
        &mut self,
        rows: &mut LevelRows<'_>,
        exponent: i32,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        self.cycle_below(rows, 0, START_ZERO)?;
        let Smoothing { pre, post } = &self.smoothing;
        let steps = self.steps(&[&post[..], &pre[..]].concat());
        let plan = Plan {
            start: START_CORRECTED,
            steps: &steps,
            solved: None,
            measured: Some(steps.len()),
            restrict: true,
            up_scale: power_of_two(self.exponent),
            down_scale: power_of_two(-exponent),
        };
        self.exponent = exponent;
        self.on_finest(rows, &plan)?;
        self.sums.publish(&self.stream, 1)?;
        self.sum(rows)
    }

    /// Loads the passes of [`cycle`](Preconditioner::cycle) in place of those of cycles.
    fn prepare_to_precondition(&mut self) -> Result<(), GpuError> {
        let kind = Kind::of(&self.equations.arguments);
        let passes = preconditioning_kernels(kind, &self.symmetric_smoothing);
        let device = self.stream.device();
        kernels::compile_together(device, passes.iter().map(|pass| pass.name));
        self.finest.load(device, &passes)
    }

    /// The sums of squares of the residual and of `Finest::add_field`.
    pub(crate) fn measure(
        &mut self,
        rows: &mut LevelRows<'_>,
    ) -> Result<[Superaccumulator<f64>; 2], GpuError> {
        let plan = Plan {
            start: START_FIELD,
            steps: &[],
            solved: None,
            measured: Some(0),
            restrict: false,
            up_scale: 1.0,
            down_scale: 1.0,
        };
        self.on_finest(rows, &plan)?;
        self.sums.publish(&self.stream, 1)?;
        let residual = self.sum(rows)?;
        Ok([residual, self.square(rows)?])
    }

    /// The sum of squares of `Finest::add_field`.
    pub(crate) fn square(
        &self,
        rows: &mut LevelRows<'_>,
    ) -> Result<Superaccumulator<f64>, GpuError> {
        let arguments = self.finest.arguments();
        let blocks = (
            (arguments.nx as usize).div_ceil(LEVEL_THREADS) as u32,
            arguments.leaf_bands as u32,
        );
        let launch = Launch::new(&self.square)
            .grid(blocks)
            .block(LEVEL_THREADS as u32);
        // SAFETY: the parameter is a `level_pass<double>` whose arrays have its extent; blocks cover the columns and
        // bands.
        unsafe { launch.launch(&self.stream, (ByValue(arguments),)) }?;
        self.sums.publish(&self.stream, 1)?;
        self.sum(rows)
    }

    /// Copies the field to `u`.
    pub(crate) fn save(&self, u: &mut Field<f64>) -> Result<(), GpuError> {
        self.finest.field().download(&self.stream, u)
    }

    /// With ω over the diagonal where all couplings are 1.
    fn steps(&self, of: &[Step]) -> Vec<Step> {
        let step = |&Step { omega, colour }: &Step| Step {
            omega: self.inverse * omega,
            colour,
        };
        of.iter().map(step).collect()
    }

    fn on_finest(&mut self, rows: &mut LevelRows<'_>, plan: &Plan<'_>) -> Result<(), GpuError> {
        let correction = self.levels[0].level.field().address();
        self.finest.pass(&self.stream, rows, plan, correction)
    }

    /// What has been published. Waits for it.
    fn sum(&self, rows: &mut LevelRows<'_>) -> Result<Superaccumulator<f64>, GpuError> {
        let [sum] = self.sums.read(&self.stream, rows)?;
        Ok(sum)
    }

    /// As on the CPU.
    fn solve_coarse(&mut self, rows: &mut LevelRows<'_>) -> Result<(), GpuError> {
        for at in 0..self.small.from {
            self.complete_right_side(rows, at)?;
            let level = &self.levels[at].level;
            let kernel = &self.restrict_right_side;
            restrict_right_side(&self.stream, kernel, &level.shape, level.arguments())?;
        }
        self.complete_right_side(rows, self.small.from)?;
        self.small.cycle(&self.stream, true)?;
        for at in (0..self.small.from).rev() {
            self.cycle_below(rows, at, START_CORRECTION)?;
        }
        Ok(())
    }

    /// As on the CPU.
    fn complete_right_side(&mut self, rows: &mut LevelRows<'_>, at: usize) -> Result<(), GpuError> {
        let finer = match at.checked_sub(1) {
            None => &self.finest.shape,
            Some(finer) => &self.levels[finer].level.shape,
        };
        let (stream, level) = (&self.stream, &self.levels[at]);
        let shape = &level.level.shape;
        if finer.spread && !shape.spread {
            exchange::gather(stream, rows, shape, &level.right_side)?;
        }
        let smoothing = &self.coarse_smoothing;
        let steps = smoothing.pre.len().max(smoothing.post.len());
        exchange::halo(stream, rows, shape, &level.right_side, steps + 2)
    }

    /// As on the CPU.
    fn cycle_below(
        &mut self,
        rows: &mut LevelRows<'_>,
        first: usize,
        start: i32,
    ) -> Result<(), GpuError> {
        let small = self.small.from;
        let Smoothing { pre, post } = self.coarse_smoothing.clone();
        let plan = Plan {
            start,
            steps: &pre,
            solved: None,
            measured: None,
            restrict: true,
            up_scale: 1.0,
            down_scale: 1.0,
        };
        for at in first..small {
            let start = if at == first { start } else { START_ZERO };
            if start == START_ZERO {
                self.complete_right_side(rows, at)?;
            }
            self.on_coarse(rows, at, &Plan { start, ..plan })?;
        }
        self.complete_right_side(rows, small)?;
        self.small.cycle(&self.stream, false)?;
        for at in (first..small).rev() {
            let plan = Plan {
                start: START_CORRECTED,
                steps: &post,
                restrict: false,
                ..plan
            };
            self.on_coarse(rows, at, &plan)?;
            let level = &self.levels[at].level;
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

    fn on_coarse(
        &mut self,
        rows: &mut LevelRows<'_>,
        at: usize,
        plan: &Plan<'_>,
    ) -> Result<(), GpuError> {
        let correction = self.levels[at + 1].level.field().address();
        let level = &mut self.levels[at].level;
        level.pass(&self.stream, rows, plan, correction)
    }
}

impl PlaneGradients {
    /// Goes on from the field of `cycles`; gives them back if there is no room.
    pub(crate) fn of_cycles(mut cycles: GpuCycles) -> Result<Self, Box<(GpuCycles, GpuError)>> {
        let made = (|| {
            cycles.prepare_to_precondition()?;
            let shape = cycles.finest.shape.clone();
            let made = Made {
                arguments: cycles.finest.arguments(),
                leaves: (shape.x.len, cycles.equations.bands.clone()),
                shape,
                inverse: cycles.inverse,
                arena: Arena::new(&cycles.stream),
            };
            Ok((made.field()?, made.room()?))
        })();
        let (z, room) = match made {
            Ok(made) => made,
            Err(error) => return Err(Box::new((cycles, error))),
        };
        cycles.finest.set_right_side(room.residual());
        let u = cycles.finest.replace_field(z);
        Ok(room.with(cycles, u))
    }
}

impl Preconditioner for GpuCycles {
    fn correction(&self) -> u64 {
        self.finest.field().address()
    }

    fn cycle(
        &mut self,
        rows: &mut LevelRows<'_>,
        r: &DeviceField<f64>,
        exponent: i32,
    ) -> Result<(), GpuError> {
        let pre = self.steps(&self.symmetric_smoothing.pre);
        let post = self.steps(&self.symmetric_smoothing.post);
        let depth = pre.len().max(post.len()) + 2;
        exchange::halo(&self.stream, rows, &self.finest.shape, r, depth)?;
        let down = Plan {
            start: START_ZERO,
            steps: &pre,
            solved: None,
            measured: None,
            restrict: true,
            up_scale: power_of_two(self.exponent),
            down_scale: power_of_two(-exponent),
        };
        self.exponent = exponent;
        self.on_finest(rows, &down)?;
        self.cycle_below(rows, 0, START_ZERO)?;
        let up = Plan {
            start: START_CORRECTED,
            steps: &post,
            restrict: false,
            up_scale: power_of_two(exponent),
            ..down
        };
        self.on_finest(rows, &up)
    }
}

/// Makes the next level's right side from that of a level: `kernel` is [`BEGIN`] for the finest one, whose field is zero but in
/// the first and last rows, [`RESTRICT_RIGHT_SIDE`] for others.
fn restrict_right_side(
    stream: &Stream,
    kernel: &Function,
    shape: &Shape,
    arguments: LevelPass,
) -> Result<(), GpuError> {
    let own = shape.own();
    // Where leaves begin.
    let begin = own.start - (own.start + arguments.first as isize) % LEAF_ROWS as isize;
    let columns = shape.x.len.div_ceil(2 * LEVEL_THREADS);
    let bands = ((own.end - begin) as usize).div_ceil(RESTRICTED_ROWS);
    let launch = Launch::new(kernel)
        .grid((columns as u32, bands as u32))
        .block(LEVEL_THREADS as u32);
    // SAFETY: the parameter is a `level_pass` of the kernel's type whose arrays have its extent, and the next level's right side
    // that of its own; blocks cover the columns and the own rows.
    Ok(unsafe { launch.launch(stream, (ByValue(arguments),)) }?)
}

/// The longest stretch of `rows` of which all numbers that `identities` gives are the same.
fn longest_run<I: PartialEq>(rows: Range<isize>, identities: impl Fn(isize) -> I) -> [i32; 2] {
    if rows.is_empty() {
        return [0; 2];
    }
    let (mut longest, mut start) = (0..0, rows.start);
    for y in rows.start + 1..=rows.end {
        if y == rows.end || identities(y) != identities(start) {
            if y - start > longest.end - longest.start {
                longest = start..y;
            }
            start = y;
        }
    }
    [longest.start as i32, longest.end as i32]
}

/// 1 / the diagonal where it is the same everywhere, else 1: kernels then look it up.
fn same_inverse(finest: &Finest) -> f64 {
    match finest.coefficients {
        Some(_) => 1.0,
        None => finest.inverse(),
    }
}

/// The sizes of a level and of the next.
fn extent(shape: &Shape, next: Option<&Coarse>) -> LevelPass {
    let of_level = LevelPass {
        pitch: pitch_of(shape.x.len) as i64,
        nx: shape.x.len as i32,
        ny: shape.y.len as i32,
        row_start: shape.own().start as i32,
        row_end: shape.own().end as i32,
        ..bytemuck::Zeroable::zeroed()
    };
    beside(of_level, next)
}

/// What kernels are told of a level, with where the next is.
fn beside(of_level: LevelPass, next: Option<&Coarse>) -> LevelPass {
    let next_level = next.map(|next| next.level.arguments());
    LevelPass {
        coarse_right_side: next.map_or(0, |next| next.right_side.address()),
        coarse_pitch: next_level.map_or(0, |next| next.pitch),
        coarse_nx: next_level.map_or(0, |next| next.nx),
        coarse_ny: next_level.map_or(0, |next| next.ny),
        ..of_level
    }
}

/// The weights between two levels.
fn transfer_table(
    arena: &Arena,
    transfer: &Transfer<f32>,
    fine: &Shape,
    coarse: &Shape,
) -> Result<DeviceTable<f32>, GpuError> {
    DeviceTable::new(arena, transfer, coarse.y, computed_rows(fine, coarse))
}

/// The levels below the finest one, of which the first have been `made` here, and if they have the weights to the finest. `varied`:
/// see [`fitting`].
fn coarse_levels(
    arena: &Arena,
    hierarchy: &Hierarchy<f32>,
    mut made: Vec<MadeLevel>,
    varied: bool,
    passes: &[PassKernel],
) -> Result<(Vec<Coarse>, Option<DeviceTable<f32>>), GpuError> {
    let mut levels: Vec<Coarse> = Vec::new();
    // From the level before to this one.
    let mut to_finer = None;
    for (at, from) in hierarchy.levels.iter().enumerate().rev() {
        let next = levels.last();
        let shape = &from.operator.shape;
        let stored = Stored::of(shape);
        let [parts, inverse] = from.operator.tables();
        let transfer = match (to_finer.take(), &from.transfer, next) {
            (Some(made), ..) => Some(made),
            (None, Some(transfer), Some(next)) => {
                Some(transfer_table(arena, transfer, shape, &next.level.shape)?)
            }
            _ => None,
        };
        let tables = match made.len() > at {
            true => made.pop().map(|level| {
                to_finer = Some(level.transfer);
                level.operator
            }),
            false => None,
        };
        let tables = match tables {
            Some(tables) => tables,
            None => [
                DeviceTable::new(arena, parts, shape.y, stored.own.clone())?,
                DeviceTable::new(arena, inverse, shape.y, stored.own.clone())?,
            ],
        };
        // Levels whose weights have been made here have no rows that are known to be the same.
        let [mut calm_start, mut calm_end] = match &from.transfer {
            Some(transfer) => longest_run(stored.inside(), |y| {
                (parts.identity(y), transfer.identity(y / 2))
            }),
            None => [0; 2],
        };
        let (mut same_couplings, mut same_columns, mut same_rows) = ([0.0; 4], [0; 2], [0; 2]);
        if let Some(same) = from.operator.same() {
            let of = same.couplings;
            same_couplings = [of.across, of.corner, of.along, of.inverse];
            let ends = |range: &Range<usize>| [range.start as i32, range.end as i32];
            (same_columns, same_rows) = (ends(&same.columns), ends(&same.rows));
            // So that calm rows have points that are alike, but for some columns.
            calm_start = calm_start.max(same_rows[0]);
            calm_end = calm_end.min(same_rows[1]);
        }
        let right_side = DeviceField::new(arena, shape.x.len, &stored)?;
        let axis_end = |wraps| if wraps { END_WRAP } else { END_OPEN };
        let [across, down] = [shape.x.wraps, shape.y.wraps].map(axis_end);
        let [operator_index, operator_rows] = tables[0].addresses();
        let [inverse_index, inverse_rows] = tables[1].addresses();
        let [transfer_index, transfer_rows] =
            transfer.as_ref().map_or([0; 2], DeviceTable::addresses);
        let arguments = LevelPass {
            right_side: right_side.address(),
            operator_index,
            operator_rows,
            inverse_index,
            inverse_rows,
            transfer_index,
            transfer_rows,
            ends: [across, across, down, down],
            calm_start,
            calm_end,
            same_couplings,
            same_columns,
            same_rows,
            ..extent(shape, next)
        };
        let passes = fitting(passes, shape, varied);
        levels.push(Coarse {
            level: DeviceLevel::new(arena, shape, arguments, &passes, COARSE_ROWS)?,
            right_side,
            _tables: tables,
            _transfer: transfer,
        });
    }
    levels.reverse();
    Ok((levels, to_finer))
}
