//! Sums of floats along an axis: of short rows, and of columns. The bits are those of
//! [`Reducer`](crosswarp::prim::Reducer), whose rule this is: leaves of 2048 elements, of 128 lanes each, combined by
//! halving, whose values are added exactly.
//!
//! A leaf whose type may be too narrow for it is not for this file: the caller takes the long way then.

use std::num::NonZeroU64;

use crosswarp::prim::leaf::{LANES, LEAF, ROWS};
use crosswarp::prim::{Float, Loop, Op, Superaccumulator};

/// Bytes of a row that are worked on at a time where rows are long: a page, so that memory is read in long pieces, and
/// what is kept of the lanes fits into the first-level cache.
pub const WIDE_BYTES: usize = 4096;
/// Columns of a matrix that is narrow: its lanes, side by side, stay in the second-level cache.
pub const NARROW: usize = 64;
/// Below it, 2^−100, a sum of squares of `f32` may have lost bits.
const LOST_BELOW: f64 = f64::from_bits((1023 - 100) << 52);

/// Terms are elements, squares or products.
const ELEMENTS: u8 = 0;
const SQUARES: u8 = 1;
const PRODUCTS: u8 = 2;

/// Whether this file has the operation.
pub fn has(op: Op) -> bool {
    matches!(op, Op::Sum | Op::Mean | Op::Norm2 | Op::Dot)
}

/// What is added for an element.
#[inline(always)]
fn term<F: Float, const TERMS: u8>(x: F, y: F) -> F {
    match TERMS {
        SQUARES => x * x,
        PRODUCTS => x * y,
        _ => x,
    }
}

/// Whether a leaf's value says all of it.
#[inline(always)]
fn is_sure<F: Float>(op: Op, value: F) -> bool {
    let wide = value.as_f64();
    wide.is_finite() && (op != Op::Norm2 || size_of::<F>() == 8 || wide >= LOST_BELOW)
}

/// `out[i]` = −0.0 + the terms of `x[i]`, `x[i + step]`, …, `count` of them, in this order.
#[inline(always)]
fn fold<F: Float, const TERMS: u8>(out: &mut [F], x: &[F], y: &[F], step: usize, count: usize) {
    // So many as eight registers of 32 bytes hold.
    let done = if size_of::<F>() == 4 {
        fold_by::<F, TERMS, 64>(0, out, x, y, step, count)
    } else {
        fold_by::<F, TERMS, 32>(0, out, x, y, step, count)
    };
    let done = fold_by::<F, TERMS, 8>(done, out, x, y, step, count);
    fold_by::<F, TERMS, 1>(done, out, x, y, step, count);
}

/// [`fold`] from `at` on, `C` at a time, as long as there are so many; up to where.
#[inline(always)]
fn fold_by<F: Float, const TERMS: u8, const C: usize>(
    mut at: usize,
    out: &mut [F],
    x: &[F],
    y: &[F],
    step: usize,
    count: usize,
) -> usize {
    while at + C <= out.len() {
        let mut sums = [F::NEG_ZERO; C];
        for k in 0..count {
            let from = at + k * step;
            let (x, y) = (&x[from..from + C], &y[from..from + C]);
            for j in 0..C {
                sums[j] = sums[j] + term::<F, TERMS>(x[j], y[j]);
            }
        }
        out[at..at + C].copy_from_slice(&sums);
        at += C;
    }
    at
}

/// Adds `from` to `to`.
#[inline(always)]
fn add<F: Float>(to: &mut [F], from: &[F]) {
    for (to, &from) in to.iter_mut().zip(from) {
        *to = *to + from;
    }
}

/// Reduces rows of `len` elements, at most a leaf each, one for each element of `out`. What has to be computed the long
/// way is listed.
///
/// Runs best in [`Simd::compile`](crosswarp::prim::Simd::compile).
pub struct Rows<'a, F> {
    pub op: Op,
    pub inputs: [&'a [F]; 2],
    pub len: usize,
    pub out: &'a mut [F],
    pub unsure: &'a mut Vec<usize>,
}

impl<F: Float> Loop for Rows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.op {
            Op::Norm2 => self.with::<SQUARES>(),
            Op::Dot => self.with::<PRODUCTS>(),
            _ => self.with::<ELEMENTS>(),
        }
    }
}

