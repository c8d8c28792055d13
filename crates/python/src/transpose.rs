//! Transposition of matrices in memory.

use bytemuck::Pod;
use crosswarp::prim::{Layout, Transposer};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::array::{Array, empty, type_of};
use crate::error::Failure;
use crate::run::{guarded, is_stopped, threads, work};

/// Bytes transposed between two looks at the flag that stops.
const PIECE: usize = 16 << 20;

/// Writes the transposes of `batch` C-contiguous matrices of `rows` rows behind one another into `output`, which shares no
/// memory with them.
#[pyfunction]
fn transpose(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    output: &Bound<'_, PyAny>,
    batch: usize,
    rows: usize,
    columns: usize,
    asked: usize,
) -> PyResult<()> {
    guarded(move || {
        let (array, output) = (Array::prepared(array)?, Array::output(output)?);
        into(py, array, output, [batch, rows, columns], asked)
    })
}

/// The transpose of a matrix, in an array of its own, or, of anything that is no C-contiguous matrix of a known type with
/// elements, `None`.
///
/// The short way for the common case: everything else is prepared by the Python side.
#[pyfunction]
fn transposed(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    asked: usize,
) -> PyResult<Option<Py<PyAny>>> {
    guarded(move || {
        let Ok(untyped) = array.cast_exact::<PyUntypedArray>() else {
            return Ok(None);
        };
        let (Some(array), &[rows, columns]) = (Array::of(untyped), untyped.shape()) else {
            return Ok(None);
        };
        if array.len == 0 {
            return Ok(None);
        }
        let (result, output) = empty(py, &[columns, rows], type_of(untyped))?;
        into(py, array, output, [1, rows, columns], asked)?;
        Ok(Some(result))
    })
}

fn into(
    py: Python<'_>,
    array: Array,
    output: Array,
    shape: [usize; 3],
    asked: usize,
) -> PyResult<()> {
    work(py, array.bytes(), |stop| {
        let stop = || is_stopped(stop);
        match array.kind.dtype.size() {
            1 => of_words::<u8>(array, output, shape, asked, stop),
            2 => of_words::<u16>(array, output, shape, asked, stop),
            4 => of_words::<u32>(array, output, shape, asked, stop),
            _ => of_words::<u64>(array, output, shape, asked, stop),
        }
    })
}

fn of_words<T: Pod>(
    array: Array,
    output: Array,
    [batch, rows, columns]: [usize; 3],
    asked: usize,
    stop: impl Fn() -> bool,
) -> Result<(), Failure> {
    let (from, to) = (array.words::<T>(), output.words_mut::<T>());
    let transposer = Transposer::new().threads(threads(asked));
    let matrix = rows * columns;
    // Some columns of one matrix at a time, whose transpose lies together.
    let at_once = (PIECE / size_of::<T>() / rows.max(1)).max(1);
    let at_once = at_once.next_multiple_of(64);
    for number in 0..batch {
        let start = number * matrix;
        for column in (0..columns).step_by(at_once) {
            if stop() {
                return Err(Failure::Stopped);
            }
            let some = at_once.min(columns - column);
            transposer
                .transpose(
                    &from[(start + column).min(from.len())..start + matrix],
                    &Layout::new(rows, some).with_leading_dimension(columns),
                    &mut to[start + column * rows..start + (column + some) * rows],
                    &Layout::new(some, rows),
                )
                .map_err(|error| Failure::Internal(error.to_string()))?;
        }
    }
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(transpose, module)?)?;
    module.add_function(wrap_pyfunction!(transposed, module)?)
}
