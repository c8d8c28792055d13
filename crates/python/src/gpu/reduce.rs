//! Reductions of arrays on a GPU.

use std::collections::HashSet;
use std::sync::Mutex;

use crosswarp::cuda::{BufferRef, Pod};
use crosswarp::prim::cuda::Segments;
use crosswarp::prim::{DType, Element, Op};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::gpu::elements;
use crate::gpu::queue::{Gpu, Place, Workspace, lock, prepare};
use crate::numbers::{element_type, of_type, operation};
use crate::run::guarded;

/// What is reduced: addresses of one input or two, and how.
#[derive(Clone, Copy)]
pub struct Task {
    pub op: Op,
    pub inputs: [usize; 2],
    /// Elements of each input.
    pub len: usize,
    /// How many matrices, rows, columns: a result for each column; or no rows: all are one.
    pub shape: [usize; 3],
    /// Where results go,
    pub out: usize,
    /// and bytes of each.
    pub out_bytes: usize,
}

/// How.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    /// All elements.
    All,
    /// Columns of one column each, which lie behind one another.
    Rows,
    Columns,
    /// As `Rows`, a launch each.
    OneByOne,
}

impl Way {
    fn of(op: Op, dtype: DType, [_, rows, columns]: [usize; 3]) -> Result<Way, Failure> {
        let alone = op == Op::Prod || op == Op::ExactSum && dtype.is_float();
        match (rows, columns) {
            (0, _) => Ok(Way::All),
            (_, 1) if alone => Ok(Way::OneByOne),
            (_, 1) => Ok(Way::Rows),
            _ if alone => Err(Failure::Internal(format!("{op} of columns of {dtype}"))),
            _ => Ok(Way::Columns),
        }
    }
}

/// Reduces `len` elements into `out_bytes` at `out`; or, with `shape` (how many matrices, rows, columns), each column.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Numbers of one call from Python.
fn device_reduce(
    py: Python<'_>,
    place: Place,
    op: usize,
    dtype: usize,
    inputs: [usize; 2],
    len: usize,
    shape: [usize; 3],
    out: usize,
    out_bytes: usize,
) -> PyResult<()> {
    guarded(move || {
        let task = Task {
            op: operation(op)?,
            inputs,
            len,
            shape,
            out,
            out_bytes,
        };
        enqueue(py, place.gpu()?, place, element_type(dtype)?, &task)
    })
}

/// Gives a reduction to the stream.
pub fn enqueue(
    py: Python<'_>,
    gpu: &'static Gpu,
    place: Place,
    dtype: DType,
    task: &Task,
) -> PyResult<()> {
    let way = Way::of(task.op, dtype, task.shape)?;
    compiled(py, gpu, task.op, dtype, way)?;
    let work = || {
        place.with(gpu, |stream| {
            let workspace = gpu.workspace(stream)?;
            let mut workspace = lock(&workspace);
            of_type!(dtype, T => reduce::<T>(gpu, &mut workspace, task, way))
        })
    };
    Ok(py.detach(work)?)
}

/// Compiles and loads what an operation needs, once.
fn compiled(py: Python<'_>, gpu: &'static Gpu, op: Op, dtype: DType, way: Way) -> PyResult<()> {
    type Kernel = (usize, Op, DType, Way);
    static DONE: Mutex<Option<HashSet<Kernel>>> = Mutex::new(None);
    let key = (gpu.device.ordinal(), op, dtype, way);
    if lock(&DONE).get_or_insert_default().contains(&key) {
        return Ok(());
    }
    prepare(py, move || match way {
        Way::Rows => Ok(gpu.reducer.prepare_segments(op, dtype)?),
        Way::Columns => Ok(gpu.reducer.prepare_columns(op, dtype)?),
        Way::All | Way::OneByOne => Ok(gpu.reducer.prepare(op, dtype)?),
    })?;
    lock(&DONE).get_or_insert_default().insert(key);
    Ok(())
}

