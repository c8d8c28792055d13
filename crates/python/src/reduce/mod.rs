//! Reductions of whole arrays, of rows, and of columns: what Python calls, and what the ways have in common.
//!
//! `rows` and `columns` are the ways of one result each; `sums`, `extrema` and `integers` the loops that both have.

mod columns;
mod extrema;
mod integers;
mod rows;
mod sums;

use crosswarp::prim::{DType, Op, Reducer, Value};
use numpy::npyffi::NPY_TYPES;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::array::{Array, Kind, empty, scalar, type_of};
use crate::error::Failure;
use crate::gpu::tensor;
use crate::numbers::{of_type, operation};
use crate::run::{Stop, guarded, threads, work};
use columns::columns_of;
use rows::{rows_of, short};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes that pay for a thread: see `Cost` of crosswarp-prim.
const BYTES_PER_THREAD: usize = 1 << 20;

/// As `of_type`, of the integers; `None` of others.
macro_rules! of_integer_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        of_integer_type!($dtype, $T => $body, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64)
    };
    ($dtype:expr, $T:ident => $body:expr, $($variant:ident $type:ident),*) => {
        match $dtype {
            $(DType::$variant => {
                type $T = $type;
                Some($body)
            })*
            _ => None,
        }
    };
}

use of_integer_type;

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

/// The reduction of a whole array or tensor or along an axis, or, of anything that is no C-contiguous array of a known
/// type, `None`.
///
/// The short way for the common case: everything else is prepared by the Python side.
#[pyfunction]
fn whole(
    py: Python<'_>,
    op: usize,
    array: &Bound<'_, PyAny>,
    axis: Option<isize>,
    asked: usize,
) -> PyResult<Option<Py<PyAny>>> {
    guarded(move || {
        let Ok(untyped) = array.cast::<PyUntypedArray>() else {
            return tensor::reduce(py, operation(op)?, array, axis);
        };
        let Some(array) = Array::of(untyped) else {
            return Ok(None);
        };
        if let Some(axis) = axis {
            return along(py, operation(op)?, untyped, array, axis, asked);
        }
        inputs(py, operation(op)?, &[array], asked).map(Some)
    })
}

/// The reduction along an axis; `None` where there is more to say: of a vector, an empty array, an axis that is not
/// there.
fn along(
    py: Python<'_>,
    op: Op,
    untyped: &Bound<'_, PyUntypedArray>,
    array: Array,
    axis: isize,
    asked: usize,
) -> PyResult<Option<Py<PyAny>>> {
    let shape = untyped.shape();
    let ndim = shape.len() as isize;
    if ndim < 2 || array.len == 0 || !(-ndim..ndim).contains(&axis) {
        return Ok(None);
    }
    let axis = axis.rem_euclid(ndim) as usize;
    let kept = [&shape[..axis], &shape[axis + 1..]].concat();
    let inner = shape[axis + 1..].iter().product();
    let (result, output) = empty(py, &kept, result_type(op, untyped, array.kind))?;
    let asked = threads(asked);
    work(py, cost(op, array.bytes()), |stop| {
        of_type!(array.kind.dtype, T => {
            let slices = [array.slice::<T>()];
            match inner {
                1 => rows_of(op, array.kind, &slices, output, asked, stop),
                _ => columns_of(op, array.kind, &slices, inner, output, asked, stop),
            }
        })
    })?;
    Ok(Some(result))
}

/// NumPy's number of the type of results.
fn result_type(op: Op, array: &Bound<'_, PyUntypedArray>, kind: Kind) -> i32 {
    let number = match (op, kind.dtype) {
        (Op::Min | Op::Max, _) => return type_of(array),
        (Op::Argmin | Op::Argmax, _) => NPY_TYPES::NPY_LONG,
        (_, DType::F64) => NPY_TYPES::NPY_DOUBLE,
        (_, DType::F32 | DType::F16 | DType::Bf16) => NPY_TYPES::NPY_FLOAT,
        (Op::Mean | Op::Norm2, _) => NPY_TYPES::NPY_DOUBLE,
        (_, DType::U8 | DType::U16 | DType::U32 | DType::U64) if !kind.is_bool => {
            NPY_TYPES::NPY_ULONG
        }
        _ => NPY_TYPES::NPY_LONG,
    };
    number as i32
}

/// The same, of two arrays of one type and length.
#[pyfunction]
fn whole_dot(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    y: &Bound<'_, PyAny>,
    asked: usize,
) -> PyResult<Option<Py<PyAny>>> {
    guarded(move || {
        let array =
            |array: &Bound<'_, PyAny>| array.cast::<PyUntypedArray>().ok().and_then(Array::of);
        match (array(x), array(y)) {
            (Some(x), Some(y)) if x.kind == y.kind && x.len == y.len => {
                inputs(py, Op::Dot, &[x, y], asked).map(Some)
            }
            (None, None) => tensor::dot(py, x, y),
            _ => Ok(None),
        }
    })
}

fn inputs(py: Python<'_>, op: Op, arrays: &[Array], asked: usize) -> PyResult<Py<PyAny>> {
    let kind = arrays[0].kind;
    let bytes = cost(op, arrays.iter().map(Array::bytes).sum());
    let value = work(py, bytes, |stop| {
        of_type!(kind.dtype, T => {
            let slices = [arrays[0].slice::<T>(), arrays[arrays.len() - 1].slice::<T>()];
            if let Some(value) = short(op, slices) {
                return Ok(value);
            }
            Ok(reducer(threads(asked), stop).reduce(op, &slices[..arrays.len()])?)
        })
    })?;
    scalar(py, as_python_has_it(op, kind, value), is_bool(op, kind))
}

fn prepared(arrays: &[Bound<'_, PyAny>], bf16: bool) -> Result<Vec<Array>, Failure> {
    let as_is = |array: Array| if bf16 { array.as_bf16() } else { array };
    arrays
        .iter()
        .map(|array| Array::prepared(array).map(as_is))
        .collect()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("OPS", Op::ALL.iter().map(Op::to_string).collect::<Vec<_>>())?;
    module.add_function(wrap_pyfunction!(whole, module)?)?;
    module.add_function(wrap_pyfunction!(whole_dot, module)?)?;
    module.add_function(wrap_pyfunction!(rows::rows, module)?)?;
    module.add_function(wrap_pyfunction!(columns::columns, module)?)
}
