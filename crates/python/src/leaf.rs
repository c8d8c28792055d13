//! Sums of floats without what a reduction of a whole array costs at its beginning: of short rows, and of many columns
//! at once. The bits are those of [`Reducer`](crosswarp::prim::Reducer), whose rule this is: leaves of 2048 elements,
//! of 128 lanes each, combined by halving, whose values are added exactly.
//!
//! A leaf whose type may be too narrow for it is not for this file: the caller takes the long way then.
#![allow(unsafe_code)] // Reason: a prefetch, which reads nothing.

use std::num::NonZeroU64;

use crosswarp::prim::leaf::{LANES, LEAF, ROWS};
use crosswarp::prim::{Float, Op, Scalar, Superaccumulator, Value};

/// Columns worked on at a time: their lanes fit into the first-level cache.
pub const WIDTH: usize = 32;
/// Rows that are asked for ahead: the hardware does not guess rows of another page.
const AHEAD: usize = 12;
/// Below it, 2^−100, a sum of squares of `f32` may have lost bits.
const LOST_BELOW: f64 = f64::from_bits((1023 - 100) << 52);

/// Whether this file has the operation.
pub fn has(op: Op) -> bool {
    matches!(op, Op::Sum | Op::Mean | Op::Norm2 | Op::Dot)
}

/// What is added for an element.
#[inline(always)]
fn term<F: Float>(op: Op, x: F, y: F) -> F {
    match op {
        Op::Norm2 => x * x,
        Op::Dot => x * y,
        _ => x,
    }
}

/// Whether a leaf's value says all of it.
#[inline(always)]
fn is_sure<F: Float>(op: Op, value: F) -> bool {
    let wide = value.as_f64();
    wide.is_finite() && (op != Op::Norm2 || size_of::<F>() == 8 || wide >= LOST_BELOW)
}

/// The reduction of a row of at most one leaf. `y` is `x` but for dot products.
#[inline]
pub fn of_short_row<F: Float + Scalar>(op: Op, x: &[F], y: &[F]) -> Option<Value> {
    if x.is_empty() || x.len() > LEAF {
        return None;
    }
    // Lanes without an element are −0.0, and adding that changes nothing: those of short rows are left out.
    let value = match x.len() {
        ..=8 => lanes_of::<F, 8>(op, x, y),
        9..=32 => lanes_of::<F, 32>(op, x, y),
        _ => lanes_of::<F, LANES>(op, x, y),
    };
    finished(op, value, x.len())
}

/// The value of a leaf with elements in the first `N` lanes only.
#[inline(always)]
fn lanes_of<F: Float, const N: usize>(op: Op, x: &[F], y: &[F]) -> F {
    let mut lanes = [F::NEG_ZERO; N];
    for (x, y) in x.chunks(N).zip(y.chunks(N)) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
            *lane = *lane + term(op, x, y);
        }
    }
    let mut half = N / 2;
    while half > 0 {
        for k in 0..half {
            lanes[k] = lanes[k] + lanes[k + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The result of one leaf of `len` elements.
fn finished<F: Float + Scalar>(op: Op, value: F, len: usize) -> Option<Value> {
    if !is_sure(op, value) {
        return None;
    }
    Some(match op {
        Op::Norm2 => F::from_f64(value.as_f64().sqrt() + 0.0).into(),
        // So many are a number of either type, and a division rounds once.
        Op::Mean if size_of::<F>() == 4 => {
            (f32::from_bits(value.to_bits64() as u32) / len as f32).into()
        }
        Op::Mean => (value.as_f64() / len as f64).into(),
        _ => value.into(),
    })
}

/// Reduces `width` columns, at most [`WIDTH`], of a matrix that begins `x` and whose rows are `stride` elements apart,
/// and hands over each result; `None` where the long way is to be taken.
pub fn of_columns<F: Float + Scalar>(
    op: Op,
    [x, y]: [&[F]; 2],
    [rows, stride, width]: [usize; 3],
    mut take: impl FnMut(usize, Option<Value>),
) {
    // Lanes without an element, which are −0.0, are left out.
    let used = rows.min(LANES).next_power_of_two();
    let mut lanes = [[F::NEG_ZERO; WIDTH]; LANES];
    let lanes = &mut lanes[..used];
    let one_leaf = rows <= LEAF;
    let mut totals = vec![Superaccumulator::<F>::new(); if one_leaf { 0 } else { width }];
    let mut sure = [true; WIDTH];
    for first in (0..rows).step_by(LANES * ROWS) {
        lanes.fill([F::NEG_ZERO; WIDTH]);
        for row in first..rows.min(first + LEAF) {
            let at = row * stride;
            prefetch(x, at + AHEAD * stride, width);
            let lane = &mut lanes[row % LANES];
            if op == Op::Dot {
                prefetch(y, at + AHEAD * stride, width);
                add::<F, 2>(lane, &x[at..at + width], &y[at..at + width]);
            } else if op == Op::Norm2 {
                add::<F, 1>(lane, &x[at..at + width], &x[at..at + width]);
            } else {
                add::<F, 0>(lane, &x[at..at + width], &x[at..at + width]);
            }
        }
        let mut half = used / 2;
        while half > 0 {
            let (low, high) = lanes.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(&*high) {
                for (low, &high) in low.iter_mut().zip(high) {
                    *low = *low + high;
                }
            }
            half /= 2;
        }
        if one_leaf {
            for (column, &value) in lanes[0][..width].iter().enumerate() {
                take(column, finished(op, value, rows));
            }
            return;
        }
        for (column, total) in totals.iter_mut().enumerate() {
            let value = lanes[0][column];
            if is_sure(op, value) {
                total.add(value);
            } else {
                sure[column] = false;
            }
        }
    }
    for (column, total) in totals.iter().enumerate() {
        let value: Option<F> = match (sure[column], op) {
            (false, _) => None,
            (_, Op::Mean) => NonZeroU64::new(rows as u64).map(|count| total.mean(count)),
            (_, Op::Norm2) => Some(F::from_f64(total.round_f64().sqrt() + 0.0)),
            _ => Some(total.round()),
        };
        // Beyond the range there is more to do for a norm.
        let value = value.filter(|value| op != Op::Norm2 || value.as_f64().is_finite());
        take(column, value.map(Into::into));
    }
}

/// Adds a row's elements, or their squares (1) or products (2), to the lane that the row belongs to.
#[inline(always)]
fn add<F: Float, const INPUTS: usize>(lane: &mut [F; WIDTH], x: &[F], y: &[F]) {
    let one = |lane: &mut F, x: F, y: F| {
        *lane = *lane
            + match INPUTS {
                0 => x,
                _ => x * y,
            };
    };
    match (<&[F; WIDTH]>::try_from(x), <&[F; WIDTH]>::try_from(y)) {
        // A whole row of vectors.
        (Ok(x), Ok(y)) => (0..WIDTH).for_each(|k| one(&mut lane[k], x[k], y[k])),
        _ => {
            for ((lane, &x), &y) in lane.iter_mut().zip(x).zip(y) {
                one(lane, x, y);
            }
        }
    }
}

/// Asks for `width` elements from `at` on, if they are there.
#[inline(always)]
fn prefetch<F>(values: &[F], at: usize, width: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(values) = values.get(at..at + width) {
        for line in values.chunks((64 / size_of::<F>()).max(1)) {
            // SAFETY: a hint; it reads nothing that the program sees.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
            }
        }
    }
}
