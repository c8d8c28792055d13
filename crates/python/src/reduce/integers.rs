//! Sums, means, norms and dot products of integers along an axis: of rows, and of columns. Sums are modulo 2^64; means
//! and norms are of the exact sum, as [`Reducer`](crosswarp::prim::Reducer) has them.
//!
//! A mean or norm whose sum may be beyond 2^53 is not for this file: the caller takes the long way then.

use crosswarp::prim::{Loop, Op};

/// Bytes of a row that are worked on at a time where rows are long: a page.
pub const WIDE_BYTES: usize = 4096;
/// Rows of a matrix of few columns that lie side by side in what is kept.
const FOLDED: usize = 64;
/// Columns that are few.
const NARROW: usize = 64;
/// Rows that are added at a time: what is kept is read and written once for so many. Of ten rows of 10^5 `i64` on Zen 4
/// 0.64 ms become 0.29.
const ROWS: usize = 4;
/// Below it all integers are an `f64`.
const EXACT: u128 = 1 << 53;

/// Terms are elements, squares or products.
const ELEMENTS: u8 = 0;
const SQUARES: u8 = 1;
const PRODUCTS: u8 = 2;

/// An integer type.
pub trait Integer: Copy + Send + Sync + 'static {
    /// The value modulo 2^64.
    fn wide(self) -> i64;
    /// A number with a bit for each that the absolute value may have.
    fn magnitude(self) -> u64;
}

macro_rules! integer {
    ($($signed:ident $unsigned:ident,)*) => {$(
        impl Integer for $signed {
            #[inline(always)]
            fn wide(self) -> i64 {
                self.into()
            }
            #[inline(always)]
            fn magnitude(self) -> u64 {
                let wide = i64::from(self);
                // One less of a negative one: the caller adds one.
                (wide ^ (wide >> 63)) as u64
            }
        }
        impl Integer for $unsigned {
            #[inline(always)]
            fn wide(self) -> i64 {
                u64::from(self) as i64
            }
            #[inline(always)]
            fn magnitude(self) -> u64 {
                self.into()
            }
        }
    )*};
}
integer!(i8 u8, i16 u16, i32 u32, i64 u64,);

/// Whether this file has the operation.
pub fn has(op: Op) -> bool {
    matches!(op, Op::Sum | Op::ExactSum | Op::Mean | Op::Norm2 | Op::Dot)
}

#[inline(always)]
fn term<T: Integer, const TERMS: u8>(x: T, y: T) -> i64 {
    match TERMS {
        SQUARES => x.wide().wrapping_mul(x.wide()),
        PRODUCTS => x.wide().wrapping_mul(y.wide()),
        _ => x.wide(),
    }
}

/// A sum modulo 2^64, and the bits that its elements may have.
type Total = (i64, u64);

/// The bits of the mean or norm of `count` elements; none where the sum may not be exact.
pub fn finished(op: Op, (sum, bits): Total, count: usize) -> Option<u64> {
    // As many as a power of two has.
    let most = u128::from(bits.checked_add(1)?.checked_next_power_of_two()?);
    let count_wide = count as u128;
    match op {
        Op::Mean if most * count_wide <= EXACT => Some((sum as f64 / count as f64).to_bits()),
        Op::Norm2 if most < EXACT && most * most * count_wide <= EXACT => {
            Some((sum as f64).sqrt().to_bits())
        }
        _ => None,
    }
}

/// Reduces rows of `len` elements, one for each element of `out`.
///
/// Runs best in [`Simd::compile`](crosswarp::prim::Simd::compile).
pub struct Rows<'a, T> {
    pub op: Op,
    pub inputs: [&'a [T]; 2],
    pub len: usize,
    pub out: &'a mut [Total],
}

impl<T: Integer> Loop for Rows<'_, T> {
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

impl<T: Integer> Rows<'_, T> {
    #[inline(always)]
    fn with<const TERMS: u8>(self) {
        let [x, y] = self.inputs;
        let bounded = matches!(self.op, Op::Mean | Op::Norm2);
        for (row, out) in self.out.iter_mut().enumerate() {
            let part = row * self.len..(row + 1) * self.len;
            let (x, y) = (&x[part.clone()], &y[part]);
            let (mut sum, mut bits) = (0i64, 0);
            for (&x, &y) in x.iter().zip(y) {
                sum = sum.wrapping_add(term::<T, TERMS>(x, y));
            }
            if bounded {
                for &x in x {
                    bits |= x.magnitude();
                }
            }
            *out = (sum, bits);
        }
    }
}

