//! Levels of a plane that the GPU makes of the finer ones, with the bits of the host's: see `engine/cpu/multigrid/galerkin.rs`.
//!
//! Where points differ, rows do, too, and the host takes longer to make the levels and to bring them here than all cycles do.
#![allow(unsafe_code)] // Launches of kernels.

use crosswarp_cuda::{ByValue, Function, KernelArgs, Launch, Stream};

use super::extent;
use super::pass_kernels::Kind;
use super::storage::DeviceTable;
use crate::engine::cpu::multigrid::hierarchy::Hierarchy;
use crate::engine::cpu::multigrid::interpolation::WEIGHTS;
use crate::engine::cpu::multigrid::operator_rows::PARTS;
use crate::engine::cpu::multigrid::shape::Axis;
use crate::engine::cuda::arena::Arena;
use crate::engine::cuda::kernels;
use crate::exchange::level_rows::LevelRows;
use crate::gpu::error::GpuError;
use crate::gpu::level_arguments::{
    END_OPEN, END_WRAP, GALERKIN_COLUMNS, GALERKIN_THREADS, LevelPass,
};

/// The GPU makes the next level of those with more points than this; below, the host is as fast.
const FEWEST_POINTS: usize = 1 << 11;
/// A grid has so many rows of blocks at most.
const MOST_ROWS: usize = 65_535;

/// A level that the GPU has made.
pub(super) struct MadeLevel {
    /// The operator, and 1 / its diagonal.
    pub operator: [DeviceTable<f32>; 2],
    /// From it to the finer level.
    pub transfer: DeviceTable<f32>,
}

/// The kernels that make the first level of a finest one of this kind, and all others.
pub(super) fn kernels_of(kind: Kind) -> [&'static str; 3] {
    let first = match kind {
        Kind::Varying => "galerkin_varying",
        Kind::Plain | Kind::Masked => "galerkin_masked",
    };
    [first, "galerkin_coarse", "galerkin_inverse"]
}

/// Whether kernels make the next level of one with these axes.
pub(crate) fn is_possible([x, y]: [Axis; 2]) -> bool {
    let ends_meet = |axis: Axis| axis.wraps && !axis.len.is_multiple_of(2);
    let is_long = |axis: Axis| axis.len > GALERKIN_COLUMNS;
    let fits = |axis: Axis| is_long(axis) && !ends_meet(axis);
    x.len * y.len > FEWEST_POINTS && y.len <= MOST_ROWS && fits(x) && fits(y)
}

/// How many levels kernels make of those that `hierarchy` has left to them.
pub(super) fn count_of(hierarchy: &Hierarchy<f32>) -> usize {
    if hierarchy.made_from() == 0 {
        return 0;
    }
    let coarse = hierarchy.levels.iter().map(|level| &level.operator.shape);
    let fine = std::iter::once(&hierarchy.top.equations.shape).chain(coarse);
    let possible = fine
        .take_while(|fine| is_possible([fine.x, fine.y]))
        .count();
    possible.min(hierarchy.levels.len())
}

/// Makes the levels of `hierarchy` that it has left to this: the first ones here, the others there. `finest`: what kernels are told
/// of the finest level.
pub(super) fn make(
    arena: &Arena,
    hierarchy: &mut Hierarchy<f32>,
    rows: &mut LevelRows<'_>,
    finest: LevelPass,
) -> Result<Vec<MadeLevel>, GpuError> {
    if hierarchy.made_from() == 0 {
        return Ok(Vec::new());
    }
    let count = count_of(hierarchy);
    let stream = arena.stream();
    if count == 0 {
        hierarchy.make(0, rows)?;
        return Ok(Vec::new());
    }
    let [first, coarse, inverse] = kernels_of(Kind::of(&finest));
    let find = |name| kernels::find_plain(stream.device(), name);
    let (mut fine, mut kernel) = (finest, find(first)?);
    let mut made: Vec<MadeLevel> = Vec::new();
    for level in &hierarchy.levels[..count] {
        let shape = &level.operator.shape;
        let room = |parts| DeviceTable::room(arena, shape.y, shape.x.len, parts);
        let level = MadeLevel {
            operator: [room(PARTS)?, room(1)?],
            transfer: room(WEIGHTS)?,
        };
        fine.coarse_nx = shape.x.len as i32;
        fine.coarse_ny = shape.y.len as i32;
        let [operator, diagonal] = &level.operator;
        let rows_of_block = GALERKIN_THREADS / GALERKIN_COLUMNS;
        let blocks = [
            shape.x.len.div_ceil(GALERKIN_COLUMNS),
            shape.y.len.div_ceil(rows_of_block),
        ];
        let parameters = (ByValue(fine), level.transfer.rows(), operator.rows());
        // SAFETY: the parameters are a `level_pass` of the kernel's type, whose operator or mask is there, and the rows of two tables
        // of the coarse level, of so many parts; blocks cover it.
        unsafe { launch(stream, &kernel, blocks, parameters) }?;
        let [operator_index, operator_rows] = operator.addresses();
        let ends = [shape.x, shape.y].map(|axis| if axis.wraps { END_WRAP } else { END_OPEN });
        fine = LevelPass {
            operator_index,
            operator_rows,
            ends: [ends[0], ends[0], ends[1], ends[1]],
            ..extent(shape, None)
        };
        let blocks = [shape.x.len.div_ceil(GALERKIN_THREADS), shape.y.len];
        // SAFETY: the parameters are a `level_pass<float>` of a level whose operator has been made, and the rows of a table of it of
        // one part; blocks cover it.
        unsafe {
            launch(
                stream,
                &find(inverse)?,
                blocks,
                (ByValue(fine), diagonal.rows()),
            )
        }?;
        made.push(level);
        kernel = find(coarse)?;
    }
    let last = made.last().expect("there is one");
    let level = &mut hierarchy.levels[count - 1];
    let values = last.operator[0].made_rows(stream)?;
    let elements = PARTS * (level.operator.shape.x.len + 2);
    for (y, row) in (0..).zip(values.chunks_exact(elements)) {
        level.operator.set_stored(y, row);
    }
    let masked = finest.fixed != 0;
    level.operator.complete(rows, false, false, masked)?;
    hierarchy.make(count, rows)?;
    Ok(made)
}

/// # Safety
/// As of a launch.
unsafe fn launch(
    stream: &Stream,
    kernel: &Function,
    [across, down]: [usize; 2],
    parameters: impl KernelArgs,
) -> Result<(), GpuError> {
    let launch = Launch::new(kernel)
        .grid((across as u32, down as u32))
        .block(GALERKIN_THREADS as u32);
    // SAFETY: the caller's.
    Ok(unsafe { launch.launch(stream, parameters) }?)
}
