//! Reductions of floats: leaf by leaf into the superaccumulator.

use std::num::NonZeroU64;
use std::ops::Range;

use crate::reduce::exchange::Exchange;
use crate::reduce::part::Part;
use crate::reduce::rows::Rows;
use crate::sum::leaf::LEAF;
use crate::sum::leaf_total::LeafTotal;
use crate::sum::vector_leaf::{
    Distance, InVectors, LeafOp, Product, Sum, SumOfProducts, SumOfSquares, leaf_result,
    leaf_results,
};
use crate::threads::{Cost, Workers};
use crate::{Float, Op, ReduceError, Scalar, Simd, Value};

/// Leaf results taken at once, so that adding them does not stall the loop over the elements:
/// at 2^16 `f32` on Zen 5, 148 GB/s one by one, 199 eight at a time.
const BATCH: usize = 32;

/// The exact total of the leaf results of all PEs. `op`: what a GPU calls `O`.
fn total<T: InVectors + Scalar, O: LeafOp>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
    op: Op,
) -> Result<LeafTotal<T::Wide>, ReduceError> {
    // All leaves are this PE's, and the last one need not be whole.
    if let (Part::Host(inputs), true) = (part, exchange.is_alone()) {
        return Ok(total_of_slices::<T, O>(exchange.workers, inputs));
    }
    let simd = exchange.workers.simd;
    let leaves = exchange.own_leaves(part)?;
    let mine = match part {
        Part::Host(inputs) => {
            let whole: Vec<_> = inputs
                .iter()
                .map(|input| &input[leaves.whole.clone()])
                .collect();
            Ok(total_of_slices::<T, O>(exchange.workers, &whole))
        }
        Part::Remote(part) => part
            .partial(op, leaves.whole)
            .map(|words| LeafTotal::from_words(&words)),
    };
    let mine = leaves.failure.map_or(mine, Err);
    let mine = mine.map(|mut sum| {
        if !leaves.last[0].is_empty() {
            let last: Vec<_> = leaves.last.iter().map(|values| &values[..]).collect();
            let value = leaf_result::<T, O>(simd, &last, Distance::Near);
            sum.add_leaf::<T, O>(value, &last);
        }
        sum
    });
    combine_pes(exchange, mine)
}

/// The exact total of the leaf results of arrays.
fn total_of_slices<T: InVectors, O: LeafOp>(
    workers: Workers<'_>,
    inputs: &[&[T]],
) -> LeafTotal<T::Wide> {
    let distance = Distance::of(size_of_val(inputs[0]), O::INPUTS);
    let bytes = size_of::<T>() * O::INPUTS;
    let sums = workers.split(Cost::Streaming, bytes, inputs[0].len(), |part| {
        let mut sum = LeafTotal::new();
        add_leaves::<T, O>(&mut sum, workers.simd, inputs, part, distance);
        sum
    });
    merge(&sums)
}

/// Adds the leaf results of elements `part`, which begin with a leaf. The last leaf may not be whole.
#[inline(always)]
fn add_leaves<T: InVectors, O: LeafOp>(
    sum: &mut LeafTotal<T::Wide>,
    simd: Simd,
    inputs: &[&[T]],
    part: Range<usize>,
    distance: Distance,
) {
    let mut results = [<T::Wide as Float>::NEG_ZERO; BATCH];
    for start in part.clone().step_by(BATCH * LEAF) {
        let end = (start + BATCH * LEAF).min(part.end);
        let batch = [0, O::INPUTS - 1].map(|k| &inputs[k][start..end]);
        let results = &mut results[..(end - start).div_ceil(LEAF)];
        leaf_results::<T, O>(simd, &batch[..O::INPUTS], end - start, distance, results);
        for (k, &value) in results.iter().enumerate() {
            let leaf = k * LEAF..((k + 1) * LEAF).min(end - start);
            let leaf = batch.map(|input| &input[leaf.clone()]);
            sum.add_leaf::<T, O>(value, &leaf[..O::INPUTS]);
        }
    }
}