/// Adds totals of other elements.
pub fn merge(all: &mut [Total], others: &[Total]) {
    for ((sum, bits), other) in all.iter_mut().zip(others) {
        *sum = sum.wrapping_add(other.0);
        *bits |= other.1;
    }
}

/// What a thread needs to work on columns.
#[derive(Default)]
pub struct Scratch {
    sums: Vec<i64>,
    bits: Vec<u64>,
}

/// Reduces columns, one for each element of `out`, of a matrix that begins `inputs` and whose rows are `stride`
/// elements apart.
///
/// Runs best in [`Simd::compile`](crosswarp::prim::Simd::compile).
pub struct Columns<'a, T> {
    pub op: Op,
    pub inputs: [&'a [T]; 2],
    pub rows: usize,
    pub stride: usize,
    pub out: &'a mut [Total],
    pub scratch: &'a mut Scratch,
}

impl<T: Integer> Loop for Columns<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.op {
            Op::Norm2 => self.with::<SQUARES, true>(),
            Op::Mean => self.with::<ELEMENTS, true>(),
            Op::Dot => self.with::<PRODUCTS, false>(),
            _ => self.with::<ELEMENTS, false>(),
        }
    }
}

impl<T: Integer> Columns<'_, T> {
    #[inline(always)]
    fn with<const TERMS: u8, const BOUNDED: bool>(self) {
        let width = self.out.len();
        let narrow = width == self.stride && width <= NARROW && self.rows >= FOLDED;
        // Some rows are one long row, but for the last few.
        let (folded, long) = match narrow {
            true => (self.rows / FOLDED, FOLDED * width),
            false => (self.rows, width),
        };
        let Scratch { sums, bits } = self.scratch;
        sums.clear();
        sums.resize(long, 0);
        bits.clear();
        bits.resize(long, 0);
        let stride = if narrow { long } else { self.stride };
        add_rows::<T, TERMS, BOUNDED>(sums, bits, self.inputs, stride, folded);
        if narrow {
            let done = folded * long;
            let rest = self.inputs.map(|input| &input[done..]);
            let rows = self.rows - folded * FOLDED;
            let (sums, bits) = (&mut sums[..width], &mut bits[..width]);
            add_rows::<T, TERMS, BOUNDED>(sums, bits, rest, width, rows);
        }
        if !narrow {
            for ((out, &sum), &bits) in self.out.iter_mut().zip(&*sums).zip(&*bits) {
                *out = (sum, bits);
            }
            return;
        }
        for (column, out) in self.out.iter_mut().enumerate() {
            *out = (column..long)
                .step_by(width)
                .fold((0, 0), |(sum, all): Total, at| {
                    (sum.wrapping_add(sums[at]), all | bits[at])
                });
        }
    }
}

/// Adds `rows` rows to `sums`, and, if `BOUNDED`, the bits of their elements to `bits`.
#[inline(always)]
fn add_rows<T: Integer, const TERMS: u8, const BOUNDED: bool>(
    sums: &mut [i64],
    bits: &mut [u64],
    inputs: [&[T]; 2],
    stride: usize,
    rows: usize,
) {
    let some = rows - rows % ROWS;
    for row in (0..some).step_by(ROWS) {
        add_some::<T, TERMS, BOUNDED, ROWS>(sums, bits, inputs, stride, row);
    }
    for row in some..rows {
        add_some::<T, TERMS, BOUNDED, 1>(sums, bits, inputs, stride, row);
    }
}

/// [`add_rows`] of `R` rows from `row` on: each is read along.
#[inline(always)]
fn add_some<T: Integer, const TERMS: u8, const BOUNDED: bool, const R: usize>(
    sums: &mut [i64],
    bits: &mut [u64],
    inputs: [&[T]; 2],
    stride: usize,
    row: usize,
) {
    let width = sums.len();
    let [x, y] = inputs.map(|input| {
        let mut rows = [&input[..0]; R];
        for (k, place) in rows.iter_mut().enumerate() {
            *place = &input[(row + k) * stride..][..width];
        }
        rows
    });
    for (j, sum) in sums.iter_mut().enumerate() {
        for k in 0..R {
            *sum = sum.wrapping_add(term::<T, TERMS>(x[k][j], y[k][j]));
        }
    }
    if BOUNDED {
        for (j, bits) in bits[..width].iter_mut().enumerate() {
            for x in &x {
                *bits |= x[j].magnitude();
            }
        }
    }
}
