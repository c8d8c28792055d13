//! Results of many leaves at once, with the machine's vectors.
#![allow(unsafe_code)] // Reason: raw loads in the innermost loop, and the vectors' unsafe functions.

use half::{bf16, f16};

use crate::Float;
use crate::simd::{Isa, Load, MAX_WIDTH, Simd, Vector, Work, prefetch};
use crate::sum::leaf::{LANES, LEAF, ROWS};

/// Most registers that hold the 128 lanes: with 2 lanes each.
const MAX_REGISTERS: usize = LANES / 2;
/// Largest [`Vector::PASS`].
const MAX_PASS: usize = 16;
const PAGE: usize = 4096;

/// An element type of reproducible sums, as the leaf loop sees it.
pub trait Narrow: Copy + Send + Sync + 'static {
    /// The type in which leaves are added: `f32` for `f16` and `bf16`, which widen exactly.
    type Wide: Float;
    /// This value widened, exactly.
    fn widen(self) -> Self::Wide;
    /// −0.0, +0.0 and 1: what missing elements of a leaf are replaced by.
    const NEG_ZERO: Self;
    const ZERO: Self;
    const ONE: Self;
}

/// A [`Narrow`] type with the vector that holds it widened in instruction set `I`.
pub(crate) trait InVectors: Narrow {
    type Vector<I: Isa>: Vector<Lane = Self::Wide> + Load<Self>;
}

macro_rules! narrow {
    ($($narrow:ident => $wide:ident, $vector:ident, $widen:expr, $neg_zero:expr, $zero:expr, $one:expr;)*) => {$(
        impl Narrow for $narrow {
            type Wide = $wide;
            #[inline(always)]
            fn widen(self) -> $wide {
                $widen(self)
            }
            const NEG_ZERO: Self = $neg_zero;
            const ZERO: Self = $zero;
            const ONE: Self = $one;
        }
        impl InVectors for $narrow {
            type Vector<I: Isa> = I::$vector;
        }
    )*};
}
narrow! {
    f16 => f32, F32, f16::to_f32, f16::NEG_ZERO, f16::ZERO, f16::ONE;
    bf16 => f32, F32, bf16::to_f32, bf16::NEG_ZERO, bf16::ZERO, bf16::ONE;
    f32 => f32, F32, core::convert::identity, -0.0, 0.0, 1.0;
    f64 => f64, F64, core::convert::identity, -0.0, 0.0, 1.0;
}

/// What a leaf computes: which term each element gives, and how terms combine.
pub(crate) trait LeafOp {
    const TERM: Term;
    const COMBINE: Combine;

    /// Input arrays.
    const INPUTS: usize = if matches!(Self::TERM, Term::Product) {
        2
    } else {
        1
    };

    /// What lanes start from.
    fn identity<F: Float>() -> F {
        match Self::COMBINE {
            Combine::Add => F::NEG_ZERO,
            Combine::Multiply => F::ONE,
        }
    }

    /// Stands for the missing elements of a leaf in input `input`: gives the identity as its term,
    /// or something that changes no term of a real element.
    fn padding<T: Narrow>(input: usize) -> T {
        match (Self::TERM, Self::COMBINE) {
            (Term::Value, Combine::Add) => T::NEG_ZERO,
            // A square is never −0.0, so +0.0 changes nothing.
            (Term::Square, _) => T::ZERO,
            (Term::Product, _) if input == 0 => T::NEG_ZERO,
            (Term::Product, _) | (Term::Value, Combine::Multiply) => T::ONE,
        }
    }
}

/// The term that an element x of the first input, and y of the second, gives.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Term {
    /// x
    Value,
    /// x·x
    Square,
    /// x·y
    Product,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Combine {
    Add,
    Multiply,
}

pub(crate) struct Sum;
pub(crate) struct SumOfSquares;
pub(crate) struct SumOfProducts;
pub(crate) struct Product;

impl LeafOp for Sum {
    const TERM: Term = Term::Value;
    const COMBINE: Combine = Combine::Add;
}
impl LeafOp for SumOfSquares {
    const TERM: Term = Term::Square;
    const COMBINE: Combine = Combine::Add;
}
impl LeafOp for SumOfProducts {
    const TERM: Term = Term::Product;
    const COMBINE: Combine = Combine::Add;
}
impl LeafOp for Product {
    const TERM: Term = Term::Value;
    const COMBINE: Combine = Combine::Multiply;
}