fn reduce<T: Element>(
    gpu: &Gpu,
    workspace: &mut Workspace,
    task: &Task,
    way: Way,
) -> Result<(), Failure> {
    let Task { op, len, .. } = *task;
    // SAFETY: rules 1 and 2.
    let inputs = unsafe {
        [
            elements::<T>(task.inputs[0], len)?,
            elements(task.inputs[1], len)?,
        ]
    };
    let inputs = &inputs[..op.inputs()];
    match task.out_bytes {
        1 => some::<T, u8>(gpu, workspace, task, inputs, way),
        2 => some::<T, u16>(gpu, workspace, task, inputs, way),
        4 => some::<T, u32>(gpu, workspace, task, inputs, way),
        _ => some::<T, u64>(gpu, workspace, task, inputs, way),
    }
}

fn some<T: Element, R: Pod>(
    gpu: &Gpu,
    workspace: &mut Workspace,
    task: &Task,
    inputs: &[BufferRef<'_, T>],
    way: Way,
) -> Result<(), Failure> {
    let Task { op, shape, .. } = *task;
    let [batch, rows, columns] = shape;
    let results = match way {
        Way::All => 1,
        _ => batch * columns,
    };
    // SAFETY: rules 1 and 2: the output has an element a column, or one.
    let out = unsafe { elements::<R>(task.out, results) }?;
    let reduce = &mut workspace.reduce;
    match way {
        Way::All => {
            gpu.reducer
                .enqueue_as::<T, R>(op, reduce, inputs, None, out)?;
            return Ok(());
        }
        Way::Rows => {
            let segments = Segments::Rows(rows);
            gpu.reducer
                .enqueue_segments_as::<T, R>(op, reduce, inputs, segments, out)?;
            return Ok(());
        }
        Way::Columns => {
            gpu.reducer
                .enqueue_columns::<T, R>(op, reduce, inputs, shape, out)?;
            return Ok(());
        }
        Way::OneByOne => {}
    }
    // One after the other: products, and exact sums.
    for row in 0..batch {
        let part: Vec<_> = inputs
            .iter()
            .map(|input| input.range(row * rows..(row + 1) * rows))
            .collect();
        let result = out.range(row..row + 1);
        gpu.reducer
            .enqueue_as::<T, R>(op, reduce, &part, None, result)?;
    }
    Ok(())
}

/// The bits of the smallest and the largest of `len` elements, of which there is one at least. Waits for them.
#[pyfunction]
fn device_extremes(
    py: Python<'_>,
    place: Place,
    dtype: usize,
    address: usize,
    len: usize,
) -> PyResult<(u64, u64)> {
    guarded(move || {
        extremes(
            py,
            place.gpu()?,
            place,
            element_type(dtype)?,
            (address, len),
        )
    })
}

/// The same, of elements at an address.
pub fn extremes(
    py: Python<'_>,
    gpu: &'static Gpu,
    place: Place,
    dtype: DType,
    (address, len): (usize, usize),
) -> PyResult<(u64, u64)> {
    compiled(py, gpu, Op::Min, dtype, Way::All)?;
    compiled(py, gpu, Op::Max, dtype, Way::All)?;
    let work = || {
        place.with(gpu, |stream| {
            let workspace = gpu.workspace(stream)?;
            let workspace = &mut *lock(&workspace);
            for (k, op) in [Op::Min, Op::Max].into_iter().enumerate() {
                let word = workspace.words.address() + (k * size_of::<u64>()) as u64;
                // SAFETY: one of the two words, which every GPU reaches. They are read when the work has ended, and the
                // workspace is borrowed until then.
                let word = unsafe { BufferRef::<u64>::from_raw(word, 1) };
                of_type!(dtype, T => {
                    // SAFETY: rules 1 and 2.
                    let input = unsafe { elements::<T>(address, len) }?;
                    gpu.reducer.enqueue(op, &mut workspace.reduce, &[input], None, word)?;
                });
            }
            stream.synchronize()?;
            Ok((workspace.words[0], workspace.words[1]))
        })
    };
    Ok(py.detach(work)?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let names: Vec<_> = DType::ALL.iter().map(DType::to_string).collect();
    module.add("DTYPES", names)?;
    module.add_function(wrap_pyfunction!(device_reduce, module)?)?;
    module.add_function(wrap_pyfunction!(device_extremes, module)?)
}
