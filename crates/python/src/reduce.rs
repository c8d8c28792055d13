//! Reductions of whole arrays, of rows, and of columns.

use std::ops::Range;

use bytemuck::cast_slice;
use crosswarp::prim::leaf::LEAF;
use crosswarp::prim::{
    DType, Element, Float, Layout, Op, Reducer, Scalar, Simd, Transposer, Value,
};
use numpy::npyffi::NPY_TYPES;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::array::{Array, Kind, empty, scalar, type_of};
use crate::error::Failure;
use crate::integers::Integer;
use crate::run::{Stop, guarded, share, threads, work};
use crate::{extrema, integers, sums};

/// Rows from which on a reduction's own threads are used, and not one thread a row.
const LONG_ROW: usize = 16 << 20;
/// Bytes of columns that are brought together at a time, so that they stay in the second-level cache.
const TILE: usize = 256 << 10;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes that pay for a thread: see `Cost` of crosswarp-prim.
const BYTES_PER_THREAD: usize = 4 << 20;

/// Does something with the Rust type of an element type.
macro_rules! of_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F16 => {
                type $T = half::f16;
                $body
            }
            DType::Bf16 => {
                type $T = half::bf16;
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

pub(crate) use of_type;

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

/// The operation of this number.
pub fn operation(number: usize) -> Result<Op, Failure> {
    let op = Op::ALL.get(number).copied();
    op.ok_or_else(|| Failure::Internal(format!("no operation {number}")))
}

/// The reduction of a whole array or along an axis, or, of anything that is no C-contiguous array of a known type,
/// `None`.
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
            return Ok(None);
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
    guarded(move || {
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
            let rows = number * at_once..((number + 1) * at_once).min(output.len);
            if short_rows(op, arrays, len, rows.clone(), output)? {
                return Ok(());
            }
            for row in rows {
                let mut inputs = [&[][..]; 2];
                for (input, array) in inputs.iter_mut().zip(arrays) {
                    *input = &array[row * len..(row + 1) * len];
                }
                let value = reducer.reduce(op, &inputs[..arrays.len()])?;
                output.write(row, as_python_has_it(op, kind, value));
            }
            Ok(())
        },
    )
}

/// The reduction of a short array, of the operations and types that have a shorter way.
#[inline]
fn short<T: Element>(op: Op, inputs: [&[T]; 2]) -> Option<Value> {
    if !(1..=LEAF).contains(&inputs[0].len()) {
        return None;
    }
    match (op, T::DTYPE) {
        (Op::Min | Op::Argmin, _) => Some(short_extremum::<T, false>(op, inputs[0])),
        (Op::Max | Op::Argmax, _) => Some(short_extremum::<T, true>(op, inputs[0])),
        (_, DType::F32) if sums::has(op) => short_sum::<f32>(op, inputs.map(cast_slice)),
        (_, DType::F64) if sums::has(op) => short_sum::<f64>(op, inputs.map(cast_slice)),
        _ => None,
    }
}

fn short_extremum<T: Element, const MAX: bool>(op: Op, values: &[T]) -> Value {
    let mut place = [0];
    Simd::detect().compile(extrema::Rows::<T, MAX> {
        values,
        len: values.len(),
        out: &mut place,
    });
    match op {
        Op::Min | Op::Max => values[place[0] as usize].canonical().into(),
        _ => Value::I64(place[0].into()),
    }
}

fn short_sum<F: Float + Scalar>(op: Op, [x, y]: [&[F]; 2]) -> Option<Value> {
    let (mut out, mut unsure) = ([F::ZERO], Vec::new());
    Simd::detect().compile(sums::Rows {
        op,
        inputs: if op == Op::Dot { [x, y] } else { [x, x] },
        len: x.len(),
        out: &mut out,
        unsure: &mut unsure,
    });
    unsure.is_empty().then(|| out[0].into())
}

