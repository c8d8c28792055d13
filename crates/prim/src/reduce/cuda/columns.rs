//! Reductions of the columns of matrices, as they lie.
#![allow(unsafe_code)] // Launches kernels.

use std::sync::Arc;

use crosswarp_cuda::{BufferRef, ByValue, Device, Function, Launch, Module, Options, Pod, Source};

use crate::reduce::cuda::arguments::{Arguments, ColumnArguments, Finish, THREADS};
use crate::reduce::cuda::segments::STATE_WORDS;
use crate::reduce::cuda::workspace::ReduceWorkspace;
use crate::sum::leaf::{LANES, LEAF};
use crate::{Element, Op, ReduceError};

/// Elements that a thread loads at once, at most (`widest_load` in the kernels).
const fn widest_load(size: usize) -> usize {
    if size == 8 { 2 } else { 4 }
}
/// Bytes of elements of each column that a tile of wide matrices has at least beside each other, and columns.
const LINE: usize = 64;
const LINE_COLUMNS: usize = 32;
/// Columns of narrow matrices, at most: 8 threads for each.
const NARROW: usize = THREADS as usize / 8;
/// Rows from which on a matrix is narrow: with fewer, a leaf's lanes have one row each.
const TALL: usize = LANES;
/// Whether a tile has whole rows of a matrix.
fn is_narrow(rows: usize, columns: usize) -> bool {
    rows > TALL && columns <= NARROW
}
/// Sums of floating-point elements that a thread makes (`sums` of `sum_of_column` in the kernels),
const SUMS: usize = 16;
/// and of wide matrices of elements of `size` bytes in a kernel of their own (`wide_sums`).
fn wide_sums(size: usize, two: bool) -> usize {
    if size <= 4 && !two { 32 } else { SUMS }
}
/// The same of matrices of `f64` of few tiles, which then have half the columns.
const HALF_SUMS: usize = SUMS / 2;
/// Blocks that are enough for any GPU.
const BLOCKS: usize = 256;
/// Rows up to which a thread has all of its columns (`few_rows` in the kernels).
const FEW_ROWS: usize = 16;
/// Parts of a column that a thread adds up at once, at least (`parts_in_flight` in the kernels).
const PARTS_IN_FLIGHT: usize = 4;
/// From how many parts on a block adds up a column's parts, and not a warp.
const MANY_PARTS: usize = 256;
/// Bytes up to which the blocks that have parts also add them up: a second launch takes the host longer. With more, each
/// block would pay for asking whether it is the last one.
const ONE_LAUNCH: usize = 64 << 20;
/// Bytes from which on wide matrices have a kernel of their own.
const LARGE: usize = 16 << 20;
/// How often the threads of the last block take columns then, at most.
const LAST_TURNS: usize = 8;
/// Threads that add up the parts of a column, at least, so that a warp that makes what has no quick way has few columns;
const LEAST_LANES: usize = 8;
/// by the last block (3162² `f32` took 14.6 µs with 8 on an H200, 14.2 with 2);
const LAST_LANES: usize = 4;
/// and of wide matrices. (With 8, 1e4 × 1e4 f32 took 102 µs instead of 99 on an H200.)
const WIDE_LANES: usize = 2;
/// Rows of a part, at least.
const LEAST_ROWS: usize = 128;
/// Blocks of a grid along its second axis, at most.
const ACROSS: usize = 1 << 15;

/// How `do_parts` and `do_few` of the kernel go through matrices: fields of [`ColumnArguments`], and its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiles {
    at_once: usize,
    vector: usize,
    last_vector: usize,
    ways: usize,
    tiles: usize,
    side: usize,
    few: usize,
    part_rows: usize,
    threads: usize,
    grid: [usize; 3],
}