/// # Safety
/// As for [`Vector`].
#[inline(always)]
unsafe fn combine<V: Vector, O: LeafOp>(a: V, b: V) -> V {
    // SAFETY: the caller's contract.
    unsafe {
        match O::COMBINE {
            Combine::Add => a.add(b),
            Combine::Multiply => a.mul(b),
        }
    }
}

/// Where the inputs come from.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Distance {
    Near,
    /// From beyond the first two levels of caches.
    Far,
}

impl Distance {
    /// Of arrays of `bytes` bytes each.
    pub fn of(bytes: usize, arrays: usize) -> Self {
        if bytes * arrays >= 2 << 20 {
            Self::Far
        } else {
            Self::Near
        }
    }
}

/// In which order a leaf's elements are read. Each lane has its own in order in any case.
///
/// Memory is left to the hardware's prefetchers, but for the first line of each page, which they do not ask for: of 8 and
/// 16 MB in the third-level cache of a Zen 4 one thread has 4 to 15 % more of it with that. Asking for the next leaf gained
/// 10 to 25 % on a Zen 5 with arrays of 4 MiB and more; on a Zen 4 it takes 1.7 times as long (rows of 3162 `f64`: 21 GB/s,
/// and 36 without), arrays of 8 MB in the third-level cache 1.2 times, their dot product 1.7 times.
const IN_PASSES: u8 = 0;
/// As it lies in memory, the lanes in the cache. Where the lanes take several passes, these read pieces with gaps between
/// them, which no prefetcher of the hardware likes: `f64` with AVX2 on Zen 4, a thread, passes and rows: 2.4 MB 55 and 62
/// GB/s, 8 MB 55 and 62, 80 MB 12 and 23; at 0.8 MB it is 75 and 65.
const IN_ROWS: u8 = 1;

/// Computes the results of the leaves of rows of `len` elements, those of a row one behind the other. The last leaf of a row
/// may not be whole: what is missing adds nothing. `results` says how many rows there are.
///
/// # Panics
/// If an input is shorter than these rows, there are not [`LeafOp::INPUTS`] inputs, or `results` is not of whole rows.
pub(crate) fn leaf_results<T: InVectors, O: LeafOp>(
    simd: Simd,
    inputs: &[&[T]],
    len: usize,
    distance: Distance,
    results: &mut [T::Wide],
) {
    let leaves = len.div_ceil(LEAF).max(1);
    let rows = results.len() / leaves;
    assert_eq!(inputs.len(), O::INPUTS);
    assert_eq!(results.len(), rows * leaves);
    assert!(inputs.iter().all(|input| input.len() >= rows * len));
    let first = inputs[0].as_ptr();
    let second = inputs.get(1).map_or(first, |input| input.as_ptr());
    let op = core::marker::PhantomData::<O>;
    // Two functions: short rows take a tenth longer where the loop over whole leaves in lines is in the same one.
    if len >= LEAF && distance == Distance::Near {
        simd.run(LeafResults::<_, O, true> {
            first,
            second,
            len,
            distance,
            results,
            op,
        });
    } else {
        simd.run(LeafResults::<_, O, false> {
            first,
            second,
            len,
            distance,
            results,
            op,
        });
    }
}

/// The result of one leaf of up to [`LEAF`] elements.
///
/// # Panics
/// If there are more, or the inputs differ in length.
pub(crate) fn leaf_result<T: InVectors, O: LeafOp>(
    simd: Simd,
    inputs: &[&[T]],
    distance: Distance,
) -> T::Wide {
    let len = inputs[0].len();
    assert!(len <= LEAF && inputs.iter().all(|input| input.len() == len));
    let mut result = [O::identity()];
    leaf_results::<T, O>(simd, inputs, len, distance, &mut result);
    result[0]
}

/// `first` and `second` are valid for reads of the rows of `results`, of `len` elements each; equal if there is one input.
/// `IN_LINES`: whole leaves that do not begin with a cache line are those of [`leaf_in_lines`].
struct LeafResults<'a, T: InVectors, O, const IN_LINES: bool> {
    first: *const T,
    second: *const T,
    len: usize,
    distance: Distance,
    results: &'a mut [T::Wide],
    op: core::marker::PhantomData<O>,
}

