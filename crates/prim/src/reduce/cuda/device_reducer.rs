//! Reductions of arrays in device memory.
#![allow(unsafe_code)] // Reason: a function that compiles what its caller wrote.

use std::cell::RefCell;

use crosswarp_cuda::{BufferRef, Device, Pod, Stream};
use crosswarp_shmem::Pe;

use crate::reduce::cuda::arguments::Finish;
use crate::reduce::cuda::device_inputs::{InDeviceMemory, StreamedFromHost};
use crate::reduce::cuda::launcher::{Launcher, Output, check};
use crate::reduce::cuda::segments::Segments;
use crate::reduce::cuda::workspace::ReduceWorkspace;
use crate::reduce::part::Part;
use crate::{DType, Element, Op, ReduceError, Reducer, Value};

/// Reductions of arrays in the memory of one GPU: every operation and type of [`Reducer`], with the
/// same bits.
///
/// Kernels are compiled (or taken from the cache on disk) when an operation is first used on a type, or
/// by [`prepare`](Self::prepare).
///
/// ```
/// use crosswarp_cuda::{Buffer, Device, Stream};
/// use crosswarp_prim::cuda::DeviceReducer;
/// use crosswarp_prim::{Op, Reducer};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let stream = Stream::new(&device)?;
///     let values: Vec<f32> = (0..100_000).map(|k| (k as f32).sin()).collect();
///     let x = Buffer::from_slice(&stream, &values)?;
///
///     let reducer = DeviceReducer::new(&device);
///     let mut workspace = reducer.workspace(&stream)?;
///     let norm = reducer.reduce(Op::Norm2, &mut workspace, &[(&x).into()])?;
///     assert_eq!(norm, Reducer::new().reduce(Op::Norm2, &[&values[..]])?);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// All methods pass on failures of the driver and the compiler as [`ReduceError::Cuda`]; others are
/// listed with each.
pub struct DeviceReducer {
    launcher: Launcher,
}

