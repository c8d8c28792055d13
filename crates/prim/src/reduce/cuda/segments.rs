//! Reductions of many segments of an array at once.
#![allow(unsafe_code)] // Launches kernels.

use std::sync::Arc;

use crosswarp_cuda::{BufferRef, ByValue, Device, Function, Launch, Module, Options, Pod, Source};

use crate::reduce::cuda::arguments::{
    Arguments, Finish, LongSegment, MOST_COMBINED_BLOCKS, SEGMENT_SLOT, SEGMENT_SLOTS,
    SegmentArguments, THREADS,
};
use crate::reduce::cuda::workspace::ReduceWorkspace;
use crate::sum::leaf::LEAF;
use crate::{Element, Op, ReduceError};

/// Where segments begin and end.
#[derive(Clone, Copy, Debug)]
pub enum Segments<'a> {
    /// Rows of a matrix, one after the other, each of this many elements; the last may be shorter.
    Rows(usize),
    /// Segment s is elements `offsets[s]` to `offsets[s + 1]`, as in CSR: one offset more than there are
    /// segments, in device memory. Segments may be empty.
    Offsets(BufferRef<'a, u64>),
}

/// Most blocks of `long_segments`, whose warps may share a segment.
const LONG_BLOCKS: u32 = MOST_COMBINED_BLOCKS as u32 / (THREADS / 32);
/// Words of the state.
pub(super) const STATE_WORDS: usize =
    SEGMENT_SLOTS + SEGMENT_SLOT * LONG_BLOCKS as usize * (THREADS as usize / 32);
/// Words of a place in the queue.
const QUEUE_WORDS: usize = size_of::<LongSegment>() / size_of::<u64>();
/// Segments of more leaves are long: if a warp takes one at a time, and if it takes 32, all of which may
/// be as long as a short one can be.
const LONG_LEAVES: [u64; 2] = [16, 4];
/// The same of rows of which there are so few that they leave most warps idle,
const FEW_LEAVES: u64 = 2;
/// which they do if each could have so many warps.
const IDLE: usize = 4;
/// Mean length from which on a warp takes one segment at a time instead of 32,
const ALONE: usize = 512;
/// and the same of so few segments that otherwise most warps had none. Up to this length a thread may take one.
const TINY: usize = 16;
/// Up to how many elements some threads reduce a row of many more quickly than a warp does; 0: they can't. (On an H200 10^5
/// rows of 10^3 `f32` take them 110 µs and warps 94, of `f16` 59 and 104.)
fn short_row<T: Element>(op: Op) -> usize {
    let wide = !T::DTYPE.is_float() && matches!(op, Op::Mean | Op::Norm2) && size_of::<T>() > 2;
    match size_of::<T>() {
        // Quotients and roots of sums of theirs may have more digits than an `f64` (`is_tiny` in the kernels).
        _ if wide => 0,
        1 | 2 => 1024,
        _ => 512,
    }
}
/// Threads of a block of warps that take one segment at a time. With 256, of 3162 rows of as many `f32`, of which two
/// thirds are resident at once, the last ones waited for whole blocks: `norm` took 10.0 µs instead of 9.4 (H200).
const ALONE_THREADS: u32 = 64;

/// Whether a warp takes one segment at a time, of `count` that have `n` elements, where `warps` are resident.
fn one_at_a_time(n: usize, count: usize, warps: usize) -> bool {
    let mean = n / count;
    mean > ALONE || mean > TINY && count <= 32 * warps
}

/// The kernel that only sums of floating-point elements have.
pub(super) const SMALL: &str = "short_segments_small";

/// The kernels of one operation on one type.
pub(crate) struct SegmentProgram {
    short: Function,
    /// `short` of smaller warps, and its blocks.
    small: Option<(Function, u32)>,
    long: Function,
    rows: Function,
    /// Blocks of each that are resident at once.
    resident: [u32; 3],
}

impl SegmentProgram {
    pub fn load(
        device: &Device,
        source: &Source<'static>,
        options: &Options,
    ) -> Result<Self, ReduceError> {
        let module =
            Module::compile_with(device, source, options).map_err(crosswarp_cuda::Error::from)?;
        let function = |name| module.function(name).map_err(crosswarp_cuda::Error::from);
        let (short, long) = (function("short_segments")?, function("long_segments")?);
        let rows = function("short_rows")?;
        let multiprocessors = device.properties().multiprocessors.max(1);
        let resident = |function: &Function| -> Result<u32, ReduceError> {
            let blocks = function.blocks_per_multiprocessor(THREADS, 0)?.max(1);
            Ok(blocks * multiprocessors)
        };
        let small = if source.shapes.iter().any(|shape| shape.kernel == SMALL) {
            let kernel = function(SMALL)?;
            let resident = resident(&kernel)?;
            Some((kernel, resident))
        } else {
            None
        };
        Ok(Self {
            small,
            resident: [resident(&short)?, resident(&long)?, resident(&rows)?],
            short,
            long,
            rows,
        })
    }

