//! Reductions of columns.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytemuck::cast_slice;
use crosswarp::prim::leaf::LEAF;
use crosswarp::prim::{DType, Element, Float, Layout, Op, Reducer, Scalar, Simd, Transposer};
use pyo3::prelude::*;

use crate::array::{Array, Kind};
use crate::error::Failure;
use crate::numbers::{of_type, operation};
use crate::reduce::integers::Integer;
use crate::reduce::rows::put_integers;
use crate::reduce::{
    BYTES_PER_THREAD, LINE, as_python_has_it, cost, extrema, integers, of_integer_type, prepared,
    reducer, sums,
};
use crate::run::{Stop, guarded, share, threads, work};

/// Bytes of columns that are brought together at a time, so that they stay in the second-level cache.
const TILE: usize = 256 << 10;
/// Bytes of a row up to which threads have rows rather than columns: pieces of a row that are far apart are read at half the
/// rate or less.
const SHORT_ROW: usize = 4096;
/// Bytes of rows that a thread has at a time, about: between two of them it looks whether it is to stop.
const PART: usize = 16 << 20;

/// Reduces the columns of each of `count` C-contiguous matrices of `columns` columns into the elements of `output`.
///
/// Some columns at a time are brought together in the cache, and become rows there: memory is read once.
#[pyfunction]
pub(super) fn columns(
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

pub(super) fn columns_of<T: Element>(
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
    /// Threads that a reduction of elements of `T` pays for.
    fn beside<T>(&self, inputs: usize) -> usize {
        let bytes = self.shape[0] * self.output.len * size_of::<T>() * inputs;
        self.threads.min(bytes / BYTES_PER_THREAD).max(1)
    }

    /// Does `work` on some rows after the other, by all threads, and merges what it has made of them, in any order; or
    /// nothing if rows are long, or few: then tiles of columns are read well.
    fn by_rows<T, P: Send>(
        &self,
        inputs: usize,
        work: impl Fn(Range<usize>) -> P + Sync,
        merge: impl Fn(&mut P, P) + Sync,
    ) -> Result<Option<P>, Failure> {
        let [rows, columns] = self.shape;
        let beside = self.beside::<T>(inputs);
        let (leaves, row) = (rows.div_ceil(LEAF), columns * size_of::<T>());
        if beside == 1 || self.output.len > columns || row > SHORT_ROW || leaves < 2 * beside {
            return Ok(None);
        }
        let parts = (rows * row * inputs / PART).clamp(beside, leaves);
        let all = Mutex::new(None);
        let do_part = |(): &mut (), part| {
            let [from, to] = [part, part + 1].map(|k| rows.min(leaves * k / parts * LEAF));
            let made = work(from..to);
            match &mut *all.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(all) => merge(all, made),
                first => *first = Some(made),
            }
            Ok(())
        };
        share(beside, parts, self.stop, || (), do_part)?;
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

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
        let beside = self.beside::<T>(inputs);
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
        let find = |scratch: &mut _, start, rows, width| {
            Simd::detect().compile(extrema::Columns::<T, MAX, PLACES> {
                values: &values[start..],
                rows,
                stride,
                width,
                scratch,
            });
        };
        let write = |values: &[T], places: &[u32], at| {
            if PLACES {
                let places: Vec<i64> = places.iter().map(|&row| row.into()).collect();
                self.output.write_all(at, &places);
            } else {
                self.output.write_all(at, values);
            }
        };
        let some = |rows: Range<usize>| {
            let mut scratch = state();
            find(&mut scratch, rows.start * stride, rows.len(), stride);
            let first = rows.start as u32;
            scratch.rows.iter_mut().for_each(|row| *row += first);
            (scratch.values, scratch.rows)
        };
        let merge = |all: &mut (Vec<T>, Vec<u32>), some: (Vec<T>, Vec<u32>)| {
            extrema::merge::<T, MAX>((&mut all.0, &mut all.1), (&some.0, &some.1));
        };
        if let Some((values, places)) = self.by_rows::<T, _>(1, some, merge)? {
            write(&values, &places, 0);
            return Ok(());
        }
        self.each::<T, _>(extrema::WIDE_BYTES, 1, state, |scratch, start, to| {
            find(scratch, start, rows, to.len());
            write(&scratch.values, &scratch.rows, to.start);
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
        let add = |(scratch, totals): &mut (_, Vec<_>), start: usize, rows, width| {
            totals.resize(width, (0, 0));
            let inputs = [0, arrays.len() - 1].map(|k| &arrays[k][start..]);
            Simd::detect().compile(integers::Columns {
                op,
                inputs: inputs.map(cast_slice::<T, I>),
                rows,
                stride,
                out: totals,
                scratch,
            });
        };
        let write = |totals: &[_], start: usize, at| {
            let inputs = [0, arrays.len() - 1].map(|k| &arrays[k][start..]);
            put_integers(op, totals, rows, self.output, at, |column| {
                inputs.map(|input| {
                    let column = input[column..].iter().step_by(stride).take(rows);
                    column.copied().collect()
                })
            })
        };
        let some = |rows: Range<usize>| {
            let mut state = state();
            add(&mut state, rows.start * stride, rows.len(), stride);
            state.1
        };
        let merge = |all: &mut Vec<_>, some: Vec<_>| integers::merge(all, &some);
        if let Some(all) = self.by_rows::<T, _>(inputs, some, merge)? {
            return write(&all, 0, 0);
        }
        self.each::<T, _>(integers::WIDE_BYTES, inputs, state, |state, start, to| {
            add(state, start, rows, to.len());
            write(&state.1, start, to.start)
        })
    }

    /// `T` is `F`.
    fn sums<F: Float + Scalar, T: Element>(&self, op: Op, arrays: &[&[T]]) -> Result<(), Failure> {
        let [rows, stride] = self.shape;
        let state = || (sums::Scratch::<F>::new(), Vec::new(), Vec::new());
        type State<F> = (sums::Scratch<F>, Vec<F>, Vec<usize>);
        let columns = |state: &mut State<F>, start: usize, rows, width, some: bool| {
            let (scratch, out, unsure) = state;
            out.resize(width, F::ZERO);
            let inputs = [0, arrays.len() - 1].map(|k| &arrays[k][start..]);
            let columns = sums::Columns {
                op,
                inputs: inputs.map(cast_slice::<T, F>),
                rows,
                stride,
                out,
                scratch,
                unsure,
            };
            match some {
                true => columns.some_rows(Simd::detect()),
                false => columns.run(Simd::detect()),
            }
        };
        let write = |(_, out, unsure): &mut State<F>, start: usize, at| {
            self.output.write_all(at, out);
            let inputs = [0, arrays.len() - 1].map(|k| &arrays[k][start..]);
            for column in unsure.drain(..) {
                // Gathered, it goes the long way.
                let gathered = inputs.map(|input| {
                    let column = input[column..].iter().step_by(stride).take(rows);
                    column.copied().collect::<Vec<T>>()
                });
                let slices = [&gathered[0][..], &gathered[1][..]];
                let value = Reducer::new().reduce(op, &slices[..arrays.len()])?;
                self.output.write(at + column, value);
            }
            Ok(())
        };
        let some = |rows: Range<usize>| {
            let mut state = state();
            columns(&mut state, rows.start * stride, rows.len(), stride, true);
            state
        };
        let merge = |all: &mut State<F>, (scratch, marks, _): State<F>| {
            all.0.merge(&scratch);
            for (mark, its) in all.1.iter_mut().zip(marks) {
                *mark = if its == F::ZERO { *mark } else { its };
            }
        };
        if let Some(mut all) = self.by_rows::<T, _>(arrays.len(), some, merge)? {
            let (scratch, out, unsure) = &mut all;
            scratch.finish(op, rows, out, unsure);
            return write(&mut all, 0, 0);
        }
        self.each::<T, _>(sums::WIDE_BYTES, arrays.len(), state, |state, start, to| {
            columns(state, start, rows, to.len(), false);
            write(state, start, to.start)
        })
    }
}
