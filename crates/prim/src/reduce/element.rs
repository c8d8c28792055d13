//! The twelve element types, and how each forms its sums.

use half::{bf16, f16};

use crate::reduce::exchange::Exchange;
use crate::reduce::extremum::{Ranked, first_extremum};
use crate::reduce::part::Part;
use crate::reduce::rows::Rows;
use crate::reduce::{floats, integers};
use crate::sum::vector_leaf::InVectors;
use crate::{Op, ReduceError, Scalar, Simd, Value};

/// An element type of reductions: `f16`, `bf16`, `f32`, `f64`, `i8` … `i64`, `u8` … `u64`.
///
/// Sealed: a reduction's result is a contract for each type.
pub trait Element: Scalar + Ranked {
    /// The type of sums, products and dot products: `f32` for `f16` and `bf16`, `i64` or `u64` for
    /// integers.
    type Sum: Scalar;
    /// The type of means and norms: `f32` for `f16` and `bf16`, `f64` for integers.
    type Mean: Scalar;

    #[doc(hidden)]
    fn sum(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<Self::Sum, ReduceError>;
    #[doc(hidden)]
    fn exact_sum(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<Self::Sum, ReduceError>;
    #[doc(hidden)]
    fn prod(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<Self::Sum, ReduceError>;
    #[doc(hidden)]
    fn mean(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<Self::Mean, ReduceError>;
    #[doc(hidden)]
    fn norm2(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<Self::Mean, ReduceError>;
    #[doc(hidden)]
    fn dot(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<Self::Sum, ReduceError>;
    /// What [`RemotePart::partial`](crate::reduce::part::RemotePart::partial) says, of elements in host memory.
    #[doc(hidden)]
    fn partial(simd: Simd, op: Op, inputs: &[&[Self]]) -> Vec<u64>;
    /// The result of one array on this thread, without what threads and PEs need: for a small one, or one of many, whose
    /// bytes are `bytes` in all. Nothing if there is no such way, or no element.
    #[doc(hidden)]
    fn row(simd: Simd, op: Op, inputs: &[&[Self]], bytes: usize) -> Option<Value>;
    /// The same of each of many rows, by their numbers; whether there is such a way.
    #[doc(hidden)]
    fn rows(rows: &Rows<'_, Self>, take: &mut dyn FnMut(usize, Value)) -> bool;
}

macro_rules! element {
    ($body:ident, $rows:path: $($type:ident => $sum:ident, $mean:ident;)*) => {$(
        impl Element for $type {
            type Sum = $sum;
            type Mean = $mean;

            fn sum(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<$sum, ReduceError> {
                $body::sum(exchange, part).map(|sum| sum as $sum)
            }
            fn exact_sum(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<$sum, ReduceError> {
                $body::exact_sum(exchange, part).map(|sum| sum as $sum)
            }
            fn prod(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<$sum, ReduceError> {
                $body::prod(exchange, part).map(|product| product as $sum)
            }
            fn mean(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<$mean, ReduceError> {
                $body::mean(exchange, part)
            }
            fn norm2(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<$mean, ReduceError> {
                $body::norm2(exchange, part)
            }
            fn dot(exchange: &Exchange<'_>, part: &Part<'_, Self>) -> Result<$sum, ReduceError> {
                $body::dot(exchange, part).map(|sum| sum as $sum)
            }
            fn partial(simd: Simd, op: Op, inputs: &[&[Self]]) -> Vec<u64> {
                match op {
                    Op::Min | Op::Argmin => extremum_words::<Self, false>(simd, inputs[0]),
                    Op::Max | Op::Argmax => extremum_words::<Self, true>(simd, inputs[0]),
                    _ => $body::partial(simd, op, inputs),
                }
            }
            fn row(simd: Simd, op: Op, inputs: &[&[Self]], bytes: usize) -> Option<Value> {
                let values = inputs[0];
                match op {
                    Op::Min => extremum::<Self, false>(simd, values).map(|(value, _)| value.into()),
                    Op::Max => extremum::<Self, true>(simd, values).map(|(value, _)| value.into()),
                    Op::Argmin => extremum::<Self, false>(simd, values).map(|(_, place)| place.into()),
                    Op::Argmax => extremum::<Self, true>(simd, values).map(|(_, place)| place.into()),
                    _ => $body::row(simd, op, inputs, bytes, |value| Value::from(value as $sum)),
                }
            }
            fn rows(rows: &Rows<'_, Self>, take: &mut dyn FnMut(usize, Value)) -> bool {
                $rows(rows, take)
            }
        }
    )*};
}

element! { floats, rows_of_floats:
    f16 => f32, f32;
    bf16 => f32, f32;
    f32 => f32, f32;
    f64 => f64, f64;
}
element! { integers, one_by_one:
    i8 => i64, f64;
    i16 => i64, f64;
    i32 => i64, f64;
    i64 => i64, f64;
    u8 => u64, f64;
    u16 => u64, f64;
    u32 => u64, f64;
    u64 => u64, f64;
}

/// [`Element::rows`] of floats, whose sums have a loop of their own.
fn rows_of_floats<T>(rows: &Rows<'_, T>, take: &mut dyn FnMut(usize, Value)) -> bool
where
    T: Element + InVectors,
    Value: From<T::Wide>,
{
    floats::rows(rows, &mut |row, value| take(row, value.into())) || one_by_one(rows, take)
}

/// [`Element::rows`] by [`Element::row`].
fn one_by_one<T: Element>(rows: &Rows<'_, T>, take: &mut dyn FnMut(usize, Value)) -> bool {
    let Rows {
        simd,
        op,
        inputs,
        len,
        bytes,
    } = *rows;
    let count = inputs[0].len().checked_div(len).unwrap_or(0);
    for row in 0..count {
        let part = row * len..(row + 1) * len;
        let second = inputs[inputs.len() - 1];
        let inputs = [&inputs[0][part.clone()], &second[part]];
        match T::row(simd, op, &inputs[..op.inputs()], bytes) {
            Some(value) => take(row, value),
            None => return false,
        }
    }
    count > 0
}

/// The extremum and its index.
fn extremum<T: Element, const MAX: bool>(simd: Simd, values: &[T]) -> Option<(T, u64)> {
    let place = first_extremum::<T, MAX>(simd, values)?;
    Some((values[place].canonical(), place as u64))
}

/// Whether there is an extremum, its index, its bits.
fn extremum_words<T: Element, const MAX: bool>(simd: Simd, values: &[T]) -> Vec<u64> {
    let found = first_extremum::<T, MAX>(simd, values);
    found.map_or_else(
        || vec![0; 3],
        |place| vec![1, place as u64, values[place].bits()],
    )
}