impl<T: InVectors, O: LeafOp, const IN_LINES: bool> Work for LeafResults<'_, T, O, IN_LINES> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        let len = self.len;
        let leaves = len.div_ceil(LEAF).max(1);
        for (row, results) in self.results.chunks_exact_mut(leaves).enumerate() {
            let (whole, part) = results.split_at_mut(len / LEAF);
            // SAFETY: a row lies behind the pointers, by the invariant of the struct; the instruction set is there by this
            // function's contract.
            unsafe {
                let (first, second) = (self.first.add(row * len), self.second.add(row * len));
                let of_leaf = |leaf: usize| (first.add(leaf * LEAF), second.add(leaf * LEAF));
                let before = if IN_LINES {
                    before_a_line::<T::Vector<I>, T>(first)
                } else {
                    0
                };
                // Loops of their own, whose number of rows is known.
                if before > 0 {
                    for (leaf, result) in whole.iter_mut().enumerate() {
                        let (first, second) = of_leaf(leaf);
                        *result = leaf_in_lines::<I, T, O>(first, second, before);
                    }
                } else {
                    for (leaf, result) in whole.iter_mut().enumerate() {
                        let (first, second) = of_leaf(leaf);
                        *result = one_leaf::<I, T, O>(first, second, [ROWS, 0], self.distance);
                    }
                }
                for result in part {
                    let (first, second) = of_leaf(len / LEAF);
                    let size = [len % LEAF / LANES, len % LANES];
                    *result = one_leaf::<I, T, O>(first, second, size, self.distance);
                }
            }
        }
    }
}

/// The terms of some elements; `y` is another input's, or anything if there is none.
///
/// # Safety
/// As for [`Vector`].
#[inline(always)]
unsafe fn terms<V: Vector, O: LeafOp>(x: V, y: V) -> V {
    // SAFETY: the caller's contract.
    unsafe {
        match O::TERM {
            Term::Value => x,
            Term::Square => x.mul(x),
            Term::Product => x.mul(y),
        }
    }
}

/// Combines the terms of the elements from `at` on with the sums of their lanes.
///
/// # Safety
/// As for [`one_leaf`], of a vector of elements from `at` on at `x` and `y`.
#[inline(always)]
unsafe fn add_terms<I: Isa, T: InVectors, O: LeafOp>(
    sums: T::Vector<I>,
    x: *const T,
    y: *const T,
    at: usize,
) -> T::Vector<I> {
    // SAFETY: the caller's contract.
    unsafe {
        let first = T::Vector::<I>::load(x.add(at));
        let second = match O::INPUTS {
            2 => T::Vector::<I>::load(y.add(at)),
            _ => first,
        };
        combine::<_, O>(sums, terms::<_, O>(first, second))
    }
}

/// Combines the terms of the elements from `begin` on with sums of some lanes.
///
/// # Safety
/// As for [`one_leaf`], of the elements from `begin` on at `x` and `y`.
#[inline(always)]
unsafe fn add_row<I: Isa, T: InVectors, O: LeafOp>(
    sums: &mut [T::Vector<I>],
    x: *const T,
    y: *const T,
    begin: usize,
) {
    for (k, sum) in sums.iter_mut().enumerate() {
        // SAFETY: the caller's contract.
        unsafe {
            *sum = add_terms::<I, T, O>(*sum, x, y, begin + k * T::Vector::<I>::WIDTH);
        }
    }
}

/// The same of a row of which only `more` elements are there. Each sum by itself, and not as many as there are elements for,
/// so that they stay in registers.
///
/// # Safety
/// As for [`one_leaf`], of the elements from `begin` to `more` at `x` and `y`.
#[inline(always)]
unsafe fn add_part_of_row<I: Isa, T: InVectors, O: LeafOp>(
    sums: &mut [T::Vector<I>],
    x: *const T,
    y: *const T,
    begin: usize,
    more: usize,
) {
    let width = T::Vector::<I>::WIDTH;
    for (k, sum) in sums.iter_mut().enumerate() {
        let at = begin + k * width;
        // SAFETY: the caller's contract.
        unsafe {
            if at + width <= more {
                *sum = add_terms::<I, T, O>(*sum, x, y, at);
            } else if at < more {
                *sum = add_some_terms::<I, T, O, false>(*sum, x.add(at), y.add(at), more - at);
            }
        }
    }
}

