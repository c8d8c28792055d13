//! Reductions of many segments of an array at once.
#![allow(unsafe_code)] // Launches kernels.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use crosswarp_cuda::{BufferRef, ByValue, Device, Dim3, Function, Launch, Module};

use crate::cuda::reduce::program::{Arguments, Finish, Key, THREADS};
use crate::cuda::{DeviceReducer, ReduceWorkspace};
use crate::leaf::LEAF;
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
}

/// `crosswarp::segment_state`.
const STATE_WORDS: usize = 128;

/// The kernels of one operation on one type, for aligned and for other segments.
pub(crate) struct SegmentProgram {
    narrow: [Function; 2],
    wide: [Function; 2],
    /// Blocks that are resident at once.
    resident: usize,
}

impl SegmentProgram {
    pub fn load(device: &Device, key: Key) -> Result<Self, ReduceError> {
        let (source, options) = key.segment_source();
        let module = Module::compile_with(device, &source, &options)?;
        let function = |name| module.function(name).map_err(crosswarp_cuda::Error::from);
        let wide = [function("wide_unaligned")?, function("wide")?];
        let blocks = wide[1].blocks_per_multiprocessor(THREADS, 0)?.max(1);
        Ok(Self {
            narrow: [function("narrow_unaligned")?, function("narrow")?],
            wide,
            resident: (blocks * device.properties().multiprocessors.max(1)) as usize,
        })
    }
}

impl DeviceReducer {
    /// Reduces each segment of `inputs` as an array of its own, with the bits that has, in one launch given
    /// to the workspace's stream; returns at once. `results`: one element for each segment, as the result of
    /// [`enqueue`](Self::enqueue).
    ///
    /// `op`: [`Op::Sum`], [`Op::Mean`], [`Op::Norm2`] or [`Op::Dot`], of floating-point elements.
    ///
    /// Many segments get a warp each, few get several blocks each. The time of many segments is that of the
    /// longest on one warp, if that is far longer than the others: some 10 GB/s.
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
    /// [`ReduceError::NotSegmented`] for another operation or type, [`ReduceError::Inputs`],
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
        if !T::DTYPE.is_float() || !matches!(op, Op::Sum | Op::Mean | Op::Norm2 | Op::Dot) {
            return Err(ReduceError::NotSegmented {
                op,
                dtype: T::DTYPE,
            });
        }
        let n = crate::cuda::reduce::device_reducer::check(op, inputs)?;
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
        let program = self.segment_program(op, T::DTYPE)?;
        workspace.keep(Arc::clone(&program) as _);

        let aligned = {
            let starts = inputs.iter().all(|x| x.address().is_multiple_of(16));
            starts && columns > 0 && (columns * size_of::<T>()).is_multiple_of(16)
        };
        let warps = THREADS as usize / 32;
        // With a warp each, an eighth of the warps that fit would already be half as fast as all.
        let narrow = count >= program.resident;
        let launch = if narrow {
            let blocks = count.div_ceil(warps).min(8 * program.resident);
            Launch::new(&program.narrow[usize::from(aligned)]).grid(blocks as u32)
        } else {
            // Blocks of each segment, so that all together fill the GPU, if there are leaves for them.
            let leaves = (n / count).div_ceil(LEAF).max(1);
            let blocks = (program.resident / count).clamp(1, leaves.div_ceil(warps));
            Launch::new(&program.wide[usize::from(aligned)])
                .grid(Dim3::from((blocks as u32, count as u32)))
        };
        let launch = launch.block(THREADS).overlapping().prepare()?;
        if !narrow {
            workspace.reserve_segments(count * STATE_WORDS)?;
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
            },
            offsets,
            columns: columns as u64,
            segments: count as u64,
        };
        // SAFETY: the kernels' one parameter is this structure. They read elements of the inputs below `n`,
        // whatever the offsets say, of which there is one more than segments; use, in wide launches, the
        // state of each segment; and write one word for each segment. The rest is as in
        // `DeviceReducer::launch`.
        unsafe { launch.launch(&workspace.stream, (ByValue(arguments),)) }?;
        Ok(())
    }
}
