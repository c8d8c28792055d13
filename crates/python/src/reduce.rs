//! Reductions of whole arrays, of rows, and of columns.

use bytemuck::cast_slice;
use crosswarp::prim::{DType, Element, Float, Layout, Op, Reducer, Scalar, Transposer, Value};
use half::{bf16, f16};
use numpy::PyUntypedArray;
use pyo3::prelude::*;

use crate::array::{Array, Kind, scalar};
use crate::error::Failure;
use crate::leaf;
use crate::run::{Stop, share, threads, work};

/// Rows from which on a reduction's own threads are used, and not one thread a row.
const LONG_ROW: usize = 16 << 20;
/// Bytes of columns that are brought together at a time, so that they stay in the second-level cache.
const TILE: usize = 256 << 10;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes that pay for a thread: see `Cost` of crosswarp-prim.
const BYTES_PER_THREAD: usize = 4 << 20;

macro_rules! of_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $T = f16;
                $body
            }
            DType::Bf16 => {
                type $T = bf16;
                $body
            }
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::I8 => {
                type $T = i8;
                $body
            }
            DType::I16 => {
                type $T = i16;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::U8 => {
                type $T = u8;
                $body
            }
            DType::U16 => {
                type $T = u16;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
        }
    };
}

/// What a result is in Python: indices are signed there, and booleans are counted in signed integers.
fn as_python_has_it(op: Op, kind: Kind, value: Value) -> Value {
    match value {
        Value::U64(value) if kind.is_bool || matches!(op, Op::Argmin | Op::Argmax) => {
            Value::I64(value as i64)
        }
        value => value,
    }
}

/// Whether a result is a boolean.
fn is_bool(op: Op, kind: Kind) -> bool {
    kind.is_bool && matches!(op, Op::Min | Op::Max)
}

/// The cost of an operation, in bytes that could be read meanwhile.
fn cost(op: Op, bytes: usize) -> usize {
    match op {
        // 2 GB/s a core, where reading has tens.
        Op::ExactSum => bytes.saturating_mul(16),
        _ => bytes,
    }
}

