//! Reductions of many segments of an array at once.
#![allow(unsafe_code)] // Launches kernels.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{BufferRef, ByValue, Device, Function, Launch, Module, Options, Source};

use crate::cuda::{DeviceReducer, ReduceWorkspace};
use crate::reduce::cuda::program::{Arguments, Finish, THREADS};
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

/// `crosswarp::segment_arguments`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct SegmentArguments {
    all: Arguments,
    offsets: u64,
    columns: u64,
    segments: u64,
    together: u64,
    long_leaves: u64,
    queue: u64,
    room: u64,
}

/// Most blocks of `long_segments`: fewer than 2^11 warps may share a segment (`crosswarp::meeting_blocks`).
const LONG_BLOCKS: u32 = 255;
/// Words of the state: `crosswarp::segment_slots`, and a `crosswarp::segment_slot` for each warp.
const STATE_WORDS: usize = 128 + 128 * LONG_BLOCKS as usize * (THREADS as usize / 32);
/// Words of `crosswarp::long_segment`.
const QUEUE_WORDS: usize = 4;
/// Segments of more leaves are long: if a warp looks at one at a time, and if it looks at 32, all of which may
/// be as long as a short one can be.
const LONG_LEAVES: [u64; 2] = [16, 4];
/// Mean length from which on a warp looks at one segment at a time instead of 32.
const ALONE: usize = 512;

/// The kernels of one operation on one type.
pub(crate) struct SegmentProgram {
    short: Function,
    long: Function,
    /// Blocks that are resident at once.
    resident: [u32; 2],
}

impl SegmentProgram {
    pub fn load(
        device: &Device,
        source: &Source<'static>,
        options: &Options,
    ) -> Result<Self, ReduceError> {
        let module = Module::compile_with(device, source, options)?;
        let function = |name| module.function(name).map_err(crosswarp_cuda::Error::from);
        let (short, long) = (function("short_segments")?, function("long_segments")?);
        let multiprocessors = device.properties().multiprocessors.max(1);
        let resident = |function: &Function| -> Result<u32, ReduceError> {
            let blocks = function.blocks_per_multiprocessor(THREADS, 0)?.max(1);
            Ok(blocks * multiprocessors)
        };
        Ok(Self {
            resident: [resident(&short)?, resident(&long)?],
            short,
            long,
        })
    }
}

impl DeviceReducer {
    /// Reduces each segment of `inputs` as an array of its own, with the bits that has, by work given to the
    /// workspace's stream; returns at once. `results`: one element for each segment, as the result of
    /// [`enqueue`](Self::enqueue).
    ///
    /// `op`: all but [`Op::Prod`], and but [`Op::ExactSum`] of floats. Indices count from the segment's start; the
    /// result of no elements is `u64::MAX` for operations that have none.
    ///
    /// One launch for rows; for offsets a second one if the array is long enough for a segment to be worth more
    /// than one warp. Segments of a few elements get a thread each, those of some leaves a warp, and the leaves of
    /// all longer ones are dealt out evenly over the GPU, so that neither many tiny nor few huge segments leave
    /// a part of it idle. It can be captured into a graph after a call with as many elements.
    ///
    /// ```
    /// use crosswarp_cuda::{Buffer, Device, Stream};
    /// use crosswarp_prim::cuda::{DeviceReducer, Segments};
    /// use crosswarp_prim::{Op, Value};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let Ok(device) = Device::get(0) else { return Ok(()) };
    ///     let stream = Stream::new(&device)?;
    ///     let x = Buffer::from_slice(&stream, &[1.0f32, 2.0, 3.0, 4.0])?;
    ///     let offsets = Buffer::from_slice(&stream, &[0u64, 1, 4])?;
    ///     let sums = Buffer::zeroed(&stream, 2)?;
    ///     let reducer = DeviceReducer::new(&device);
    ///     let mut workspace = reducer.workspace(&stream)?;
    ///     let segments = Segments::Offsets((&offsets).into());
    ///     reducer.enqueue_segments::<f32>(Op::Sum, &mut workspace, &[(&x).into()], segments, (&sums).into())?;
    ///     let sums = sums.to_vec(&stream)?;
    ///     assert_eq!(DeviceReducer::value::<f32>(Op::Sum, sums[1]), Value::F32(9.0));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ReduceError::NotSegmented`] for another operation, [`ReduceError::Inputs`],
    /// [`ReduceError::Length`].
    ///
    /// # Panics
    /// If there are not as many results as segments, or rows have no elements.
    pub fn enqueue_segments<T: Element>(
        &self,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        segments: Segments<'_>,
        results: BufferRef<'_, u64>,
    ) -> Result<(), ReduceError> {
        let program = self.segment_program(op, T::DTYPE)?;
        let n = crate::reduce::cuda::device_reducer::check(op, inputs)?;
        let (offsets, columns, count) = match segments {
            Segments::Rows(columns) => {
                assert!(columns > 0, "rows have elements");
                (0, columns, n.div_ceil(columns))
            }
            Segments::Offsets(offsets) => (offsets.address(), 0, offsets.len().saturating_sub(1)),
        };
        assert_eq!(results.len(), count, "a result for each segment");
        if count == 0 {
            return Ok(());
        }
        workspace.keep(Arc::clone(&program) as _);

        let alone = n / count > ALONE;
        let long_leaves = LONG_LEAVES[usize::from(!alone)];
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
        let launch = |function, blocks: u32| {
            let launch = Launch::new(function).grid(blocks).block(THREADS);
            launch.overlapping().prepare()
        };
        // SAFETY: the kernels' one parameter is this structure. They read elements of the inputs below `n`,
        // whatever the offsets say, of which there is one more than segments, and write one word for each
        // segment. The state has a slot for each warp of `LONG_BLOCKS` blocks, the queue has `room`. The rest is
        // as in `DeviceReducer::launch`.
        unsafe {
            if short {
                let warps = count.div_ceil(arguments.together as usize);
                // More than are resident even out what segments differ in.
                let blocks = warps
                    .div_ceil(THREADS as usize / 32)
                    .min(8 * program.resident[0] as usize);
                let launch = launch(&program.short, blocks as u32)?;
                launch.launch(&workspace.stream, (ByValue(arguments),))?;
            }
            if long {
                let launch = launch(&program.long, program.resident[1].min(LONG_BLOCKS))?;
                launch.launch(&workspace.stream, (ByValue(arguments),))?;
            }
        }
        Ok(())
    }
}