/// Combines the terms of `count` elements, at most a vector's, with the sums of the first lanes; or, `LAST`, of at least one
/// and fewer than a vector's with those of the last lanes.
///
/// # Safety
/// As for [`one_leaf`], of so many elements at `x` and `y`.
#[inline(always)]
unsafe fn add_some_terms<I: Isa, T: InVectors, O: LeafOp, const LAST: bool>(
    sums: T::Vector<I>,
    x: *const T,
    y: *const T,
    count: usize,
) -> T::Vector<I> {
    // SAFETY: the caller's contract.
    unsafe {
        let first = load_part::<I, T, LAST>(x, count, O::padding(0));
        let second = match O::INPUTS {
            2 => load_part::<I, T, LAST>(y, count, O::padding(1)),
            _ => first,
        };
        combine::<_, O>(sums, terms::<_, O>(first, second))
    }
}

/// # Safety
/// As for [`Load::load_some`], or [`Load::load_last`].
#[inline(always)]
unsafe fn load_part<I: Isa, T: InVectors, const LAST: bool>(
    from: *const T,
    count: usize,
    padding: T,
) -> T::Vector<I> {
    // SAFETY: the caller's contract.
    unsafe {
        match LAST {
            true => T::Vector::<I>::load_last(from, count, padding),
            false => T::Vector::<I>::load_some(from, count, padding),
        }
    }
}

/// The result of a leaf of some whole rows, and some elements more.
///
/// # Safety
/// The machine has `I`; so many elements can be read at `first`, and at `second` if the operation has two inputs.
#[inline(always)]
unsafe fn one_leaf<I: Isa, T: InVectors, O: LeafOp>(
    first: *const T,
    second: *const T,
    size: [usize; 2],
    distance: Distance,
) -> T::Wide {
    let in_one_pass = LANES / T::Vector::<I>::WIDTH == T::Vector::<I>::PASS;
    // SAFETY: the caller's contract.
    unsafe {
        if distance == Distance::Far && !in_one_pass {
            leaf_in_order::<I, T, O, IN_ROWS>(first, second, size)
        } else {
            leaf_in_order::<I, T, O, IN_PASSES>(first, second, size)
        }
    }
}

/// Elements at `first` and behind, fewer than a vector's, before the first place from which on no vector reaches from one cache
/// line into the next. 0 where vectors are so short that few do, and for types that [`Load::load_some`] has no instruction for.
#[inline(always)]
fn before_a_line<V: Vector, T: Narrow>(first: *const T) -> usize {
    let size = V::WIDTH * size_of::<T>();
    if size_of::<T>() < size_of::<T::Wide>() || size < 32 {
        return 0;
    }
    first.addr().wrapping_neg() % size / size_of::<T>()
}

/// The result of a leaf of which all elements are there, with vectors that do not reach from one cache line into the next.
/// They begin `before` elements behind its own beginning, fewer than a vector's. (Of 51,200 `f64` in the second-level cache
/// of a Zen 4, a dot product takes 7.7 to 8.1 µs so, and 8.1 to 8.4 else; of 2048 in the first, 0.33 and 0.42.)
///
/// A register then has lanes from `before` on: the last one those at the end of a row and those at the beginning of the next.
/// Lanes that halving combines are as far apart as ever, so it is done in the same way.
///
/// # Safety
/// As for [`one_leaf`], of all elements.
#[inline(always)]
unsafe fn leaf_in_lines<I: Isa, T: InVectors, O: LeafOp>(
    first: *const T,
    second: *const T,
    before: usize,
) -> T::Wide {
    let width = T::Vector::<I>::WIDTH;
    let pass_size = T::Vector::<I>::PASS;
    let (passes, last) = (LANES / width / pass_size, pass_size - 1);
    // SAFETY: the first `before` elements, at least one, are read by themselves; vectors have those from `before` to `before` +
    // LANES of each row, but that the last vector of the last row reads none behind its end. The vectors' functions need `I`,
    // which the caller vouches for.
    unsafe {
        let identity = T::Vector::<I>::splat(O::identity());
        let mut lanes = [identity; MAX_REGISTERS];
        for pass in 0..passes {
            let mut sums = [identity; MAX_PASS];
            let begin = before + pass * pass_size * width;
            let turns = pass + 1 == passes;
            if turns {
                sums[last] = add_some_terms::<I, T, O, true>(sums[last], first, second, before);
            }
            for row in 0..ROWS {
                let (x, y) = (first.add(row * LANES), second.add(row * LANES));
                add_row::<I, T, O>(&mut sums[..last], x, y, begin);
                let at = begin + last * width;
                sums[last] = if turns {
                    // No branch, and no other loads for the last row.
                    let there = if row + 1 == ROWS {
                        width - before
                    } else {
                        width
                    };
                    add_some_terms::<I, T, O, false>(sums[last], x.add(at), y.add(at), there)
                } else {
                    add_terms::<I, T, O>(sums[last], x, y, at)
                };
            }
            lanes[pass * pass_size..][..pass_size].copy_from_slice(&sums[..pass_size]);
        }
        halved::<_, O>(&mut lanes)
    }
}