impl<F: Float> Rows<'_, F> {
    #[inline(always)]
    fn with<const TERMS: u8>(self) {
        let [x, y] = self.inputs;
        let mut lanes = [F::NEG_ZERO; LANES];
        for (row, out) in self.out.iter_mut().enumerate() {
            let part = row * self.len..(row + 1) * self.len;
            *out = leaf::<F, TERMS>(&mut lanes, &x[part.clone()], &y[part]);
        }
        finish(self.op, self.out, self.len, self.unsure);
    }
}

/// The value of a leaf. Lanes without an element are −0.0, and adding that changes nothing: those of short rows are
/// left out.
#[inline(always)]
fn leaf<F: Float, const TERMS: u8>(lanes: &mut [F; LANES], x: &[F], y: &[F]) -> F {
    match x.len() {
        ..=8 => short::<F, TERMS, 8>(x, y),
        9..=16 => short::<F, TERMS, 16>(x, y),
        17..=32 => short::<F, TERMS, 32>(x, y),
        len => {
            let more = len % LANES;
            fold::<F, TERMS>(&mut lanes[..more], x, y, LANES, len / LANES + 1);
            fold::<F, TERMS>(
                &mut lanes[more..],
                &x[more..],
                &y[more..],
                LANES,
                len / LANES,
            );
            halved(lanes)
        }
    }
}

/// [`leaf`] of at most `N` elements.
#[inline(always)]
fn short<F: Float, const TERMS: u8, const N: usize>(x: &[F], y: &[F]) -> F {
    let mut lanes = [F::NEG_ZERO; N];
    for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
        *lane = *lane + term::<F, TERMS>(x, y);
    }
    halved(&mut lanes)
}

