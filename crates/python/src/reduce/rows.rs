//! Reductions of rows, and of short arrays.

use std::ops::Range;

use bytemuck::cast_slice;
use crosswarp::prim::internal::Rows;
use crosswarp::prim::leaf::LEAF;
use crosswarp::prim::{DType, Element, Float, Op, Reducer, Scalar, Simd, Value};
use pyo3::prelude::*;

use crate::array::{Array, Kind};
use crate::error::Failure;
use crate::numbers::{of_type, operation};
use crate::reduce::integers::Integer;
use crate::reduce::{
    BYTES_PER_THREAD, LINE, as_python_has_it, cost, extrema, integers, of_integer_type, prepared,
    reducer, sums,
};
use crate::run::{Stop, guarded, share, threads, work};

/// Rows from which on a reduction's own threads are used, and not one thread a row.
const LONG_ROW: usize = 16 << 20;

/// Bytes up to which a sum of floats is made without a reducer, which costs a tenth of a microsecond more, and by one thread:
/// so many as pay for another one.
const DIRECT_SUM: usize = 192 << 10;
/// Elements of the longest row whose extremum is not found by a reducer, which costs a tenth of a microsecond more.
const LONGEST_EXTREMUM: usize = 1 << 16;

/// Reduces each row of C-contiguous arrays of `output.len()` rows into an element of `output`.
#[pyfunction]
pub(super) fn rows(
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

pub(super) fn rows_of<T: Element>(
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
    let (simd, bytes) = (Simd::detect(), size_of_val(arrays[0]));
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
            let of = |rows: Range<usize>| {
                let second = arrays[arrays.len() - 1];
                [arrays[0], second].map(|array| &array[rows.start * len..rows.end * len])
            };
            let put = |row: usize, value| {
                output.write(row, as_python_has_it(op, kind, value));
            };
            let inputs = of(rows.clone());
            let inputs = &inputs[..arrays.len()];
            let many = Rows {
                simd,
                op,
                inputs,
                len,
                bytes,
            };
            let mut put_one = |row: usize, value| put(rows.start + row, value);
            if inside == 1 && T::rows(&many, &mut put_one) {
                return Ok(());
            }
            for row in rows {
                put(row, reducer.reduce(op, &of(row..row + 1)[..arrays.len()])?);
            }
            Ok(())
        },
    )
}

/// The reduction of a short array, of the operations and types that have a shorter way.
#[inline]
pub(super) fn short<T: Element>(op: Op, inputs: [&[T]; 2]) -> Option<Value> {
    let (len, bytes) = (inputs[0].len(), size_of_val(inputs[0]));
    let count = if op == Op::Dot { 2 } else { 1 };
    match (op, T::DTYPE) {
        _ if len == 0 => None,
        (Op::Min | Op::Argmin, _) if len <= LEAF => Some(short_extremum::<T, false>(op, inputs[0])),
        (Op::Max | Op::Argmax, _) if len <= LEAF => Some(short_extremum::<T, true>(op, inputs[0])),
        (_, DType::F32) if sums::has_row::<f32>(op, len) => {
            short_sum::<f32>(op, inputs.map(cast_slice))
        }
        (_, DType::F64) if sums::has_row::<f64>(op, len) => {
            short_sum::<f64>(op, inputs.map(cast_slice))
        }
        (_, dtype) if sums::has(op) && dtype.is_float() && count * bytes <= DIRECT_SUM => {
            T::row(Simd::detect(), op, &inputs[..count], bytes)
        }
        _ => None,
    }
}

fn short_extremum<T: Element, const MAX: bool>(op: Op, values: &[T]) -> Value {
    let mut place = [0];
    extrema::places::<T, MAX>(values, values.len(), &mut place);
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
    let most = match op {
        Op::Min | Op::Max | Op::Argmin | Op::Argmax => LONGEST_EXTREMUM,
        _ => LEAF,
    };
    if !(1..=most).contains(&len) {
        return Ok(false);
    }
    let inputs = [0, arrays.len() - 1].map(|k| &arrays[k][rows.start * len..rows.end * len]);
    match (op, T::DTYPE) {
        (Op::Min | Op::Argmin, _) => extrema_of_rows::<T, false>(op, inputs[0], len, rows, output),
        (Op::Max | Op::Argmax, _) => extrema_of_rows::<T, true>(op, inputs[0], len, rows, output),
        (_, DType::F32) if sums::has_row::<f32>(op, len) => {
            sums_of_rows::<f32, T>(op, inputs, len, rows, output)?;
        }
        (_, DType::F64) if sums::has_row::<f64>(op, len) => {
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
    extrema::places::<T, MAX>(values, len, &mut places);
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
pub(super) fn put_integers<T: Element>(
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