fn reducer(threads: usize, stop: Stop<'_>) -> Reducer<'_> {
    let reducer = Reducer::new().threads(threads);
    stop.map_or(reducer, |stop| reducer.stop_when(stop))
}

fn operation(number: usize) -> Result<Op, Failure> {
    let op = Op::ALL.get(number).copied();
    op.ok_or_else(|| Failure::Internal(format!("no operation {number}")))
}

/// The reduction of a whole array, or, of anything that is no C-contiguous array of a known type, `None`.
///
/// The short way for the common case: everything else is prepared by the Python side.
#[pyfunction]
fn whole(
    py: Python<'_>,
    op: usize,
    array: &Bound<'_, PyAny>,
    asked: usize,
) -> PyResult<Option<Py<PyAny>>> {
    let Some(array) = array.cast::<PyUntypedArray>().ok().and_then(Array::of) else {
        return Ok(None);
    };
    inputs(py, operation(op)?, &[array], asked).map(Some)
}

/// The same, of two arrays of one type and length.
#[pyfunction]
fn whole_dot(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    asked: usize,
) -> PyResult<Option<Py<PyAny>>> {
    let array = |array: &Bound<'_, PyAny>| array.cast::<PyUntypedArray>().ok().and_then(Array::of);
    match (array(x), array(y)) {
        (Some(x), Some(y)) if x.kind == y.kind && x.len == y.len => {
            inputs(py, Op::Dot, &[x, y], asked).map(Some)
        }
        _ => Ok(None),
    }
}

fn inputs(py: Python<'_>, op: Op, arrays: &[Array], asked: usize) -> PyResult<Py<PyAny>> {
    let kind = arrays[0].kind;
    let bytes = cost(op, arrays.iter().map(Array::bytes).sum());
    let value = work(py, bytes, |stop| {
        of_type!(kind.dtype, T => {
            let slices = [arrays[0].slice::<T>(), arrays[arrays.len() - 1].slice::<T>()];
            if let Some(value) = short_row(op, slices) {
                return Ok(value);
            }
            Ok(reducer(threads(asked), stop).reduce(op, &slices[..arrays.len()])?)
        })
    })?;
    scalar(py, as_python_has_it(op, kind, value), is_bool(op, kind))
}

/// Reduces each row of C-contiguous arrays of `output.len()` rows into an element of `output`.
#[pyfunction]
fn rows(
    py: Python<'_>,
    op: usize,
    arrays: Vec<Bound<'_, PyAny>>,
    output: &Bound<'_, PyAny>,
    asked: usize,
    bf16: bool,
) -> PyResult<()> {
    let op = operation(op)?;
    let arrays = prepared(&arrays, bf16)?;
    let output = Array::output(output)?;
    let bytes = arrays.iter().map(Array::bytes).sum();
    let kind = arrays[0].kind;
    if output.len == 0 {
        return Ok(());
    }
    work(py, cost(op, bytes), |stop| {
        of_type!(kind.dtype, T => {
            let slices: Vec<&[T]> = arrays.iter().map(Array::slice).collect();
            rows_of(op, kind, &slices, output, threads(asked), stop)
        })
    })
}

fn prepared(arrays: &[Bound<'_, PyAny>], bf16: bool) -> Result<Vec<Array>, Failure> {
    let as_is = |array: Array| if bf16 { array.as_bf16() } else { array };
    arrays
        .iter()
        .map(|array| Array::prepared(array).map(as_is))
        .collect()
}

fn rows_of<T: Element>(
    op: Op,
    kind: Kind,
    arrays: &[&[T]],
    output: Array,
    threads: usize,
    stop: Stop<'_>,
) -> Result<(), Failure> {
    let len = arrays[0].len() / output.len;
    let row_bytes = cost(op, len * size_of::<T>());
    // Short rows are worked on by many threads, long ones one after the other, by many threads each.
    let (inside, beside) = match row_bytes {
        LONG_ROW.. => (threads, 1),
        _ => (
            1,
            threads
                .min(cost(op, size_of_val(arrays[0])) / BYTES_PER_THREAD)
                .max(1),
        ),
    };
    let reducer = reducer(inside, stop);
    let at_once = (LINE * 1024 / row_bytes.max(1)).clamp(1, 4096);
    share(
        beside,
        output.len.div_ceil(at_once),
        stop,
        || (),
        |(), number| {
            for row in number * at_once..((number + 1) * at_once).min(output.len) {
                let mut inputs = [&[][..]; 2];
                for (input, array) in inputs.iter_mut().zip(arrays) {
                    *input = &array[row * len..(row + 1) * len];
                }
                let value = match short_row(op, inputs) {
                    Some(value) => value,
                    None => reducer.reduce(op, &inputs[..arrays.len()])?,
                };
                output.write(row, as_python_has_it(op, kind, value));
            }
            Ok(())
        },
    )
}

/// The reduction of a short row, of the operations and types that have a shorter way.
#[inline]
fn short_row<T: Element>(op: Op, [x, y]: [&[T]; 2]) -> Option<Value> {
    let y = if op == Op::Dot { y } else { x };
    match T::DTYPE {
        DType::F32 if leaf::has(op) => leaf::of_short_row::<f32>(op, cast_slice(x), cast_slice(y)),
        DType::F64 if leaf::has(op) => leaf::of_short_row::<f64>(op, cast_slice(x), cast_slice(y)),
        _ => None,
    }
}

/// Reduces the columns of each of `count` C-contiguous matrices of `columns` columns into the elements of `output`.
///
/// Some columns at a time are brought together in the cache, and become rows there: memory is read once.
#[pyfunction]
fn columns(
    py: Python<'_>,
    op: usize,
    arrays: Vec<Bound<'_, PyAny>>,
    output: &Bound<'_, PyAny>,
    columns: usize,
    asked: usize,
    bf16: bool,
) -> PyResult<()> {
    let op = operation(op)?;
    let arrays = prepared(&arrays, bf16)?;
    let output = Array::output(output)?;
    let bytes = arrays.iter().map(Array::bytes).sum();
    let kind = arrays[0].kind;
    if output.len == 0 {
        return Ok(());
    }
    work(py, cost(op, bytes), |stop| {
        of_type!(kind.dtype, T => {
            let slices: Vec<&[T]> = arrays.iter().map(Array::slice).collect();
            columns_of(op, kind, &slices, columns, output, threads(asked), stop)
        })
    })
}

fn columns_of<T: Element>(
    op: Op,
    kind: Kind,
    arrays: &[&[T]],
    columns: usize,
    output: Array,
    threads: usize,
    stop: Stop<'_>,
) -> Result<(), Failure> {
    let rows = arrays[0].len() / output.len;
    let matrix = rows * columns;
    if leaf::has(op) && rows > 0 {
        let shape = [rows, columns];
        match T::DTYPE {
            DType::F32 => return sums_of::<f32, T>(op, arrays, shape, output, threads, stop),
            DType::F64 => return sums_of::<f64, T>(op, arrays, shape, output, threads, stop),
            _ => {}
        }
    }
    // Whole cache lines of each row.
    let line = LINE / size_of::<T>();
    let width = (TILE / (rows * size_of::<T>()).max(1))
        .max(1)
        .next_multiple_of(line);
    let width = width.min(columns);
    let tiles = columns.div_ceil(width);
    let beside = threads
        .min(cost(op, size_of_val(arrays[0])) / BYTES_PER_THREAD)
        .max(1);
    let reducer = reducer(1, stop);
    let buffers = || vec![vec![T::from_bits64(0); rows * width]; arrays.len()];
    let count = output.len / columns * tiles;
    share(beside, count, stop, buffers, |buffers, number| {
        let (start, first) = (number / tiles * matrix, number % tiles * width);
        let width = width.min(columns - first);
        for (buffer, array) in buffers.iter_mut().zip(arrays) {
            let from = Layout::new(rows, width).with_leading_dimension(columns);
            let tile = if rows == 0 {
                &[][..]
            } else {
                &array[start + first..start + matrix]
            };
            Transposer::new()
                .transpose(
                    tile,
                    &from,
                    &mut buffer[..rows * width],
                    &Layout::new(width, rows),
                )
                .map_err(|error| Failure::Internal(error.to_string()))?;
        }
        for column in 0..width {
            let mut inputs = [&[][..]; 2];
            for (input, buffer) in inputs.iter_mut().zip(buffers.iter()) {
                *input = &buffer[column * rows..(column + 1) * rows];
            }
            let value = reducer.reduce(op, &inputs[..arrays.len()])?;
            let at = number / tiles * columns + first + column;
            output.write(at, as_python_has_it(op, kind, value));
        }
        Ok(())
    })
}

/// [`columns_of`] sums of `f32` or `f64`, which are read as they lie. `T` is `F`.
fn sums_of<F: Float + Scalar, T: Element>(
    op: Op,
    arrays: &[&[T]],
    [rows, columns]: [usize; 2],
    output: Array,
    threads: usize,
    stop: Stop<'_>,
) -> Result<(), Failure> {
    let (matrix, tiles) = (rows * columns, columns.div_ceil(leaf::WIDTH));
    let beside = threads
        .min(size_of_val(arrays[0]) / BYTES_PER_THREAD)
        .max(1);
    let reducer = reducer(1, stop);
    let count = output.len / columns * tiles;
    share(
        beside,
        count,
        stop,
        || (),
        |(), number| {
            let (start, first) = (number / tiles * matrix, number % tiles * leaf::WIDTH);
            let shape = [rows, columns, leaf::WIDTH.min(columns - first)];
            let part = |array: usize| &arrays[array][start + first..start + matrix];
            let inputs = [part(0), part(arrays.len() - 1)];
            let mut failure = None;
            leaf::of_columns::<F>(op, inputs.map(cast_slice), shape, |column, value| {
                // What has to be computed again is gathered and goes the long way.
                let value = value.map_or_else(
                    || {
                        let gathered = inputs.map(|part| {
                            let column = part[column..].iter().step_by(columns);
                            column.copied().collect::<Vec<T>>()
                        });
                        let slices = [&gathered[0][..], &gathered[1][..]];
                        reducer.reduce(op, &slices[..arrays.len()])
                    },
                    Ok,
                );
                match value {
                    Ok(value) => output.write(number / tiles * columns + first + column, value),
                    Err(error) => failure = Some(error),
                }
            });
            failure.map_or(Ok(()), |error| Err(error.into()))
        },
    )
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("OPS", Op::ALL.iter().map(Op::to_string).collect::<Vec<_>>())?;
    module.add_function(wrap_pyfunction!(whole, module)?)?;
    module.add_function(wrap_pyfunction!(whole_dot, module)?)?;
    module.add_function(wrap_pyfunction!(rows, module)?)?;
    module.add_function(wrap_pyfunction!(columns, module)?)
}