impl Tiles {
    /// Of matrices of this shape, of elements of `size` bytes. `places`: the inputs' addresses, combined by or. `sums`:
    /// how many a thread makes, if each row has a leaf lane; `two`: whether there are two inputs; `resident`: blocks that a
    /// GPU has at a time.
    fn new(
        [batch, rows, columns]: [usize; 3],
        size: usize,
        places: usize,
        sums: Option<usize>,
        two: bool,
        resident: usize,
    ) -> Self {
        // Elements in front of which there are `bytes` bytes can be loaded together.
        let vector =
            |bytes: usize| (1 << (bytes / size).trailing_zeros().min(2)).min(widest_load(size));
        // Rows of a part, if blocks have `side` columns or matrices side by side. Parts that are no leaves are so short that
        // no multiprocessor is idle; but one part needs no second launch.
        let part_rows = |side: usize| {
            if sums.is_some() || rows <= LEAF {
                return LEAF;
            }
            // Fewer than have a second launch for themselves.
            let parts = (resident / side).clamp(1, MANY_PARTS - 1);
            rows.div_ceil(parts).next_multiple_of(LEAST_ROWS).min(LEAF)
        };
        if is_narrow(rows, columns) {
            let part_rows = part_rows(batch);
            let parts = rows.div_ceil(part_rows);
            let matrix = rows * columns * size;
            let last_vector = vector(places | matrix);
            let tiles = batch * parts;
            let side = (THREADS as usize / (8 * columns)).min(tiles.div_ceil(BLOCKS));
            let vector = if batch == 1 {
                vector(places)
            } else {
                last_vector
            };
            return Self {
                at_once: columns,
                vector,
                last_vector,
                ways: 8 * vector,
                tiles,
                side,
                few: 0,
                part_rows,
                threads: (side * 8 * columns).next_multiple_of(32),
                grid: [tiles.div_ceil(side), 1, 1],
            };
        }
        let vector = vector(places | (columns * size));
        if rows <= FEW_ROWS {
            // All that may be loaded at once (`few_columns` in the kernels), or one.
            let bytes = match (two, sums.is_some() && size == 8) {
                (true, _) => 4,
                (false, true) => 16,
                (false, false) => 8,
            };
            let most = (bytes / size).clamp(1, 4);
            let few = if vector >= most { most } else { 1 };
            let at_once = THREADS as usize * few;
            // More blocks than there can be at a time: they do not all end at once.
            let blocks = (batch * columns).div_ceil(at_once).min(8 * resident);
            return Self {
                at_once,
                vector: few,
                last_vector: few,
                ways: 1,
                tiles: 0,
                side: 0,
                few,
                part_rows: LEAF,
                threads: THREADS as usize,
                grid: [blocks, 1, 1],
            };
        }
        // One at a time, 1e4 × 1e4 f64 took 268 µs, two at a time 275.
        let vector = if sums.is_some() && size == 8 && rows > TALL {
            1
        } else {
            vector
        };
        let in_flight = if two || size == 8 { 16 } else { 32 };
        let ways = if rows <= TALL {
            (rows * vector).div_ceil(in_flight).next_power_of_two()
        } else if let Some(sums) = sums {
            LANES * vector / sums
        } else {
            THREADS as usize * vector / LINE_COLUMNS.max(LINE / size)
        };
        let at_once = THREADS as usize * vector / ways;
        let side = (batch * columns).div_ceil(at_once);
        let part_rows = part_rows(side);
        let parts = rows.div_ceil(part_rows);
        let across = parts.min(ACROSS);
        Self {
            at_once,
            vector,
            last_vector: vector,
            ways,
            tiles: 0,
            side: 0,
            few: 0,
            part_rows,
            threads: THREADS as usize,
            grid: [side, across, parts.div_ceil(across)],
        }
    }
}

/// The kernels that only sums of floating-point elements have.
pub(super) const WIDE: &str = "reduce_wide_columns";
pub(super) const HALF: &str = "reduce_half_tiles";

/// The kernel of one operation on one type.
pub(crate) struct ColumnProgram {
    kernel: Function,
    /// Parts and totals in one launch.
    at_once: Function,
    /// Blocks of either that the GPU has at a time.
    resident: usize,
    /// Of sums of floating-point elements, parts of wide matrices, and its blocks;
    wide: Option<(Function, usize)>,
    /// of `f64`, those of few tiles, with totals.
    half: Option<Function>,
}