#[inline(always)]
fn halved<F: Float, const N: usize>(lanes: &mut [F; N]) -> F {
    let mut half = N / 2;
    while half > 0 {
        for k in 0..half {
            lanes[k] = lanes[k] + lanes[k + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// From leaves' values to results, each of one leaf of `len` elements.
#[inline(always)]
fn finish<F: Float>(op: Op, values: &mut [F], len: usize, unsure: &mut Vec<usize>) {
    // Without a branch in it, for the many that are sure.
    let sure = values
        .iter()
        .fold(true, |sure, &value| sure & is_sure(op, value));
    if !sure {
        let places = values.iter().enumerate();
        unsure.extend(
            places
                .filter(|(_, value)| !is_sure(op, **value))
                .map(|(k, _)| k),
        );
    }
    match op {
        Op::Norm2 => {
            for value in values {
                *value = F::from_f64(value.as_f64().sqrt() + 0.0);
            }
        }
        Op::Mean => {
            // So many are a number of either type, and a division rounds once; that of two `f32` in `f64`, which has
            // more than twice their digits, and then to `f32`, rounds as one.
            for value in values {
                *value = F::from_f64(value.as_f64() / len as f64);
            }
        }
        _ => {}
    }
}

/// What a thread needs to work on columns.
pub struct Scratch<F: Float> {
    /// Lanes, in part combined.
    lanes: Vec<F>,
    totals: Vec<Superaccumulator<F>>,
}

impl<F: Float> Scratch<F> {
    pub fn new() -> Scratch<F> {
        Scratch {
            lanes: Vec::new(),
            totals: Vec::new(),
        }
    }
}

/// Reduces columns, one for each element of `out`, of a matrix that begins `inputs` and whose rows are `stride`
/// elements apart. What has to be computed the long way is listed.
///
/// Runs best in [`Simd::compile`](crosswarp::prim::Simd::compile).
pub struct Columns<'a, F: Float> {
    pub op: Op,
    pub inputs: [&'a [F]; 2],
    pub rows: usize,
    pub stride: usize,
    pub out: &'a mut [F],
    pub scratch: &'a mut Scratch<F>,
    pub unsure: &'a mut Vec<usize>,
}

impl<F: Float> Loop for Columns<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.op {
            Op::Norm2 => self.with::<SQUARES>(),
            Op::Dot => self.with::<PRODUCTS>(),
            _ => self.with::<ELEMENTS>(),
        }
    }
}

impl<F: Float> Columns<'_, F> {
    #[inline(always)]
    fn with<const TERMS: u8>(self) {
        let width = self.out.len();
        let Scratch { lanes, totals } = self.scratch;
        let narrow = width == self.stride && width <= NARROW;
        let kept = if narrow { LANES } else { MOST_KEPT };
        lanes.resize(kept * width, F::NEG_ZERO);
        let [x, y] = self.inputs;
        let values = |lanes: &mut [F], first: usize| {
            let rows = (self.rows - first).min(LEAF);
            let (x, y) = (&x[first * self.stride..], &y[first * self.stride..]);
            if narrow {
                narrow_leaf::<F, TERMS>(lanes, [x, y], rows, width);
            } else {
                wide_leaf::<F, TERMS>(lanes, [x, y], rows, self.stride, width);
            }
        };
        if self.rows <= LEAF {
            values(lanes, 0);
            self.out.copy_from_slice(&lanes[..width]);
            finish(self.op, self.out, self.rows, self.unsure);
            return;
        }
        totals.clear();
        totals.resize(width, Superaccumulator::new());
        self.out.fill(F::ZERO);
        for first in (0..self.rows).step_by(LANES * ROWS) {
            values(lanes, first);
            for ((total, &value), mark) in totals.iter_mut().zip(&*lanes).zip(&mut *self.out) {
                if is_sure(self.op, value) {
                    total.add(value);
                } else {
                    *mark = F::ONE;
                }
            }
        }
        for (column, (total, out)) in totals.iter().zip(self.out).enumerate() {
            let sure = *out == F::ZERO;
            *out = match (self.op, NonZeroU64::new(self.rows as u64)) {
                (Op::Mean, Some(count)) => total.mean(count),
                (Op::Norm2, _) => F::from_f64(total.round_f64().sqrt() + 0.0),
                _ => total.round(),
            };
            // Beyond the range there is more to do for a norm.
            if !sure || self.op == Op::Norm2 && !out.as_f64().is_finite() {
                self.unsure.push(column);
            }
        }
    }
}

/// Sums that [`wide_leaf`] keeps at most: one for each halving, and the one at hand.
const MOST_KEPT: usize = LANES.ilog2() as usize + 1;

/// Lanes to combine: at least half of them have a row.
fn used(rows: usize) -> usize {
    rows.min(LANES).next_power_of_two()
}

/// The values of a leaf of each column, at the beginning of `lanes`, of a matrix without gaps between its rows.
#[inline(always)]
fn narrow_leaf<F: Float, const TERMS: u8>(
    lanes: &mut [F],
    [x, y]: [&[F]; 2],
    rows: usize,
    width: usize,
) {
    let lanes = &mut lanes[..used(rows) * width];
    // All rows of a lane lie a constant number of elements apart, and so do their neighbours.
    let (count, more) = (rows / LANES, rows % LANES * width);
    let step = LANES * width;
    lanes.fill(F::NEG_ZERO);
    fold::<F, TERMS>(&mut lanes[..more], x, y, step, count + 1);
    if count > 0 {
        fold::<F, TERMS>(&mut lanes[more..], &x[more..], &y[more..], step, count);
    }
    let mut half = lanes.len() / 2;
    while half >= width {
        let (low, high) = lanes.split_at_mut(half);
        add(low, &high[..half]);
        half /= 2;
    }
}

/// The same of any matrix. Lanes are taken in the order in which halving combines them, so that few have to be kept.
#[inline(always)]
fn wide_leaf<F: Float, const TERMS: u8>(
    lanes: &mut [F],
    [x, y]: [&[F]; 2],
    rows: usize,
    stride: usize,
    width: usize,
) {
    let used = used(rows);
    let bits = used.ilog2();
    let mut kept = 0;
    for turn in 0..used {
        let lane = turn.reverse_bits().unbounded_shr(usize::BITS - bits);
        let mut is_there = lane < rows;
        if is_there {
            let (x, y) = (&x[lane * stride..], &y[lane * stride..]);
            let count = (rows - lane).div_ceil(LANES);
            fold::<F, TERMS>(
                &mut lanes[kept * width..(kept + 1) * width],
                x,
                y,
                LANES * stride,
                count,
            );
            kept += 1;
        }
        // A lane with its partner, these two with theirs, and so on; the second of a pair may have no rows.
        for _ in 0..turn.trailing_ones() {
            if is_there {
                let (first, second) = lanes[(kept - 2) * width..kept * width].split_at_mut(width);
                add(first, second);
                kept -= 1;
            }
            is_there = true;
        }
    }
}
