//! Reductions of integers: exactly, in 192 bits or modulo 2^64.

use std::num::NonZeroU64;
use std::ops::Range;

use crate::reduce::exchange::Exchange;
use crate::reduce::integer_total::{
    Integer, IntegerDot, IntegerProduct, IntegerSquares, IntegerSum, IntegerSumModulo, IntegerTotal,
};
use crate::reduce::part::Part;
use crate::simd::Work;
use crate::threads::Cost;
use crate::{Op, ReduceError, Simd, Value};

/// The exact total over all PEs of what `work` makes of each thread's part of the values, or what a
/// GPU calls `op`.
fn total<'v, T: Integer, W: Work<Output = IntegerTotal>>(
    exchange: &Exchange<'_>,
    part: &Part<'v, T>,
    op: Op,
    work: impl Fn(&'v [T]) -> W + Sync,
) -> Result<IntegerTotal, ReduceError> {
    let mine = match part {
        Part::Host(inputs) => {
            let (values, simd) = (inputs[0], exchange.workers.simd);
            let (bytes, len) = (size_of::<T>(), values.len());
            let parts = exchange.workers.split(Cost::Streaming, bytes, len, |part| {
                simd.run(work(&values[part]))
            });
            let mut sum = IntegerTotal::default();
            parts.iter().for_each(|part| sum.merge(part));
            Ok(sum.words.to_vec())
        }
        Part::Remote(part) => part.partial(op, 0..part.len(0)),
    };
    let mut all = IntegerTotal::default();
    for words in exchange.gather(3, mine)? {
        all.merge(&IntegerTotal::from_words(&words));
    }
    Ok(all)
}

/// Combines one word per thread, then one per PE.
fn combine<T: Integer>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
    op: Op,
    work: impl Fn(&[&[T]], Range<usize>) -> u64 + Sync,
    combine: fn(u64, u64) -> u64,
    identity: u64,
) -> Result<u64, ReduceError> {
    let mine = match part {
        Part::Host(inputs) => {
            let (bytes, len) = (size_of::<T>() * inputs.len(), inputs[0].len());
            let work = |part| work(inputs, part);
            let parts = exchange.workers.split(Cost::Streaming, bytes, len, work);
            Ok(vec![parts.into_iter().fold(identity, combine)])
        }
        Part::Remote(part) => part.partial(op, 0..part.len(0)),
    };
    let all = exchange.gather(1, mine)?;
    Ok(all
        .into_iter()
        .map(|words| words[0])
        .fold(identity, combine))
}

/// [`Element::row`](crate::Element::row) of all but extrema; `wrapped` makes a value of a number modulo 2^64.
pub fn row<T: Integer>(
    simd: Simd,
    op: Op,
    inputs: &[&[T]],
    _: usize,
    wrapped: fn(u64) -> Value,
) -> Option<Value> {
    let count = NonZeroU64::new(inputs[0].len() as u64)?;
    Some(match op {
        Op::Mean => simd.run(IntegerSum(inputs[0])).mean(count).into(),
        Op::Norm2 => simd.run(IntegerSquares(inputs[0])).round().sqrt().into(),
        Op::Prod => wrapped(simd.run(IntegerProduct(inputs[0]))),
        Op::Dot => wrapped(simd.run(IntegerDot(inputs[0], inputs[1]))),
        _ => wrapped(simd.run(IntegerSumModulo(inputs[0])).wrapped()),
    })
}

/// [`Element::partial`](crate::Element::partial) of all but extrema.
pub fn partial<T: Integer>(simd: Simd, op: Op, inputs: &[&[T]]) -> Vec<u64> {
    match op {
        Op::Norm2 => simd.run(IntegerSquares(inputs[0])).words.to_vec(),
        Op::Prod => vec![simd.run(IntegerProduct(inputs[0]))],
        Op::Dot => vec![simd.run(IntegerDot(inputs[0], inputs[1]))],
        _ => simd.run(IntegerSum(inputs[0])).words.to_vec(),
    }
}

pub fn sum<T: Integer>(exchange: &Exchange<'_>, part: &Part<'_, T>) -> Result<u64, ReduceError> {
    Ok(total(exchange, part, Op::Sum, IntegerSumModulo)?.wrapped())
}

pub fn exact_sum<T: Integer>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
) -> Result<u64, ReduceError> {
    sum(exchange, part)
}

pub fn mean<T: Integer>(exchange: &Exchange<'_>, part: &Part<'_, T>) -> Result<f64, ReduceError> {
    let count = NonZeroU64::new(exchange.total()).ok_or(ReduceError::Empty { op: Op::Mean })?;
    Ok(total(exchange, part, Op::Sum, IntegerSum)?.mean(count))
}

pub fn norm2<T: Integer>(exchange: &Exchange<'_>, part: &Part<'_, T>) -> Result<f64, ReduceError> {
    Ok(total(exchange, part, Op::Norm2, IntegerSquares)?
        .round()
        .sqrt())
}

pub fn prod<T: Integer>(exchange: &Exchange<'_>, part: &Part<'_, T>) -> Result<u64, ReduceError> {
    let simd = exchange.workers.simd;
    let work = |inputs: &[&[T]], range| simd.run(IntegerProduct(&inputs[0][range]));
    combine(exchange, part, Op::Prod, work, u64::wrapping_mul, 1)
}

pub fn dot<T: Integer>(exchange: &Exchange<'_>, part: &Part<'_, T>) -> Result<u64, ReduceError> {
    let simd = exchange.workers.simd;
    let work = |inputs: &[&[T]], range: Range<usize>| {
        simd.run(IntegerDot(&inputs[0][range.clone()], &inputs[1][range]))
    };
    combine(exchange, part, Op::Dot, work, u64::wrapping_add, 0)
}