    /// [`DeviceReducer::enqueue_segments_as`](crate::cuda::DeviceReducer::enqueue_segments_as) of inputs of `n` elements.
    pub fn enqueue<T: Element, R: Pod>(
        self: &Arc<Self>,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        n: usize,
        segments: Segments<'_>,
        results: BufferRef<'_, R>,
    ) -> Result<(), ReduceError> {
        let (offsets, columns, count) = match segments {
            Segments::Rows(columns) => {
                assert!(columns > 0, "rows have elements");
                (0, columns, n.div_ceil(columns))
            }
            Segments::Offsets(offsets) => (offsets.address(), 0, offsets.len().saturating_sub(1)),
        };
        assert_eq!(results.len(), count, "a result for each segment");
        assert!(
            matches!(size_of::<R>(), 1 | 2 | 4 | 8),
            "results of 1 to 8 bytes"
        );
        if count == 0 {
            return Ok(());
        }
        workspace.keep(Arc::clone(self) as _);

        let warps = self.resident[0] as usize * (THREADS as usize / 32);
        let alone = one_at_a_time(n, count, warps);
        let long_leaves = match segments {
            Segments::Rows(_) if IDLE * count <= warps => FEW_LEAVES,
            _ => LONG_LEAVES[usize::from(!alone)],
        };
        let leaves = |elements: usize| elements.div_ceil(LEAF) as u64;
        // Whether segments may be long, and whether they may be short.
        let (long, short) = match segments {
            Segments::Rows(_) => {
                let long = leaves(columns.min(n)) > long_leaves;
                (long, !long)
            }
            Segments::Offsets(_) => (leaves(n) > long_leaves, true),
        };
        workspace.reserve_segments(STATE_WORDS)?;
        let mut room = 0;
        if long && short {
            // Each of them has elements of its own in `long_leaves` leaves and one more.
            room = n / (long_leaves as usize * LEAF) + 1;
            workspace.reserve_queue(room * QUEUE_WORDS)?;
        }
        let arguments = SegmentArguments {
            all: Arguments {
                x: inputs[0].address(),
                y: inputs[inputs.len() - 1].address(),
                n: n as u64,
                count: 0,
                state: workspace.segments.address(),
                out: results.address(),
                finish: Finish::of(op) as u64,
                ahead: 0,
                result_bytes: size_of::<R>() as u64,
            },
            offsets,
            columns: columns as u64,
            segments: count as u64,
            together: if alone { 1 } else { 32 },
            long_leaves: if long { long_leaves } else { u64::MAX },
            queue: if room > 0 {
                workspace.queue.address()
            } else {
                0
            },
            room: room as u64,
        };
        let launch = |function, blocks: u32, threads: u32| {
            let launch = Launch::new(function).grid(blocks).block(threads);
            launch.overlapping().prepare()
        };
        // With fewer rows than there are warps, a warp each is quicker.
        let short_rows = matches!(segments, Segments::Rows(_))
            && columns <= short_row::<T>(op)
            && (columns <= TINY || count > warps)
            && n.is_multiple_of(columns);
        // More than are resident even out what segments differ in.
        let blocks = |threads: usize, resident: u32, of: u32| {
            let all = resident as usize * (THREADS / of) as usize;
            threads.div_ceil(of as usize).min(8 * all) as u32
        };
        // SAFETY: the kernels' one parameter is this structure. They read elements of the inputs below `n`,
        // whatever the offsets say, of which there is one more than segments, and write one result for each
        // segment; `short_rows` are whole. The state has a slot for each warp of `LONG_BLOCKS` blocks, the queue has
        // `room`. The rest is as in `Launcher::launch`.
        unsafe {
            if short_rows {
                // 1, 2, 4 or 8 threads for a row.
                let lanes = columns.div_ceil(TINY).next_power_of_two().min(8);
                let blocks = blocks(lanes * count, self.resident[2], THREADS);
                let launch = launch(&self.rows, blocks, THREADS)?;
                launch.launch(&workspace.stream, (ByValue(arguments),))?;
            } else if short {
                // If only with these all segments are worked on at once.
                let small = self.small.as_ref().filter(|(_, resident)| {
                    let most = *resident as usize * (THREADS as usize / 32);
                    alone && (warps + 1..=most).contains(&count)
                });
                let (kernel, resident, threads) = match small {
                    Some((kernel, resident)) => (kernel, *resident, THREADS),
                    None if alone => (&self.short, self.resident[0], ALONE_THREADS),
                    None => (&self.short, self.resident[0], THREADS),
                };
                let in_warps = if alone { 32 * count } else { count };
                let blocks = blocks(in_warps, resident, threads);
                let launch = launch(kernel, blocks, threads)?;
                launch.launch(&workspace.stream, (ByValue(arguments),))?;
            }
            if long {
                // Of rows it is known how many parts there can be.
                let parts = match segments {
                    Segments::Rows(_) => count as u64 * leaves(columns.min(n)),
                    Segments::Offsets(_) => u64::from(LONG_BLOCKS),
                };
                let blocks = u64::from(self.resident[1].min(LONG_BLOCKS)).min(parts);
                let launch = launch(&self.long, blocks as u32, THREADS)?;
                launch.launch(&workspace.stream, (ByValue(arguments),))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_segments_keep_the_warps_busy() {
        let warps = 4224;
        for (n, count, expected) in [
            (316 * 316, 316, true),
            (31 * 31, 31, true),
            (100 * 10, 100, false),
            (16 * 300, 300, false),
            (100 << 20, 1 << 20, false),
            (1 << 30, 1 << 20, true),
            (5, 10, false),
        ] {
            assert_eq!(one_at_a_time(n, count, warps), expected, "{count} of {n}");
        }
    }
}