/// Bytes of what is known of a part of a column (`BODY::part` in the kernels).
fn part_bytes<T: Element>(op: Op) -> usize {
    match op {
        Op::Min | Op::Max | Op::Argmin | Op::Argmax => 16,
        _ if !T::DTYPE.is_float() => 24,
        _ => size_of::<T>().max(4),
    }
}

impl ColumnProgram {
    pub fn load(
        device: &Device,
        source: &Source<'static>,
        options: &Options,
    ) -> Result<Self, ReduceError> {
        let module =
            Module::compile_with(device, source, options).map_err(crosswarp_cuda::Error::from)?;
        let function = |name| module.function(name).map_err(crosswarp_cuda::Error::from);
        let kernel = function("reduce_columns")?;
        let at_once = function("reduce_columns_at_once")?;
        let multiprocessors = device.properties().multiprocessors.max(1);
        let resident = |function: &Function| -> Result<usize, ReduceError> {
            let blocks = function
                .blocks_per_multiprocessor(THREADS, 0)
                .map_err(crosswarp_cuda::Error::from)?;
            Ok((blocks.max(1) * multiprocessors) as usize)
        };
        let (wide, half) = if source.shapes.iter().any(|shape| shape.kernel == WIDE) {
            let kernel = function(WIDE)?;
            let resident = resident(&kernel)?;
            (Some((kernel, resident)), Some(function(HALF)?))
        } else {
            (None, None)
        };
        Ok(Self {
            resident: resident(&kernel)?,
            kernel,
            at_once,
            wide,
            half,
        })
    }