/// [`Element::row`](crate::Element::row) of all but extrema; `value` makes a value of a result.
pub fn row<T: InVectors + Scalar>(
    simd: Simd,
    op: Op,
    inputs: &[&[T]],
    bytes: usize,
    value: fn(T::Wide) -> Value,
) -> Option<Value> {
    let count = NonZeroU64::new(inputs[0].len() as u64)?;
    Some(value(match op {
        Op::Sum => total_of_row::<T, Sum>(simd, inputs, bytes).round(),
        Op::Mean => total_of_row::<T, Sum>(simd, inputs, bytes).mean(count),
        Op::Norm2 => total_of_row::<T, SumOfSquares>(simd, inputs, bytes).root(),
        Op::Dot => total_of_row::<T, SumOfProducts>(simd, inputs, bytes).round(),
        _ => return None,
    }))
}

/// The exact total of the leaf results of an array.
fn total_of_row<T: InVectors, O: LeafOp>(
    simd: Simd,
    inputs: &[&[T]],
    bytes: usize,
) -> LeafTotal<T::Wide> {
    let mut sum = LeafTotal::new();
    let distance = Distance::of(bytes, O::INPUTS);
    add_leaves::<T, O>(&mut sum, simd, inputs, 0..inputs[0].len(), distance);
    sum
}

/// [`Element::rows`](crate::Element::rows) of sums.
pub fn rows<T: InVectors + Scalar>(
    rows: &Rows<'_, T>,
    take: &mut dyn FnMut(usize, T::Wide),
) -> bool {
    let Some(count) = NonZeroU64::new(rows.len as u64) else {
        return false;
    };
    match rows.op {
        Op::Sum => totals_of_rows::<T, Sum>(rows, |k, sum| take(k, sum.round())),
        Op::Mean => totals_of_rows::<T, Sum>(rows, |k, sum| take(k, sum.mean(count))),
        Op::Norm2 => totals_of_rows::<T, SumOfSquares>(rows, |k, sum| take(k, sum.root())),
        Op::Dot => totals_of_rows::<T, SumOfProducts>(rows, |k, sum| take(k, sum.round())),
        _ => return false,
    }
    true
}

/// The exact totals of the leaf results of rows. Leaves of some rows come first, so that what is done with them does not stall
/// the loop over the elements.
fn totals_of_rows<T: InVectors, O: LeafOp>(
    rows: &Rows<'_, T>,
    mut take: impl FnMut(usize, LeafTotal<T::Wide>),
) {
    let Rows {
        simd,
        inputs,
        len,
        bytes,
        ..
    } = *rows;
    let (rows, leaves) = (inputs[0].len() / len, len.div_ceil(LEAF));
    let part = |from: usize, to: usize| [0, O::INPUTS - 1].map(|k| &inputs[k][from..to]);
    if leaves > BATCH {
        for row in 0..rows {
            let of_row = part(row * len, (row + 1) * len);
            take(row, total_of_row::<T, O>(simd, &of_row[..O::INPUTS], bytes));
        }
        return;
    }
    let distance = Distance::of(bytes, O::INPUTS);
    let mut results = [<T::Wide as Float>::NEG_ZERO; BATCH];
    let at_once = BATCH / leaves;
    for first in (0..rows).step_by(at_once) {
        let some = first..rows.min(first + at_once);
        let of_some = part(some.start * len, some.end * len);
        let results = &mut results[..some.len() * leaves];
        leaf_results::<T, O>(simd, &of_some[..O::INPUTS], len, distance, results);
        for (row, results) in some.zip(results.chunks_exact(leaves)) {
            let mut sum = LeafTotal::new();
            for (leaf, &value) in results.iter().enumerate() {
                let end = (row * len + (leaf + 1) * LEAF).min((row + 1) * len);
                let of_leaf = part(row * len + leaf * LEAF, end);
                sum.add_leaf::<T, O>(value, &of_leaf[..O::INPUTS]);
            }
            take(row, sum);
        }
    }
}