/// Asks for the first line of the next page once for each page of a leaf. Row `row` of it begins at `x` and at `y`.
#[inline(always)]
fn ask_for_the_next_page<T: Narrow, O: LeafOp>(row: usize, x: *const T, y: *const T) {
    if row.is_multiple_of(PAGE / (LANES * size_of::<T>())) {
        let next = |at: *const T| at.wrapping_byte_add(PAGE - at.addr() % PAGE);
        prefetch(next(x));
        if O::INPUTS == 2 {
            prefetch(next(y));
        }
    }
}

/// # Safety
/// As for [`one_leaf`].
#[inline(always)]
unsafe fn leaf_in_order<I: Isa, T: InVectors, O: LeafOp, const ORDER: u8>(
    first: *const T,
    second: *const T,
    [rows, more]: [usize; 2],
) -> T::Wide {
    let width = T::Vector::<I>::WIDTH;
    let registers = LANES / width;
    let pass_size = T::Vector::<I>::PASS;
    // SAFETY: every load reads WIDTH elements of a row that is there: k < registers, and
    // (pass·PASS + k)·WIDTH + WIDTH ≤ LANES, as PASS divides the number of registers; or of what is more, of which a
    // vector that is not whole loads as many as there are. The vectors' functions need `I`, which the caller vouches for.
    unsafe {
        let identity = T::Vector::<I>::splat(O::identity());
        let mut lanes = [identity; MAX_REGISTERS];
        let passes = if ORDER == IN_ROWS {
            for row in 0..rows {
                let (x, y) = (first.add(row * LANES), second.add(row * LANES));
                ask_for_the_next_page::<T, O>(row, x, y);
                add_row::<I, T, O>(&mut lanes[..registers], x, y, 0);
            }
            if more > 0 {
                let (x, y) = (first.add(rows * LANES), second.add(rows * LANES));
                add_part_of_row::<I, T, O>(&mut lanes[..registers], x, y, 0, more);
            }
            0
        } else {
            registers / pass_size
        };
        for pass in 0..passes {
            let mut sums = [identity; MAX_PASS];
            let begin = pass * pass_size * width;
            for row in 0..rows {
                let (x, y) = (first.add(row * LANES), second.add(row * LANES));
                if pass == 0 {
                    ask_for_the_next_page::<T, O>(row, x, y);
                }
                add_row::<I, T, O>(&mut sums[..pass_size], x, y, begin);
            }
            if more > 0 {
                let (x, y) = (first.add(rows * LANES), second.add(rows * LANES));
                add_part_of_row::<I, T, O>(&mut sums[..pass_size], x, y, begin, more);
            }
            lanes[pass * pass_size..][..pass_size].copy_from_slice(&sums[..pass_size]);
        }
        halved::<_, O>(&mut lanes)
    }
}

/// The lanes, which the first registers hold, combined by halving, as in `leaf::combine_lanes`: between registers, then
/// within one.
///
/// # Safety
/// As for [`Vector`].
#[inline(always)]
unsafe fn halved<V: Vector, O: LeafOp>(lanes: &mut [V; MAX_REGISTERS]) -> V::Lane {
    // SAFETY: the caller's contract.
    unsafe {
        let mut half = LANES / V::WIDTH / 2;
        while half > 0 {
            for k in 0..half {
                lanes[k] = combine::<_, O>(lanes[k], lanes[k + half]);
            }
            half /= 2;
        }
        let mut sum = lanes[0];
        // Not a loop, of which the compiler makes one with jumps.
        const { assert!(V::WIDTH <= MAX_WIDTH) };
        if V::WIDTH > 8 {
            sum = combine::<_, O>(sum, sum.down(8));
        }
        if V::WIDTH > 4 {
            sum = combine::<_, O>(sum, sum.down(4));
        }
        if V::WIDTH > 2 {
            sum = combine::<_, O>(sum, sum.down(2));
        }
        if V::WIDTH > 1 {
            sum = combine::<_, O>(sum, sum.down(1));
        }
        sum.first()
    }
}

#[cfg(test)]
mod tests;