/// Rows `rows` of arrays whose rows are short, into `output`, by [`short`]'s ways; whether they have one.
fn short_rows<T: Element>(
    op: Op,
    arrays: &[&[T]],
    len: usize,
    rows: Range<usize>,
    output: Array,
) -> Result<bool, Failure> {
    if !(1..=LEAF).contains(&len) {
        return Ok(false);
    }
    let inputs = [0, arrays.len() - 1].map(|k| &arrays[k][rows.start * len..rows.end * len]);
    match (op, T::DTYPE) {
        (Op::Min | Op::Argmin, _) => extrema_of_rows::<T, false>(op, inputs[0], len, rows, output),
        (Op::Max | Op::Argmax, _) => extrema_of_rows::<T, true>(op, inputs[0], len, rows, output),
        (_, DType::F32) if sums::has(op) => {
            sums_of_rows::<f32, T>(op, inputs, len, rows, output)?;
        }
        (_, DType::F64) if sums::has(op) => {
            sums_of_rows::<f64, T>(op, inputs, len, rows, output)?;
        }
        (_, dtype) if integers::has(op) => {
            let done = of_integer_type!(dtype, I => {
                integers_of_rows::<I, T>(op, inputs, len, rows, output)
            });
            return done.transpose().map(|done| done.is_some());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn extrema_of_rows<T: Element, const MAX: bool>(
    op: Op,
    values: &[T],
    len: usize,
    rows: Range<usize>,
    output: Array,
) {
    let mut places = vec![0; rows.len()];
    Simd::detect().compile(extrema::Rows::<T, MAX> {
        values,
        len,
        out: &mut places,
    });
    put_extrema(op, &places, output, rows.start, |row, place| {
        values[row * len + place]
    });
}

/// Writes extrema, or their places, from element `at` of the output on.
fn put_extrema<T: Element>(
    op: Op,
    places: &[u32],
    output: Array,
    at: usize,
    value: impl Fn(usize, usize) -> T,
) {
    if matches!(op, Op::Argmin | Op::Argmax) {
        let places: Vec<i64> = places.iter().map(|&place| place.into()).collect();
        output.write_all(at, &places);
    } else {
        let values = places.iter().enumerate();
        let values: Vec<T> = values
            .map(|(k, &place)| value(k, place as usize).canonical())
            .collect();
        output.write_all(at, &values);
    }
}

/// `T` is `F`.
fn sums_of_rows<F: Float + Scalar, T: Element>(
    op: Op,
    inputs: [&[T]; 2],
    len: usize,
    rows: Range<usize>,
    output: Array,
) -> Result<(), Failure> {
    let (mut out, mut unsure) = (vec![F::ZERO; rows.len()], Vec::new());
    Simd::detect().compile(sums::Rows {
        op,
        inputs: inputs.map(cast_slice::<T, F>),
        len,
        out: &mut out,
        unsure: &mut unsure,
    });
    output.write_all(rows.start, &out);
    let count = if op == Op::Dot { 2 } else { 1 };
    for row in unsure {
        let inputs = inputs.map(|input| &input[row * len..(row + 1) * len]);
        output.write(
            rows.start + row,
            Reducer::new().reduce(op, &inputs[..count])?,
        );
    }
    Ok(())
}

/// `T` is `I`.
fn integers_of_rows<I: Integer + Scalar, T: Element>(
    op: Op,
    inputs: [&[T]; 2],
    len: usize,
    rows: Range<usize>,
    output: Array,
) -> Result<(), Failure> {
    let mut totals = vec![(0, 0); rows.len()];
    Simd::detect().compile(integers::Rows {
        op,
        inputs: inputs.map(cast_slice::<T, I>),
        len,
        out: &mut totals,
    });
    put_integers(op, &totals, len, output, rows.start, |row| {
        inputs.map(|input| input[row * len..(row + 1) * len].to_vec())
    })
}

/// Writes what totals of `count` elements each come to, from element `at` of the output on; `again` has the elements of
/// those that have to be computed the long way.
fn put_integers<T: Element>(
    op: Op,
    totals: &[(i64, u64)],
    count: usize,
    output: Array,
    at: usize,
    again: impl Fn(usize) -> [Vec<T>; 2],
) -> Result<(), Failure> {
    if !matches!(op, Op::Mean | Op::Norm2) {
        let sums: Vec<i64> = totals.iter().map(|&(sum, _)| sum).collect();
        output.write_all(at, &sums);
        return Ok(());
    }
    let mut words = Vec::with_capacity(totals.len());
    for (k, &total) in totals.iter().enumerate() {
        words.push(match integers::finished(op, total, count) {
            Some(bits) => bits,
            None => Reducer::new().reduce(op, &[&again(k)[0][..]])?.bits(),
        });
    }
    output.write_all(at, &words);
    Ok(())
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
    guarded(move || {
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
    if rows > 0 && u32::try_from(rows).is_ok() {
        let tiles = Tiles {
            shape: [rows, columns],
            output,
            threads,
            stop,
        };
        match (op, T::DTYPE) {
            (Op::Min, _) => return tiles.extrema::<T, false, false>(arrays[0]),
            (Op::Max, _) => return tiles.extrema::<T, true, false>(arrays[0]),
            (Op::Argmin, _) => return tiles.extrema::<T, false, true>(arrays[0]),
            (Op::Argmax, _) => return tiles.extrema::<T, true, true>(arrays[0]),
            (_, DType::F32) if sums::has(op) => return tiles.sums::<f32, T>(op, arrays),
            (_, DType::F64) if sums::has(op) => return tiles.sums::<f64, T>(op, arrays),
            (_, dtype) if integers::has(op) => {
                let done = of_integer_type!(dtype, I => tiles.integers::<I, T>(op, arrays));
                if let Some(done) = done {
                    return done;
                }
            }
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

/// Matrices of one shape, one after the other, whose columns are reduced into an output, as they lie.
struct Tiles<'a> {
    /// Rows and columns.
    shape: [usize; 2],
    output: Array,
    threads: usize,
    stop: Stop<'a>,
}

impl Tiles<'_> {
    /// Does `work` on tiles of some columns: with the index of the first element, and the elements of the output.
    fn each<T, S>(
        &self,
        wide_bytes: usize,
        inputs: usize,
        state: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize, Range<usize>) -> Result<(), Failure> + Sync,
    ) -> Result<(), Failure> {
        let [rows, columns] = self.shape;
        let matrices = self.output.len / columns;
        let bytes = rows * self.output.len * size_of::<T>() * inputs;
        let beside = self.threads.min(bytes / BYTES_PER_THREAD).max(1);
        // Memory is read best in long pieces.
        let widest = wide_bytes.max(TILE / rows) / size_of::<T>();
        // Enough tiles for all threads, of about the same width, of whole cache lines.
        let least = columns.div_ceil(widest).max(beside.div_ceil(matrices));
        let line = LINE / size_of::<T>();
        let width = columns.div_ceil(least).next_multiple_of(line).min(columns);
        let tiles = columns.div_ceil(width);
        share(
            beside,
            matrices * tiles,
            self.stop,
            state,
            |state, number| {
                let (matrix, first) = (number / tiles, number % tiles * width);
                let to = matrix * columns + first;
                let width = width.min(columns - first);
                work(state, matrix * rows * columns + first, to..to + width)
            },
        )
    }

    fn extrema<T: Element, const MAX: bool, const PLACES: bool>(
        &self,
        values: &[T],
    ) -> Result<(), Failure> {
        let [rows, stride] = self.shape;
        let state = extrema::Scratch::<T>::new;
        self.each::<T, _>(extrema::WIDE_BYTES, 1, state, |scratch, start, to| {
            Simd::detect().compile(extrema::Columns::<T, MAX, PLACES> {
                values: &values[start..],
                rows,
                stride,
                width: to.len(),
                scratch,
            });
            if PLACES {
                let places: Vec<i64> = scratch.rows.iter().map(|&row| row.into()).collect();
                self.output.write_all(to.start, &places);
            } else {
                let ranks = scratch.ranks.iter();
                let values: Vec<T> = ranks.map(|&rank| T::of_rank::<MAX>(rank)).collect();
                self.output.write_all(to.start, &values);
            }
            Ok(())
        })
    }

    /// `T` is `I`.
    fn integers<I: Integer + Scalar, T: Element>(
        &self,
        op: Op,
        arrays: &[&[T]],
    ) -> Result<(), Failure> {
        let [rows, stride] = self.shape;
        let state = || (integers::Scratch::default(), Vec::new());
        let inputs = arrays.len();
        self.each::<T, _>(
            integers::WIDE_BYTES,
            inputs,
            state,
            |(scratch, totals), start, to| {
                totals.resize(to.len(), (0, 0));
                let inputs = [0, arrays.len() - 1].map(|k| &arrays[k][start..]);
                Simd::detect().compile(integers::Columns {
                    op,
                    inputs: inputs.map(cast_slice::<T, I>),
                    rows,
                    stride,
                    out: totals,
                    scratch,
                });
                put_integers(op, totals, rows, self.output, to.start, |column| {
                    inputs.map(|input| {
                        let column = input[column..].iter().step_by(stride).take(rows);
                        column.copied().collect()
                    })
                })
            },
        )
    }

    /// `T` is `F`.
    fn sums<F: Float + Scalar, T: Element>(&self, op: Op, arrays: &[&[T]]) -> Result<(), Failure> {
        let [rows, stride] = self.shape;
        let state = || (sums::Scratch::<F>::new(), Vec::new(), Vec::new());
        self.each::<T, _>(sums::WIDE_BYTES, arrays.len(), state, |state, start, to| {
            let (scratch, out, unsure) = state;
            out.resize(to.len(), F::ZERO);
            let inputs = [0, arrays.len() - 1].map(|k| &arrays[k][start..]);
            Simd::detect().compile(sums::Columns {
                op,
                inputs: inputs.map(cast_slice::<T, F>),
                rows,
                stride,
                out,
                scratch,
                unsure,
            });
            self.output.write_all(to.start, out);
            for column in unsure.drain(..) {
                // Gathered, it goes the long way.
                let gathered = inputs.map(|input| {
                    let column = input[column..].iter().step_by(stride).take(rows);
                    column.copied().collect::<Vec<T>>()
                });
                let slices = [&gathered[0][..], &gathered[1][..]];
                let value = Reducer::new().reduce(op, &slices[..arrays.len()])?;
                self.output.write(to.start + column, value);
            }
            Ok(())
        })
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("OPS", Op::ALL.iter().map(Op::to_string).collect::<Vec<_>>())?;
    module.add_function(wrap_pyfunction!(whole, module)?)?;
    module.add_function(wrap_pyfunction!(whole_dot, module)?)?;
    module.add_function(wrap_pyfunction!(rows, module)?)?;
    module.add_function(wrap_pyfunction!(columns, module)?)
}