/// The exact total of elements.
fn exact_total<T: InVectors>(workers: Workers<'_>, values: &[T]) -> LeafTotal<T::Wide> {
    let sums = workers.split(Cost::Slow, size_of::<T>(), values.len(), |part| {
        let mut sum = LeafTotal::new();
        sum.extend(values[part].iter().map(|value| value.widen()));
        sum
    });
    merge(&sums)
}

/// The products of whole leaves.
fn leaf_products<T: InVectors>(workers: Workers<'_>, whole: &[T]) -> Vec<T::Wide> {
    let distance = Distance::of(size_of_val(whole), 1);
    let products = workers.split(Cost::Streaming, size_of::<T>(), whole.len(), |part| {
        let mut products = vec![T::Wide::ONE; part.len() / LEAF];
        leaf_results::<T, Product>(workers.simd, &[&whole[part]], LEAF, distance, &mut products);
        products
    });
    products.concat()
}

/// [`Element::partial`](crate::Element::partial) of all but extrema.
pub fn partial<T: InVectors + Scalar>(simd: Simd, op: Op, inputs: &[&[T]]) -> Vec<u64> {
    let workers = Workers::of(simd);
    match op {
        Op::ExactSum => exact_total(workers, inputs[0]).to_words(),
        Op::Norm2 => total_of_slices::<T, SumOfSquares>(workers, inputs).to_words(),
        Op::Dot => total_of_slices::<T, SumOfProducts>(workers, inputs).to_words(),
        Op::Prod => leaf_products(workers, inputs[0])
            .into_iter()
            .map(<T::Wide as Float>::to_bits64)
            .collect(),
        _ => total_of_slices::<T, Sum>(workers, inputs).to_words(),
    }
}

/// Merges the totals of all threads.
fn merge<F: Float>(parts: &[LeafTotal<F>]) -> LeafTotal<F> {
    let mut sum = parts[0].clone();
    parts[1..].iter().for_each(|part| sum.merge(part));
    sum
}

/// Merges the totals of all PEs.
fn combine_pes<F: Float>(
    exchange: &Exchange<'_>,
    mine: Result<LeafTotal<F>, ReduceError>,
) -> Result<LeafTotal<F>, ReduceError> {
    if exchange.is_alone() {
        return mine;
    }
    let words = mine.map(|sum| sum.to_words());
    let all = exchange.gather(LeafTotal::<F>::WORDS, words)?;
    let all: Vec<_> = all
        .iter()
        .map(|words| LeafTotal::from_words(words))
        .collect();
    Ok(merge(&all))
}

/// The sum, rounded; +0 of no elements.
fn rounded<F: Float>(exchange: &Exchange<'_>, total: &LeafTotal<F>) -> F {
    if exchange.total() == 0 {
        F::ZERO
    } else {
        total.round()
    }
}

pub fn sum<T: InVectors + Scalar>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
) -> Result<T::Wide, ReduceError> {
    let sum = total::<T, Sum>(exchange, part, Op::Sum)?;
    Ok(rounded(exchange, &sum))
}

pub fn dot<T: InVectors + Scalar>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
) -> Result<T::Wide, ReduceError> {
    let sum = total::<T, SumOfProducts>(exchange, part, Op::Dot)?;
    Ok(rounded(exchange, &sum))
}

pub fn mean<T: InVectors + Scalar>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
) -> Result<T::Wide, ReduceError> {
    let count = NonZeroU64::new(exchange.total()).ok_or(ReduceError::Empty { op: Op::Mean })?;
    Ok(total::<T, Sum>(exchange, part, Op::Sum)?.mean(count))
}

pub fn norm2<T: InVectors + Scalar>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
) -> Result<T::Wide, ReduceError> {
    Ok(total::<T, SumOfSquares>(exchange, part, Op::Norm2)?.root())
}

pub fn exact_sum<T: InVectors + Scalar>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
) -> Result<T::Wide, ReduceError> {
    let mine = match part {
        Part::Host(inputs) => Ok(exact_total(exchange.workers, inputs[0])),
        Part::Remote(part) => part
            .partial(Op::ExactSum, 0..part.len(0))
            .map(|words| LeafTotal::from_words(&words)),
    };
    Ok(rounded(exchange, &combine_pes(exchange, mine)?))
}

