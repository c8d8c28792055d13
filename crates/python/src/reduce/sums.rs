//! Sums of floats along an axis: of short rows, and of columns. The bits are those of
//! [`Reducer`](crosswarp::prim::Reducer), whose rule this is: leaves of 2048 elements, of 128 lanes each, combined by
//! halving, whose values are added exactly.
//!
//! A leaf whose type may be too narrow for it is not for this file: the caller takes the long way then.

use std::num::NonZeroU64;

use crosswarp::prim::internal::LeafTotal;
use crosswarp::prim::leaf::{LANES, LEAF, combine_lanes};
use crosswarp::prim::{Float, Loop, Op, Simd};

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

/// Whether [`Rows`] is the way for rows of `len` elements. Rows of 31 and 256 `f32` on a Zen 4 take 15 and 81 ns by it, and 21
/// and 32 by the loop of whole arrays; of 31, 128 and 500 `f64` in the second-level cache 17, 31 and 84, and 33, 42 and 78, in
/// memory 19, 38 and 425, and 34, 51 and 134.
pub fn has_row<F: Float>(op: Op, len: usize) -> bool {
    let most = if size_of::<F>() == 4 { 32 } else { LANES };
    has(op) && (1..=most).contains(&len)
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

/// Some of the terms of two inputs, `step` elements apart, `count` of them.
#[derive(Clone, Copy)]
struct Terms<'a, F> {
    inputs: [&'a [F]; 2],
    step: usize,
    count: usize,
}

/// Where sums go: into `out`, or they are added to what is there.
const SET: bool = false;
const ADD: bool = true;

/// `out[i]` = −0.0 + the terms of `x[i]`, `x[i + step]`, …, `count` of them, in this order; [`ADD`]s it to `out[i]` if `TO`
/// says so.
#[inline(always)]
fn fold<F: Float, const TERMS: u8, const TO: bool>(out: &mut [F], terms: Terms<'_, F>) {
    // So many as eight registers of 32 bytes hold.
    let done = if size_of::<F>() == 4 {
        fold_by::<F, TERMS, TO, 64>(0, out, terms)
    } else {
        fold_by::<F, TERMS, TO, 32>(0, out, terms)
    };
    let done = fold_by::<F, TERMS, TO, 8>(done, out, terms);
    fold_by::<F, TERMS, TO, 1>(done, out, terms);
}

/// [`fold`] from `at` on, `C` at a time, as long as there are so many; up to where.
#[inline(always)]
fn fold_by<F: Float, const TERMS: u8, const TO: bool, const C: usize>(
    mut at: usize,
    out: &mut [F],
    terms: Terms<'_, F>,
) -> usize {
    let Terms {
        inputs: [x, y],
        step,
        count,
    } = terms;
    while at + C <= out.len() {
        let mut sums = [F::NEG_ZERO; C];
        for k in 0..count {
            let from = at + k * step;
            let (x, y) = (&x[from..from + C], &y[from..from + C]);
            for j in 0..C {
                sums[j] = sums[j] + term::<F, TERMS>(x[j], y[j]);
            }
        }
        let out = &mut out[at..at + C];
        for j in 0..C {
            out[j] = if TO == ADD { out[j] + sums[j] } else { sums[j] };
        }
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

/// Reduces rows of `len` elements, as many as [`has_row`] allows, one for each element of `out`. What has to be computed the
/// long way is listed.
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

/// The value of a leaf of at most [`LANES`] elements. Lanes without an element are −0.0, and adding that changes nothing:
/// those of the shortest rows are left out.
#[inline(always)]
fn leaf<F: Float, const TERMS: u8>(lanes: &mut [F; LANES], x: &[F], y: &[F]) -> F {
    match x.len() {
        ..=8 => short::<F, TERMS, 8>(x, y),
        9..=16 => short::<F, TERMS, 16>(x, y),
        17..=32 => short::<F, TERMS, 32>(x, y),
        // In registers: `short` of so many `f64` takes 1.4 to 1.6 times as long on a Zen 4.
        len => {
            let terms = Terms {
                inputs: [x, y],
                step: LANES,
                count: 1,
            };
            fold::<F, TERMS, SET>(&mut lanes[..len], terms);
            lanes[len..].fill(F::NEG_ZERO);
            combine_lanes(lanes)
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
    totals: Vec<LeafTotal<F>>,
}

impl<F: Float> Scratch<F> {
    pub fn new() -> Scratch<F> {
        Scratch {
            lanes: Vec::new(),
            totals: Vec::new(),
        }
    }

    /// Takes in what [`Columns::some_rows`] has left of other rows of the same columns.
    pub fn merge(&mut self, other: &Scratch<F>) {
        for (total, other) in self.totals.iter_mut().zip(&other.totals) {
            total.merge(other);
        }
    }

    /// From totals of `rows` rows to results, where `out` is 0; else the column is listed.
    pub fn finish(&self, op: Op, rows: usize, out: &mut [F], unsure: &mut Vec<usize>) {
        for (column, (total, out)) in self.totals.iter().zip(out).enumerate() {
            let sure = *out == F::ZERO;
            *out = match (op, NonZeroU64::new(rows as u64)) {
                (Op::Mean, Some(count)) => total.mean(count),
                (Op::Norm2, _) => total.root(),
                _ => total.round(),
            };
            if !sure {
                unsure.push(column);
            }
        }
    }
}

/// Reduces columns, one for each element of `out`, of a matrix that begins `inputs` and whose rows are `stride`
/// elements apart. What has to be computed the long way is listed.
pub struct Columns<'a, F: Float> {
    pub op: Op,
    pub inputs: [&'a [F]; 2],
    pub rows: usize,
    pub stride: usize,
    pub out: &'a mut [F],
    pub scratch: &'a mut Scratch<F>,
    pub unsure: &'a mut Vec<usize>,
}

impl<F: Float> Columns<'_, F> {
    pub fn run(self, simd: Simd) {
        match self.op {
            Op::Norm2 => self.with::<SQUARES>(simd),
            Op::Dot => self.with::<PRODUCTS>(simd),
            _ => self.with::<ELEMENTS>(simd),
        }
    }

    fn with<const TERMS: u8>(mut self, simd: Simd) {
        if self.rows <= LEAF {
            self.leaf::<TERMS>(simd, 0);
            self.out
                .copy_from_slice(&self.scratch.lanes[..self.out.len()]);
            finish(self.op, self.out, self.rows, self.unsure);
            return;
        }
        self.add_leaves::<TERMS>(simd);
        self.scratch
            .finish(self.op, self.rows, self.out, self.unsure);
    }

    /// The totals of the columns, some of whose rows these are, in `scratch`; and in `out` 1 for those that are not sure.
    pub fn some_rows(mut self, simd: Simd) {
        match self.op {
            Op::Norm2 => self.add_leaves::<SQUARES>(simd),
            Op::Dot => self.add_leaves::<PRODUCTS>(simd),
            _ => self.add_leaves::<ELEMENTS>(simd),
        }
    }

    fn add_leaves<const TERMS: u8>(&mut self, simd: Simd) {
        let totals = &mut self.scratch.totals;
        totals.clear();
        totals.resize(self.out.len(), LeafTotal::new());
        self.out.fill(F::ZERO);
        for first in (0..self.rows).step_by(LEAF) {
            self.leaf::<TERMS>(simd, first);
            let Scratch { lanes, totals } = &mut *self.scratch;
            for ((total, &value), mark) in totals.iter_mut().zip(&*lanes).zip(&mut *self.out) {
                if is_sure(self.op, value) {
                    total.add(value);
                } else {
                    *mark = F::ONE;
                }
            }
        }
    }

    /// The values of the leaf of each column that begins with row `first`, at the beginning of the lanes.
    fn leaf<const TERMS: u8>(&mut self, simd: Simd, first: usize) {
        let width = self.out.len();
        let narrow = width == self.stride && width <= NARROW;
        let kept = if narrow { LANES } else { MOST_KEPT };
        let lanes = &mut self.scratch.lanes;
        lanes.resize(kept * width, F::NEG_ZERO);
        simd.compile(LeafOfColumns::<F, TERMS> {
            lanes,
            inputs: self.inputs.map(|input| &input[first * self.stride..]),
            rows: (self.rows - first).min(LEAF),
            stride: self.stride,
            width,
            narrow,
        });
    }
}

/// The values of a leaf of each column, to the beginning of `lanes`.
struct LeafOfColumns<'a, F, const TERMS: u8> {
    lanes: &'a mut [F],
    inputs: [&'a [F]; 2],
    rows: usize,
    stride: usize,
    width: usize,
    /// Whether there are all columns, and few: `lanes` has all lanes of all columns then.
    narrow: bool,
}

impl<F: Float, const TERMS: u8> Loop for LeafOfColumns<'_, F, TERMS> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            lanes,
            inputs,
            rows,
            stride,
            width,
            narrow,
        } = self;
        if narrow {
            narrow_leaf::<F, TERMS>(lanes, inputs, rows, width);
        } else if rows <= LANES {
            few_rows::<F, TERMS>(&mut lanes[..width], inputs, rows, stride);
        } else {
            wide_leaf::<F, TERMS>(lanes, inputs, rows, stride, width);
        }
    }
}

/// Sums that [`wide_leaf`] and [`few_rows`] keep at most: one for each halving, and the one at hand.
const MOST_KEPT: usize = LANES.ilog2() as usize + 1;

/// Lanes to combine: at least half of them have a row.
fn used(rows: usize) -> usize {
    rows.min(LANES).next_power_of_two()
}

/// The lane whose turn it is in the order in which halving combines `used` of them.
fn lane_of(turn: usize, used: usize) -> usize {
    turn.reverse_bits()
        .unbounded_shr(usize::BITS - used.ilog2())
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
    let terms = |from: usize, count| Terms {
        inputs: [&x[from..], &y[from..]],
        step,
        count,
    };
    fold::<F, TERMS, SET>(&mut lanes[..more], terms(0, count + 1));
    if count > 0 {
        fold::<F, TERMS, SET>(&mut lanes[more..], terms(more, count));
    }
    let mut half = lanes.len() / 2;
    while half >= width {
        let (low, high) = lanes.split_at_mut(half);
        add(low, &high[..half]);
        half /= 2;
    }
}

/// The same of at most [`LANES`] rows, so that each lane has one: some columns after the other, whose sums stay in the
/// first-level cache.
#[inline(always)]
fn few_rows<F: Float, const TERMS: u8>(
    out: &mut [F],
    inputs: [&[F]; 2],
    rows: usize,
    stride: usize,
) {
    let mut plan = [RowPair::default(); LANES / 2];
    let plan = &mut plan[..used(rows).div_ceil(2)];
    plan_of(plan, rows);
    // Arrays of 64 the compiler copies element by element.
    let done = few_rows_by::<F, TERMS, 32>(0, out, inputs, stride, plan);
    let done = few_rows_by::<F, TERMS, 8>(done, out, inputs, stride, plan);
    few_rows_by::<F, TERMS, 1>(done, out, inputs, stride, plan);
}

/// Two rows that halving adds first, or one that has no second.
#[derive(Clone, Copy, Default)]
struct RowPair {
    first: usize,
    second: Option<usize>,
    /// Of how many sums that are kept this one is the second.
    completes: u32,
}

/// The order in which pairs of rows are taken.
fn plan_of(plan: &mut [RowPair], rows: usize) {
    let used = used(rows);
    for (k, pair) in plan.iter_mut().enumerate() {
        let first = lane_of(2 * k, used);
        let second = first + used / 2;
        *pair = RowPair {
            first,
            second: (used > 1 && second < rows).then_some(second),
            completes: k.trailing_ones(),
        };
    }
}

/// Begins with a cache line: what is read soon after it was written, a vector across two lines, would wait until it is in the
/// cache.
#[repr(align(64))]
struct Lines<T>(T);

/// [`few_rows`] from column `at` on, `C` at a time, as long as there are so many; up to where.
#[inline(always)]
#[allow(clippy::manual_memcpy)] // Reason: to copy an array is a call here.
fn few_rows_by<F: Float, const TERMS: u8, const C: usize>(
    mut at: usize,
    out: &mut [F],
    [x, y]: [&[F]; 2],
    stride: usize,
    plan: &[RowPair],
) -> usize {
    let mut kept = Lines([[F::NEG_ZERO; C]; MOST_KEPT]);
    while at + C <= out.len() {
        let mut count = 0;
        for pair in plan {
            let row = |row: usize| {
                let from = at + row * stride;
                (&x[from..from + C], &y[from..from + C])
            };
            let (x, y) = row(pair.first);
            let mut sums = [F::NEG_ZERO; C];
            for j in 0..C {
                sums[j] = sums[j] + term::<F, TERMS>(x[j], y[j]);
            }
            if let Some(second) = pair.second {
                let (x, y) = row(second);
                for j in 0..C {
                    sums[j] = sums[j] + (F::NEG_ZERO + term::<F, TERMS>(x[j], y[j]));
                }
            }
            for _ in 0..pair.completes {
                count -= 1;
                let first = &kept.0[count];
                for j in 0..C {
                    sums[j] = first[j] + sums[j];
                }
            }
            let kept = &mut kept.0[count];
            for j in 0..C {
                kept[j] = sums[j];
            }
            count += 1;
        }
        out[at..at + C].copy_from_slice(&kept.0[0]);
        at += C;
    }
    at
}

/// The same of more than [`LANES`] rows of any matrix. Lanes are taken in the order in which halving combines them, so that few
/// have to be kept.
#[inline(always)]
fn wide_leaf<F: Float, const TERMS: u8>(
    lanes: &mut [F],
    [x, y]: [&[F]; 2],
    rows: usize,
    stride: usize,
    width: usize,
) {
    let mut kept = 0;
    for turn in 0..LANES {
        let lane = lane_of(turn, LANES);
        let terms = Terms {
            inputs: [&x[lane * stride..], &y[lane * stride..]],
            step: LANES * stride,
            count: (rows - lane).div_ceil(LANES),
        };
        if turn % 2 == 0 {
            let to = &mut lanes[kept * width..(kept + 1) * width];
            fold::<F, TERMS, SET>(to, terms);
            kept += 1;
        } else {
            // To that of the turn before.
            let to = &mut lanes[(kept - 1) * width..kept * width];
            fold::<F, TERMS, ADD>(to, terms);
        }
        // Two lanes with two, these four with four, and so on.
        for _ in 1..turn.trailing_ones() {
            let (first, second) = lanes[(kept - 2) * width..kept * width].split_at_mut(width);
            add(first, second);
            kept -= 1;
        }
    }
}