impl DeviceReducer {
    /// Reductions on `device`.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        Self {
            launcher: Launcher::new(device),
        }
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        self.launcher.device()
    }

    /// What reductions in `stream` need. Allocates; not while the stream is being captured.
    pub fn workspace(&self, stream: &Stream) -> Result<ReduceWorkspace, ReduceError> {
        ReduceWorkspace::new(stream)
    }

    /// Compiles and loads the kernel of `op` on elements of `dtype` now, so that a later call only
    /// launches, and can be captured into a graph.
    pub fn prepare(&self, op: Op, dtype: DType) -> Result<(), ReduceError> {
        self.launcher.program(op, dtype).map(drop)
    }

    /// The same for [`enqueue_segments`](Self::enqueue_segments).
    ///
    /// # Errors
    /// [`ReduceError::NotSegmented`].
    pub fn prepare_segments(&self, op: Op, dtype: DType) -> Result<(), ReduceError> {
        self.launcher.segment_program(op, dtype).map(drop)
    }

    /// Reduces `inputs` (one array, two for [`Op::Dot`]) and waits for the result, which the GPU writes
    /// to the host. One launch.
    ///
    /// `inputs`: in memory of the workspace's GPU, or of a GPU whose memory it reaches.
    ///
    /// # Errors
    /// [`ReduceError::Empty`], [`ReduceError::Inputs`], [`ReduceError::Length`] as for [`Reducer`].
    pub fn reduce<T: Element>(
        &self,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
    ) -> Result<Value, ReduceError> {
        let n = check(op, inputs)?;
        if n == 0 {
            return match op.allows_empty() {
                true => Reducer::new().reduce(op, &vec![&[] as &[T]; op.inputs()]),
                false => Err(ReduceError::Empty { op }),
            };
        }
        let out = Output::words(workspace.result.address());
        self.launcher
            .launch(op, Finish::of(op), workspace, inputs, 0, out)?;
        workspace.stream.synchronize()?;
        Ok(value::<T>(op, workspace.result[0]))
    }

    /// Gives the reduction of `inputs` to the workspace's stream and returns at once; `result` gets the
    /// bits of the value, zero-extended, to be read by later work of the stream (and by the host with
    /// [`value`](Self::value)). One launch, which can be captured into a graph if the kernel has been
    /// [prepared](Self::prepare) (for a product of floats: if as long a one was made with the workspace
    /// before); then the workspace must live as long as the graph is run, as its launch asks.
    ///
    /// `count`: if given, the number of elements to reduce is read from device memory when the launch
    /// runs, `inputs` being as long as it can be; the result of no elements is `u64::MAX` for operations
    /// that have none.
    ///
    /// # Errors
    /// As for [`reduce`](Self::reduce).
    ///
    /// # Panics
    /// If `result` or `count` is not of one element.
    pub fn enqueue<T: Element>(
        &self,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        count: Option<BufferRef<'_, u64>>,
        result: BufferRef<'_, u64>,
    ) -> Result<(), ReduceError> {
        self.enqueue_as(op, workspace, inputs, count, result)
    }

    /// As [`enqueue`](Self::enqueue), with a result of as many bytes as an `R` has, 1, 2, 4 or 8: the low ones of what would
    /// be written there.
    ///
    /// # Errors
    /// The same.
    ///
    /// # Panics
    /// The same, and of other sizes.
    pub fn enqueue_as<T: Element, R: Pod>(
        &self,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        count: Option<BufferRef<'_, u64>>,
        result: BufferRef<'_, R>,
    ) -> Result<(), ReduceError> {
        let n = check(op, inputs)?;
        let out = Output::of(result);
        let count = count.map_or(0, |count| {
            assert_eq!(count.len(), 1, "a count is one element");
            count.address()
        });
        if n == 0 && !op.allows_empty() {
            return Err(ReduceError::Empty { op });
        }
        self.launcher
            .launch(op, Finish::of(op), workspace, inputs, count, out)
    }

    /// The value with the bits that [`enqueue`](Self::enqueue) wrote for `op` on elements of `T`.
    #[must_use]
    pub fn value<T: Element>(op: Op, bits: u64) -> Value {
        value::<T>(op, bits)
    }

    /// Gives the sum of an expression of each element to the workspace's stream: as [`Op::Sum`] of the array
    /// of its values, which is never made. `result` gets the bits, as from [`enqueue`](Self::enqueue).
    ///
    /// `expression`: CUDA C++ of the element `x`, a `float` (a `double` for `f64`); functions may be those of
    /// CUDA's mathematical library. Multiplications and additions are not contracted, so an expression of
    /// `+ - * /` and `sqrt` gives the bits of the same expression on the CPU; for others they are those of
    /// the compiler's library, and still the same for any split. Compiled when first used.
    ///
    /// ```
    /// use crosswarp_cuda::{Buffer, Device, Stream};
    /// use crosswarp_prim::cuda::DeviceReducer;
    /// use crosswarp_prim::{Op, Value};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let Ok(device) = Device::get(0) else { return Ok(()) };
    ///     let stream = Stream::new(&device)?;
    ///     let x = Buffer::from_slice(&stream, &[1.0f32, -2.0, 3.0])?;
    ///     let sum = Buffer::zeroed(&stream, 1)?;
    ///     let reducer = DeviceReducer::new(&device);
    ///     let mut workspace = reducer.workspace(&stream)?;
    ///     let positive = "x > 0 ? x * x : 0";
    ///     // SAFETY: it computes and does nothing else.
    ///     unsafe {
    ///         reducer.enqueue_expression::<f32>(positive, &mut workspace, (&x).into(), (&sum).into())?;
    ///     }
    ///     let bits = sum.to_vec(&stream)?[0];
    ///     assert_eq!(DeviceReducer::value::<f32>(Op::Sum, bits), Value::F32(10.0));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ReduceError::NoExpression`] for integers; [`ReduceError::Cuda`] with the compiler's messages if the
    /// expression is none.
    ///
    /// # Panics
    /// If `result` is not of one element.
    ///
    /// # Safety
    /// The expression is code that runs on the GPU: it comes to an end and touches no memory.
    pub unsafe fn enqueue_expression<T: Element>(
        &self,
        expression: &str,
        workspace: &mut ReduceWorkspace,
        input: BufferRef<'_, T>,
        result: BufferRef<'_, u64>,
    ) -> Result<(), ReduceError> {
        let dtype = T::DTYPE;
        if !dtype.is_float() {
            return Err(ReduceError::NoExpression { dtype });
        }
        let program = self.launcher.expression(expression, dtype)?;
        let out = Output::of(result);
        self.launcher
            .launch_program(&program, Finish::Value, workspace, &[input], 0, out)
    }

    /// Reduces an array of which each PE of `pe`'s world holds a contiguous part, in the memory of its
    /// GPU: as [`Reducer::on`], with the same bits. Collective. Several PEs may share a GPU.
    ///
    /// Elements of leaves that lie on several PEs, and the PEs' partial results, are exchanged in host memory.
    ///
    /// # Errors
    /// As for [`Reducer`]; [`ReduceError::PeerFailed`] if another PE's GPU failed.
    pub fn reduce_on<T: Element>(
        &self,
        pe: &Pe,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
    ) -> Result<Value, ReduceError> {
        let part = InDeviceMemory {
            launcher: &self.launcher,
            workspace: RefCell::new(workspace),
            inputs,
        };
        Reducer::new().on(pe).reduce_part(op, &Part::Remote(&part))
    }

    /// As [`reduce_on`](Self::reduce_on), of arrays in host memory, which may be larger than the GPU's:
    /// they pass through it [in pieces](crate::cuda::in_pieces).
    ///
    /// # Errors
    /// As for [`reduce_on`](Self::reduce_on).
    pub fn reduce_host_on<T: Element>(
        &self,
        pe: &Pe,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[&[T]],
    ) -> Result<Value, ReduceError> {
        let part = StreamedFromHost {
            launcher: &self.launcher,
            workspace: RefCell::new(workspace),
            inputs,
        };
        Reducer::new().on(pe).reduce_part(op, &Part::Remote(&part))
    }

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
        self.enqueue_segments_as::<T, u64>(op, workspace, inputs, segments, results)
    }

    /// As [`enqueue_segments`](Self::enqueue_segments), with results of as many bytes as an `R` has, 1, 2, 4 or 8: the
    /// low ones of what would be written there. So results of their own type lie behind one another.
    ///
    /// # Errors
    /// The same.
    ///
    /// # Panics
    /// The same, and of other sizes.
    pub fn enqueue_segments_as<T: Element, R: Pod>(
        &self,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        segments: Segments<'_>,
        results: BufferRef<'_, R>,
    ) -> Result<(), ReduceError> {
        let program = self.launcher.segment_program(op, T::DTYPE)?;
        let n = check(op, inputs)?;
        program.enqueue(op, workspace, inputs, n, segments, results)
    }

    /// Reduces each column of `inputs`, which are matrices of `shape` (how many, rows, columns) behind one another, as an
    /// array of its own, with the bits that has; otherwise as [`enqueue_segments_as`](Self::enqueue_segments_as). Memory is
    /// read once, as it lies.
    ///
    /// # Errors
    /// The same.
    ///
    /// # Panics
    /// If inputs are of another shape, have no rows, or there are not as many results as columns.
    pub fn enqueue_columns<T: Element, R: Pod>(
        &self,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        shape: [usize; 3],
        results: BufferRef<'_, R>,
    ) -> Result<(), ReduceError> {
        let program = self.launcher.column_program(op, T::DTYPE)?;
        check(op, inputs)?;
        program.enqueue(op, workspace, inputs, shape, results)
    }

    /// As [`prepare`](Self::prepare), for [`enqueue_columns`](Self::enqueue_columns).
    ///
    /// # Errors
    /// [`ReduceError::NotSegmented`].
    pub fn prepare_columns(&self, op: Op, dtype: DType) -> Result<(), ReduceError> {
        self.launcher.column_program(op, dtype).map(drop)
    }
}

fn value<T: Element>(op: Op, bits: u64) -> Value {
    use crate::Scalar;
    match op {
        Op::Sum | Op::ExactSum | Op::Prod | Op::Dot => T::Sum::from_bits64(bits).into(),
        Op::Mean | Op::Norm2 => T::Mean::from_bits64(bits).into(),
        Op::Min | Op::Max => T::from_bits64(bits).into(),
        Op::Argmin | Op::Argmax => bits.into(),
    }
}
