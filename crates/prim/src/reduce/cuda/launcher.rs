//! Loaded kernels of reductions on one GPU, and their launches.
#![allow(unsafe_code)] // Launches kernels.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use crosswarp_cuda::{Buffer, BufferRef, ByValue, Device, Pod};

use crate::reduce::cuda::arguments::{Arguments, Finish};
use crate::reduce::cuda::columns::ColumnProgram;
use crate::reduce::cuda::program::{Key, Program};
use crate::reduce::cuda::segments::SegmentProgram;
use crate::reduce::cuda::workspace::ReduceWorkspace;
use crate::sum::leaf::LEAF;
use crate::sum::leaf_total::LeafTotal;
use crate::{DType, Element, Op, ReduceError};

/// Where a kernel writes, and how many bytes of a result.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub address: u64,
    pub bytes: u64,
}

impl Output {
    /// An element that gets the low bytes of a result.
    ///
    /// # Panics
    /// If it is not one element of 1, 2, 4 or 8 bytes.
    pub fn of<R: Pod>(result: BufferRef<'_, R>) -> Self {
        assert_eq!(result.len(), 1, "a result is one element");
        assert!(
            matches!(size_of::<R>(), 1 | 2 | 4 | 8),
            "results of 1 to 8 bytes"
        );
        Self {
            address: result.address(),
            bytes: size_of::<R>() as u64,
        }
    }

    /// Words at an address.
    pub fn words(address: u64) -> Self {
        let bytes = size_of::<u64>() as u64;
        Self { address, bytes }
    }
}

/// What has been loaded so far.
type Programs<K, P> = Mutex<HashMap<K, Arc<P>>>;

/// The kernels of one GPU, each loaded when it is first used.
pub(crate) struct Launcher {
    device: Device,
    programs: Programs<Key, Program>,
    segment_programs: Programs<Key, SegmentProgram>,
    column_programs: Programs<Key, ColumnProgram>,
    expressions: Programs<(String, DType), Program>,
}

impl Launcher {
    pub fn new(device: &Device) -> Self {
        Self {
            device: *device,
            programs: Mutex::default(),
            segment_programs: Mutex::default(),
            column_programs: Mutex::default(),
            expressions: Mutex::default(),
        }
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The kernel of the sum of an expression, of a floating-point type.
    pub fn expression(&self, expression: &str, dtype: DType) -> Result<Arc<Program>, ReduceError> {
        let key = (expression.to_owned(), dtype);
        loaded(&self.expressions, key, |(expression, dtype)| {
            Program::of_expression(&self.device, dtype, &expression)
        })
    }

    /// The kernel of `op` on elements of `dtype`.
    pub fn program(&self, op: Op, dtype: DType) -> Result<Arc<Program>, ReduceError> {
        loaded(&self.programs, Key::new(op, dtype), |key| {
            Program::load(&self.device, key)
        })
    }

    /// The kernels of segments.
    pub fn segment_program(
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

    /// The kernels of columns, of the operations that segments have.
    pub fn column_program(&self, op: Op, dtype: DType) -> Result<Arc<ColumnProgram>, ReduceError> {
        let key = Key::new(op, dtype);
        let (source, options) = key
            .column_source()
            .ok_or(ReduceError::NotSegmented { op, dtype })?;
        loaded(&self.column_programs, key, |_| {
            ColumnProgram::load(&self.device, &source, &options)
        })
    }

    /// The partial result of inputs of one length, in the words that PEs exchange.
    pub fn words<T: Element>(
        &self,
        op: Op,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
    ) -> Result<Vec<u64>, ReduceError> {
        if op == Op::Prod && T::DTYPE.is_float() {
            let products = Buffer::<u64>::new(&self.device, inputs[0].len().div_ceil(LEAF))?;
            let out = Output::words(products.address());
            self.launch(op, Finish::Words, workspace, inputs, 0, out)?;
            return Ok(products.to_vec(&workspace.stream)?);
        }
        let words = match (T::DTYPE.is_float(), op) {
            (_, Op::Min | Op::Max | Op::Argmin | Op::Argmax) => 3,
            (true, _) if T::DTYPE == DType::F64 => LeafTotal::<f64>::WORDS,
            (true, _) => LeafTotal::<f32>::WORDS,
            (false, Op::Prod | Op::Dot) => 1,
            (false, _) => 3,
        };
        let out = Output::words(workspace.result.address());
        self.launch(op, Finish::Words, workspace, inputs, 0, out)?;
        workspace.stream.synchronize()?;
        Ok(workspace.result[..words].to_vec())
    }

    /// Launches the kernel on inputs that have been checked. `count`: an address, or 0; `out`: of what
    /// `finish` writes.
    pub fn launch<T: Element>(
        &self,
        op: Op,
        finish: Finish,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        count: u64,
        out: Output,
    ) -> Result<(), ReduceError> {
        let program = self.program(op, T::DTYPE)?;
        self.launch_program(&program, finish, workspace, inputs, count, out)
    }

    /// As [`launch`](Self::launch), of a kernel that has been loaded.
    pub fn launch_program<T: Element>(
        &self,
        program: &Arc<Program>,
        finish: Finish,
        workspace: &mut ReduceWorkspace,
        inputs: &[BufferRef<'_, T>],
        count: u64,
        out: Output,
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
            out: out.address,
            finish: finish as u64,
            ahead: program.ahead(n),
            result_bytes: out.bytes,
        };
        let launch = program.launch(n).prepare()?;
        // SAFETY: the kernel's one parameter is this structure. It reads `n` elements of the inputs and
        // one count, uses the state, which has the words it needs, and the products, for which there is
        // room, and writes what `finish` says: the result's bytes, but for `Words` words for which `out` has
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