pub fn prod<T: InVectors + Scalar>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
) -> Result<T::Wide, ReduceError>
where
    T::Wide: InVectors<Wide = T::Wide> + Scalar,
{
    let simd = exchange.workers.simd;
    let leaves = exchange.own_leaves(part)?;
    let products = match part {
        Part::Host(inputs) => {
            let whole = &inputs[0][leaves.whole.clone()];
            Ok(leaf_products(exchange.workers, whole))
        }
        Part::Remote(part) => part.partial(Op::Prod, leaves.whole).map(|words| {
            words
                .into_iter()
                .map(<T::Wide as Float>::from_bits64)
                .collect()
        }),
    };
    let products = leaves.failure.map_or(products, Err);
    let products = products.map(|mut products: Vec<T::Wide>| {
        if !leaves.last[0].is_empty() {
            let last = [&leaves.last[0][..]];
            products.push(leaf_result::<T, Product>(simd, &last, Distance::Near));
        }
        products
    });
    let mut products = exchange.gather_leaves(products)?;
    while products.len() > 1 {
        let leaf = |values: &[_]| leaf_result::<T::Wide, Product>(simd, &[values], Distance::Near);
        products = products.chunks(LEAF).map(leaf).collect();
    }
    Ok(products
        .first()
        .copied()
        .unwrap_or(T::Wide::ONE)
        .canonical())
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;
    use crate::{Element, Reducer};

    /// Rows of `len` elements, the last of which are special, have the bits of arrays.
    fn check<T: Element + InVectors>(len: usize, of: impl Fn(f64) -> T) {
        const ROWS: usize = 37;
        let value = |at: usize| match (at / len, at % len) {
            (30, _) => -0.0,
            (31, 7) => f64::NAN,
            (32, 3 | 5) => f64::INFINITY,
            (33, k) => f64::MAX * if k % 2 == 0 { 0.9 } else { 0.8 },
            (34, k) => 2f64.powi(-140 - (k % 9) as i32),
            (35, k) => f64::from(1 << (k % 20)) * if k % 3 == 0 { -1e30 } else { 1e-30 },
            (_, k) => ((at * 7 + k) as f64).sin(),
        };
        let x: Vec<T> = (0..ROWS * len).map(|at| of(value(at))).collect();
        let y: Vec<T> = (0..ROWS * len).map(|at| of((at as f64).cos())).collect();
        for simd in Simd::available() {
            let reducer = Reducer::new().simd(simd);
            for op in [Op::Sum, Op::Mean, Op::Norm2, Op::Dot, Op::Max] {
                for bytes in [0, 100 << 20] {
                    let inputs = [&x[..], &y];
                    let inputs = &inputs[..op.inputs()];
                    let mut found = Vec::new();
                    let mut take = |row: usize, value: Value| {
                        assert_eq!(row, found.len());
                        found.push(value.bits());
                    };
                    let rows = Rows {
                        simd,
                        op,
                        inputs,
                        len,
                        bytes,
                    };
                    assert!(T::rows(&rows, &mut take));
                    for (row, &found) in found.iter().enumerate() {
                        let part = |input: &'_ &'_ [T]| input[row * len..(row + 1) * len].to_vec();
                        let alone: Vec<_> = inputs.iter().map(part).collect();
                        let alone: Vec<_> = alone.iter().map(|input| &input[..]).collect();
                        // By a call of a reducer, as of an array.
                        let exact = reducer.reduce_part(op, &Part::Host(alone)).unwrap();
                        assert_eq!(
                            found,
                            exact.bits(),
                            "{op} of row {row}, {len} elements, {simd}"
                        );
                    }
                    assert_eq!(found.len(), ROWS);
                }
            }
        }
    }

    #[test]
    fn rows_have_the_bits_of_arrays() {
        for len in [1, 129, LEAF, LEAF + 1, 5000] {
            check(len, |x| x);
            check(len, |x| x as f32);
            check(len, f16::from_f64);
        }
        // More leaves than a batch has.
        check(BATCH * LEAF + 100, |x| x as f32);
    }
}