    /// [`DeviceReducer::enqueue_columns`](crate::cuda::DeviceReducer::enqueue_columns) of inputs of `n` elements.
    pub fn enqueue<T: Element, R: Pod>(
        self: &Arc<Self>,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        [batch, rows, columns]: [usize; 3],
        results: BufferRef<'_, R>,
    ) -> Result<(), ReduceError> {
        assert!(rows > 0, "columns have elements");
        assert_eq!(results.len(), batch * columns, "a result for each column");
        assert_eq!(
            inputs[0].len(),
            batch * rows * columns,
            "matrices of this shape"
        );
        assert!(
            matches!(size_of::<R>(), 1 | 2 | 4 | 8),
            "results of 1 to 8 bytes"
        );
        if results.is_empty() {
            return Ok(());
        }
        workspace.keep(Arc::clone(self) as _);
        let bytes = inputs.len() * inputs[0].len() * size_of::<T>();
        let leaves = T::DTYPE.is_float() && part_bytes::<T>(op) <= size_of::<u64>();
        let two = inputs.len() == 2;
        let tiles = |sums: usize| {
            Tiles::new(
                [batch, rows, columns],
                size_of::<T>(),
                inputs.iter().fold(0, |all, input| all | input.address()) as usize,
                leaves.then_some(sums),
                two,
                self.resident,
            )
        };
        // Whether tiles are some columns of all rows of a leaf.
        let lines = rows > TALL && !is_narrow(rows, columns);
        let wide = self.wide.as_ref().filter(|_| lines && bytes > LARGE);
        let wide = wide.and_then(|(kernel, resident)| {
            let tiles = tiles(wide_sums(size_of::<T>(), two));
            let blocks: usize = tiles.grid.iter().product();
            // With fewer, more blocks of fewer columns are quicker.
            (4 * blocks >= 3 * resident).then_some((kernel, tiles))
        });
        let half = self.half.as_ref().filter(|_| {
            let blocks: usize = tiles(SUMS).grid.iter().product();
            wide.is_none() && lines && size_of::<T>() == 8 && 4 * blocks <= 3 * self.resident
        });
        let tiles = match (&wide, half) {
            (Some((_, tiles)), _) => *tiles,
            (None, Some(_)) => tiles(HALF_SUMS),
            (None, None) => tiles(SUMS),
        };
        let parts = rows.div_ceil(tiles.part_rows);
        if parts > 1 {
            let bytes = parts * results.len() * part_bytes::<T>(op);
            workspace.reserve_queue(bytes.div_ceil(size_of::<u64>()))?;
        }
        let lanes = if parts >= MANY_PARTS {
            THREADS as usize
        } else {
            let least = match wide {
                Some(_) => WIDE_LANES,
                None if bytes <= ONE_LAUNCH => LAST_LANES,
                None => LEAST_LANES,
            };
            let lanes = parts.div_ceil(PARTS_IN_FLIGHT).next_power_of_two();
            lanes.clamp(least, 32)
        };
        // What the last block then has to add up are few columns.
        let last_ones = if tiles.side > 0 {
            results.len()
        } else {
            tiles.at_once
        };
        // Parts of narrow matrices need fewer threads than the last block likes to have.
        let last_threads = (last_ones * lanes).next_multiple_of(32);
        let last_threads = tiles.threads.max(last_threads.min(THREADS as usize));
        let one_launch = parts > 1
            && wide.is_none()
            && bytes <= ONE_LAUNCH
            && lanes <= 32
            && last_ones * lanes <= LAST_TURNS * last_threads
            && (tiles.side > 0 || tiles.grid[0] <= STATE_WORDS);
        if one_launch {
            workspace.reserve_segments(STATE_WORDS)?;
        }
        let arguments = |lanes: usize| ColumnArguments {
            all: Arguments {
                x: inputs[0].address(),
                y: inputs[inputs.len() - 1].address(),
                n: rows as u64,
                count: 0,
                state: if one_launch {
                    workspace.segments.address()
                } else {
                    0
                },
                out: results.address(),
                finish: Finish::of(op) as u64,
                ahead: 0,
                result_bytes: size_of::<R>() as u64,
            },
            columns: columns as u64,
            results: results.len() as u64,
            parts: workspace.queue.address(),
            at_once: tiles.at_once as u32,
            vector: tiles.vector as u32,
            last_vector: tiles.last_vector as u32,
            ways: tiles.ways as u32,
            tiles: tiles.tiles as u32,
            side: tiles.side as u32,
            lanes: lanes as u32,
            few: tiles.few as u32,
            part_rows: tiles.part_rows as u64,
        };
        let launch = |kernel, grid: [usize; 3], threads: usize| {
            // More blocks than there can be are refused.
            let [x, y, z] = grid.map(|blocks| u32::try_from(blocks).unwrap_or(u32::MAX));
            let launch = Launch::new(kernel).grid((x, y, z)).block(threads as u32);
            launch.overlapping().prepare()
        };
        let first = match (wide, half) {
            (Some((wide, _)), _) => wide,
            (None, Some(half)) => half,
            (None, None) if one_launch => &self.at_once,
            (None, None) => &self.kernel,
        };
        let threads = THREADS as usize;
        let of_parts = launch(
            first,
            tiles.grid,
            if one_launch {
                last_threads
            } else {
                tiles.threads
            },
        )?;
        let totals = match (parts, one_launch) {
            (1, _) | (_, true) => None,
            _ => Some(launch(
                &self.kernel,
                [results.len().div_ceil(threads / lanes), 1, 1],
                threads,
            )?),
        };
        let first_lanes = if one_launch { lanes } else { 0 };
        // SAFETY: the kernel's one parameter is this structure. It reads the elements of matrices of this shape, which the
        // inputs have, and writes one result for each column; of columns of several parts the first launch writes, and it
        // or the second reads, as many parts as there is room for; the state has a counter for each tile. The rest is as in
        // `Launcher::launch`; parts and state are used by one reduction at a time, since the workspace is borrowed
        // exclusively and has one stream.
        unsafe {
            of_parts.launch(&workspace.stream, (ByValue(arguments(first_lanes)),))?;
            if let Some(totals) = totals {
                totals.launch(&workspace.stream, (ByValue(arguments(lanes)),))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_rows_and_columns_to_work_on() {
        for (shape, size, places, expected) in [
            // (columns of a tile, elements of a load, ways, parts side by side, columns of a thread of few rows)
            ([1, 10, 10_000_000], 4, 0, (512, 2, 1, 0, 2)),
            ([1, 10, 10_000_000], 4, 4, (256, 1, 1, 0, 1)),
            ([1, 10, 10_000_000], 2, 0, (1024, 4, 1, 0, 4)),
            ([1, 10, 10_000_000], 2, 4, (256, 1, 1, 0, 1)),
            ([1, 16, 301], 4, 0, (256, 1, 1, 0, 1)),
            ([3, 17, 300], 4, 0, (256, 4, 4, 0, 0)),
            ([1, 20, 302], 4, 8, (256, 2, 2, 0, 0)),
            ([1, 128, 300], 4, 0, (64, 4, 16, 0, 0)),
            ([1, 129, 300], 4, 0, (32, 4, 32, 0, 0)),
            ([1, 128, 300], 8, 0, (32, 2, 16, 0, 0)),
            ([1, 10_000, 10_000], 8, 0, (32, 1, 8, 0, 0)),
            ([1, 10_000, 10_001], 4, 0, (32, 1, 8, 0, 0)),
            ([1, 10_000_000, 10], 4, 0, (10, 4, 32, 3, 0)),
            ([1, 10_000_000, 32], 4, 4, (32, 1, 8, 1, 0)),
            ([1, 10_000_000, 1], 2, 0, (1, 4, 32, 20, 0)),
            ([1, 10_000, 1], 2, 0, (1, 4, 32, 1, 0)),
            ([3, 1001, 3], 4, 0, (3, 1, 8, 1, 0)),
            ([1, 1, 1], 8, 0, (256, 1, 1, 0, 1)),
        ] {
            let tiles = Tiles::new(shape, size, places, Some(SUMS), false, 528);
            let found = (
                tiles.at_once,
                tiles.vector,
                tiles.ways,
                tiles.side,
                tiles.few,
            );
            assert_eq!(found, expected, "{shape:?}");
            let [_, rows, columns] = shape;
            // Leaf lanes are kept in order: a thread has all rows of some, or each lane has one row.
            let in_flight = if size == 8 { 16 } else { 32 };
            let once =
                tiles.few > 0 || rows <= LANES && rows <= tiles.ways * in_flight / tiles.vector;
            assert!(once || tiles.ways == 8 * tiles.vector);
            let elements = tiles.ways * tiles.at_once * tiles.side.max(1);
            assert!(elements <= THREADS as usize * tiles.vector);
            assert!(tiles.side > 0 || columns % tiles.vector == 0);
        }
    }

    #[test]
    fn wide_matrices_have_lines_of_twice_the_columns() {
        for (columns, size, two, (at_once, vector, ways)) in [
            (10_000, 4, false, (64, 4, 16)),
            (10_002, 4, false, (64, 2, 8)),
            (10_001, 2, false, (64, 1, 4)),
            (10_000, 4, true, (32, 4, 32)),
            (10_000, 8, false, (32, 1, 8)),
        ] {
            let sums = Some(wide_sums(size, two));
            let tiles = Tiles::new([1, 10_000, columns], size, 0, sums, two, 528);
            let found = (tiles.at_once, tiles.vector, tiles.ways);
            assert_eq!(found, (at_once, vector, ways), "{columns} of {size} bytes");
        }
    }

    #[test]
    fn parts_without_leaves_keep_the_multiprocessors_busy() {
        for (shape, sums, rows) in [
            ([1, 3162, 3162], Some(SUMS), LEAF),
            ([1, 3162, 3162], None, 640),
            ([1, 2048, 3162], None, LEAF),
            ([1, 10_000, 10], None, LEAST_ROWS),
            ([1, 100_000, 10], None, 512),
            ([300, 10_000, 10], None, LEAF),
            ([1, 100_000, 100_000], None, LEAF),
        ] {
            let tiles = Tiles::new(shape, 4, 0, sums, false, 528);
            assert_eq!(tiles.part_rows, rows, "{shape:?}");
        }
    }

    #[test]
    fn more_parts_than_blocks_along_an_axis_take_another() {
        let tiles = Tiles::new([1, 200_000_000, 40], 1, 0, None, false, 528);
        let [x, y, z] = tiles.grid;
        assert_eq!((x, y), (1, ACROSS));
        assert!(y * z >= 200_000_000usize.div_ceil(LEAF) && z < 4);
    }
}
