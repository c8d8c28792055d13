//! Reductions of arrays in device memory.
#![allow(unsafe_code)] // Launches kernels.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use crosswarp_cuda::{Buffer, BufferRef, ByValue, Device, Stream};
use crosswarp_shmem::Pe;

use crate::cuda::ReduceWorkspace;
use crate::reduce::cuda::device_part::{Resident, Streamed};
use crate::reduce::cuda::program::{Arguments, Finish, Key, Program};
use crate::reduce::cuda::segments::SegmentProgram;
use crate::reduce::part::Part;
use crate::sum::leaf::LEAF;
use crate::sum::leaf_total::Total;
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
    device: Device,
    programs: Programs<Key, Program>,
    segment_programs: Programs<Key, SegmentProgram>,
    expressions: Programs<(String, DType), Program>,
}

/// What has been loaded so far.
type Programs<K, P> = Mutex<HashMap<K, Arc<P>>>;

impl DeviceReducer {
    /// Reductions on `device`.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        Self {
            device: *device,
            programs: Mutex::default(),
            segment_programs: Mutex::default(),
            expressions: Mutex::default(),
        }
    }

    /// The GPU.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What reductions in `stream` need. Allocates; not while the stream is being captured.
    pub fn workspace(&self, stream: &Stream) -> Result<ReduceWorkspace, ReduceError> {
        ReduceWorkspace::new(stream)
    }

    /// Compiles and loads the kernel of `op` on elements of `dtype` now, so that a later call only
    /// launches, and can be captured into a graph.
    pub fn prepare(&self, op: Op, dtype: DType) -> Result<(), ReduceError> {
        self.program(op, dtype).map(drop)
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
        let out = workspace.result.address();
        self.launch(op, Finish::of(op), workspace, inputs, 0, out)?;
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
        let n = check(op, inputs)?;
        assert_eq!(result.len(), 1, "a result is one element");
        let count = count.map_or(0, |count| {
            assert_eq!(count.len(), 1, "a count is one element");
            count.address()
        });
        if n == 0 && !op.allows_empty() {
            return Err(ReduceError::Empty { op });
        }
        self.launch(
            op,
            Finish::of(op),
            workspace,
            inputs,
            count,
            result.address(),
        )
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
        assert_eq!(result.len(), 1, "a result is one element");
        let key = (expression.to_owned(), dtype);
        let program = loaded(&self.expressions, key, |(expression, dtype)| {
            Program::of_expression(&self.device, dtype, &expression)
        })?;
        let out = result.address();
        self.launch_program(&program, Finish::Value, workspace, &[input], 0, out)
    }

    /// Reduces an array of which each PE of `pe`'s world holds a contiguous part, in the memory of its
    /// GPU: as [`Reducer::on`], with the same bits. Collective. Several PEs may share a GPU.
    ///
    /// Elements of leaves that lie on several PEs, and the PEs' partial results, meet in host memory.
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
        let part = Resident {
            reducer: self,
            workspace: RefCell::new(workspace),
            inputs,
        };
        Reducer::new().on(pe).reduce_part(op, &Part::Device(&part))
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
        let part = Streamed {
            reducer: self,
            workspace: RefCell::new(workspace),
            inputs,
        };
        Reducer::new().on(pe).reduce_part(op, &Part::Device(&part))
    }

    fn program(&self, op: Op, dtype: DType) -> Result<Arc<Program>, ReduceError> {
        loaded(&self.programs, Key::new(op, dtype), |key| {
            Program::load(&self.device, key)
        })
    }

    pub(crate) fn segment_program(
        &self,
        op: Op,
        dtype: DType,
    ) -> Result<Arc<SegmentProgram>, ReduceError> {
        let key = Key::new(op, dtype);
        let (source, options) = key
            .segment_source()
            .ok_or(ReduceError::NotSegmented { op, dtype })?;
        loaded(&self.segment_programs, key, |_| {
            SegmentProgram::load(&self.device, &source, &options)
        })
    }

    /// The partial result of inputs of one length, in the words that PEs exchange.
    pub(crate) fn words<T: Element>(
        &self,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
    ) -> Result<Vec<u64>, ReduceError> {
        if op == Op::Prod && T::DTYPE.is_float() {
            let products = Buffer::<u64>::new(&self.device, inputs[0].len().div_ceil(LEAF))?;
            self.launch(op, Finish::Words, workspace, inputs, 0, products.address())?;
            return Ok(products.to_vec(&workspace.stream)?);
        }
        let words = match (T::DTYPE.is_float(), op) {
            (_, Op::Min | Op::Max | Op::Argmin | Op::Argmax) => 3,
            (true, _) if T::DTYPE == DType::F64 => Total::<f64>::WORDS,
            (true, _) => Total::<f32>::WORDS,
            (false, Op::Prod | Op::Dot) => 1,
            (false, _) => 3,
        };
        let out = workspace.result.address();
        self.launch(op, Finish::Words, workspace, inputs, 0, out)?;
        workspace.stream.synchronize()?;
        Ok(workspace.result[..words].to_vec())
    }

    /// Launches the kernel on inputs that have been checked. `count`: an address, or 0; `out`: the
    /// address of what `finish` writes.
    pub(crate) fn launch<T: Element>(
        &self,
        op: Op,
        finish: Finish,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        count: u64,
        out: u64,
    ) -> Result<(), ReduceError> {
        let program = self.program(op, T::DTYPE)?;
        self.launch_program(&program, finish, workspace, inputs, count, out)
    }

    fn launch_program<T: Element>(
        &self,
        program: &Arc<Program>,
        finish: Finish,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        count: u64,
        out: u64,
    ) -> Result<(), ReduceError> {
        workspace.keep(Arc::clone(program) as _);
        let n = inputs[0].len() as u64;
        let products = program.key().needs_products() && finish != Finish::Words;
        if products {
            workspace.reserve_products(n)?;
        }
        let address = |k: usize| inputs.get(k).map_or(0, BufferRef::address);
        let arguments = Arguments {
            x: address(0),
            y: if products {
                workspace.products.address()
            } else {
                address(1)
            },
            n,
            count,
            state: workspace.state.address(),
            out,
            finish: finish as u64,
            ahead: program.ahead(n),
        };
        let aligned = (arguments.x | arguments.y).is_multiple_of(16);
        let launch = program.launch(n, aligned).prepare()?;
        // SAFETY: the kernel's one parameter is this structure. It reads `n` elements of the inputs and
        // one count, uses the state, which has the words it needs, and the products, for which there is
        // room, and writes what `finish` says: one word everywhere but for `Words`, for which `out` has
        // room. Buffers that go before the kernel has run
        // wait for it when they are freed; the workspace keeps the program loaded until its own
        // memory has been freed, which waits likewise. The state is used by one launch at a time, since
        // the workspace is borrowed exclusively and has one stream. The kernel begins with
        // `griddepcontrol.wait`, as an overlapping launch asks. Host memory is written only for calls
        // that wait for the end.
        unsafe { launch.launch(&workspace.stream, (ByValue(arguments),)) }?;
        Ok(())
    }
}

fn loaded<K: Hash + Eq + Clone, P>(
    programs: &Programs<K, P>,
    key: K,
    load: impl FnOnce(K) -> Result<P, ReduceError>,
) -> Result<Arc<P>, ReduceError> {
    // A panic while the lock is held leaves the map as it was.
    let mut programs = programs.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = programs.get(&key) {
        return Ok(Arc::clone(program));
    }
    let program = Arc::new(load(key.clone())?);
    programs.insert(key, Arc::clone(&program));
    Ok(program)
}

/// Elements of each input, if inputs are as `op` needs them.
pub(crate) fn check<T: Element>(op: Op, inputs: &[BufferRef<'_, T>]) -> Result<usize, ReduceError> {
    let (pe, expected, got) = (0, op.inputs(), inputs.len());
    if got != expected {
        return Err(ReduceError::Inputs {
            op,
            pe,
            expected,
            got,
        });
    }
    let (left, right) = (inputs[0].len(), inputs[expected - 1].len());
    if left != right {
        let (left, right) = (left as u64, right as u64);
        return Err(ReduceError::Length {
            op,
            pe,
            left,
            right,
        });
    }
    Ok(left)
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
