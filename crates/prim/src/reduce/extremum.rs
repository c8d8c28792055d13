//! Minimum and maximum, with the lowest index at which they occur.
#![allow(unsafe_code)] // Reason: `Work::run` is unsafe, for the sake of loops with intrinsics.

use half::{bf16, f16};

use crate::Float;
use crate::simd::{Isa, Simd, Work};

/// A type whose values are ranked for minimum and maximum.
///
/// `min` and `max` of the verbs (`crosswarp_shmem::op`, and `min_op`, `max_op` of the kernels) order values alike, but
/// return one of their operands, so which NaN it is depends on their order. Here any NaN becomes the canonical one,
/// because elements are taken in any order and the bits must not depend on it.
pub trait Ranked: Copy + Send + Sync + 'static {
    /// An integer.
    type Rank: Ord + Copy;

    /// The integer that is the smaller, the nearer the value is to the extremum: the maximum if
    /// `MAX`, else the minimum. A NaN comes before everything, −0 is less than +0.
    fn rank<const MAX: bool>(self) -> Self::Rank;

    /// The value with this rank, a NaN being the canonical one.
    fn of_rank<const MAX: bool>(rank: Self::Rank) -> Self;

    /// The integer that orders values, a NaN beyond one of the infinities: quicker than [`rank`](Self::rank).
    fn order(self) -> Self::Rank;

    /// Whether the value has this order.
    fn has_order(self, order: Self::Rank) -> bool;

    /// Whether values whose least and greatest [`order`](Self::order) are these have a NaN among them.
    fn has_nan(least: Self::Rank, greatest: Self::Rank) -> bool;

    /// The greatest (`MAX`, else the least) [`order`](Self::order) of values, of which there are some; nothing if there is
    /// a NaN among them.
    #[inline(always)]
    fn best_order<const MAX: bool>(values: &[Self]) -> Option<Self::Rank> {
        best_by_order::<Self, MAX>(values)
    }

    /// The index of the first of values that has this order; one has.
    #[inline(always)]
    fn place_of(values: &[Self], order: Self::Rank) -> usize {
        place_of(values, order)
    }

    /// Whether this value comes before the other one, quicker than by rank; it does not say if one is a NaN or both
    /// are zero.
    fn beats<const MAX: bool>(self, other: Self) -> bool;

    /// Whether this is one of the values of which [`beats`](Self::beats) does not say: a NaN,
    fn is_a_nan(self) -> bool;

    /// or a zero beside another one.
    fn is_a_zero(self) -> bool;

    /// This value, any NaN replaced by the canonical one.
    #[must_use]
    fn canonical(self) -> Self;
}

macro_rules! ranked_integers {
    ($($type:ident)*) => {$(
        impl Ranked for $type {
            type Rank = Self;
            #[inline(always)]
            fn rank<const MAX: bool>(self) -> Self {
                // The complement reverses the order of signed and of unsigned integers.
                if MAX { !self } else { self }
            }
            #[inline(always)]
            fn of_rank<const MAX: bool>(rank: Self) -> Self {
                rank.rank::<MAX>()
            }
            #[inline(always)]
            fn order(self) -> Self {
                self
            }
            #[inline(always)]
            fn has_order(self, order: Self) -> bool {
                self == order
            }
            #[inline(always)]
            fn has_nan(_: Self, _: Self) -> bool {
                false
            }
            #[inline(always)]
            fn beats<const MAX: bool>(self, other: Self) -> bool {
                if MAX { self > other } else { self < other }
            }
            #[inline(always)]
            fn is_a_nan(self) -> bool {
                false
            }
            // There is only one.
            #[inline(always)]
            fn is_a_zero(self) -> bool {
                false
            }
            fn canonical(self) -> Self {
                self
            }
        }
    )*};
}
ranked_integers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// [`Ranked::best_order`] of any type.
#[inline(always)]
fn best_by_order<T: Ranked, const MAX: bool>(values: &[T]) -> Option<T::Rank> {
    let (mut least, mut greatest) = (values[0].order(), values[0].order());
    for value in values {
        let order = value.order();
        least = if order < least { order } else { least };
        greatest = if order > greatest { order } else { greatest };
    }
    let best = if MAX { greatest } else { least };
    (!T::has_nan(least, greatest)).then_some(best)
}

/// [`Ranked::beats`] and [`Ranked::best_order`] by the comparisons of `f32` and `f64`, for which there are instructions. For
/// orders of 64 bits AVX2 has none, and SSE2 none of 32: of 10^5 `f64` on Zen 4 24 µs by orders, 11 by comparisons; of 10^5
/// `f32` on Emerald Rapids 9.0 and 6.7 (AVX-512), 9.9 and 9.6 (AVX2), 34 and 10 (SSE2).
macro_rules! by_comparison {
    ($type:ident $integer:ident) => {
        #[inline(always)]
        fn best_order<const MAX: bool>(values: &[Self]) -> Option<$integer> {
            // Four registers of 32 bytes for `f32`, eight for `f64`: the compiler makes of these loops what is written here, but
            // not of loops over 64 lanes.
            const LANES: usize = 32;
            const NANS: usize = LANES / 4;
            let (Some(first), Some(last)) =
                (values.first_chunk::<LANES>(), values.last_chunk::<LANES>())
            else {
                return best_by_order::<Self, MAX>(values);
            };
            // Not the last ones: all comparisons would wait for them, which no processor asks memory for by itself.
            let mut best = *first;
            let mut nans = [0 as $integer; NANS];
            // The last ones, some of them twice, stand for the rest that is no whole row.
            for row in values.chunks_exact(LANES).chain([&last[..]]) {
                for j in 0..LANES {
                    let better = if MAX {
                        row[j] > best[j]
                    } else {
                        row[j] < best[j]
                    };
                    best[j] = if better { row[j] } else { best[j] };
                }
                for j in 0..NANS {
                    let mut any = false;
                    for k in 0..LANES / NANS {
                        any |= row[j + k * NANS].is_nan();
                    }
                    nans[j] |= -(any as $integer);
                }
            }
            if nans.iter().fold(0, |any, nan| any | nan) != 0 {
                return None;
            }
            let mut half = LANES / 2;
            while half > 0 {
                for j in 0..half {
                    let other = best[j + half];
                    let better = if MAX {
                        other > best[j]
                    } else {
                        other < best[j]
                    };
                    best[j] = if better { other } else { best[j] };
                }
                half /= 2;
            }
            let best = best[0];
            if best != 0.0 {
                return Some(best.order());
            }
            // To a comparison zeros are equal.
            let wanted: $type = if MAX { 0.0 } else { -0.0 };
            let bits = values.iter().map(|value| value.to_bits());
            let is_there = bits.fold(false, |found, bits| found | (bits == wanted.to_bits()));
            Some(if is_there { wanted } else { -wanted }.order())
        }
        #[inline(always)]
        fn beats<const MAX: bool>(self, other: Self) -> bool {
            if MAX { self > other } else { self < other }
        }
        #[inline(always)]
        fn is_a_nan(self) -> bool {
            self.is_nan()
        }
        #[inline(always)]
        fn is_a_zero(self) -> bool {
            self == 0.0
        }
    };
    ($type:ident) => {
        #[inline(always)]
        fn beats<const MAX: bool>(self, other: Self) -> bool {
            let (mine, other) = (self.order(), other.order());
            if MAX { mine > other } else { mine < other }
        }
        #[inline(always)]
        fn is_a_nan(self) -> bool {
            self.is_nan()
        }
        // They have orders of their own.
        #[inline(always)]
        fn is_a_zero(self) -> bool {
            false
        }
    };
}

macro_rules! ranked_floats {
    ($($type:ident, $integer:ident, $infinity:expr, $nan:expr $(, $native:ident)?;)*) => {$(
        impl Ranked for $type {
            type Rank = $integer;
            #[inline(always)]
            fn rank<const MAX: bool>(self) -> $integer {
                const SIGN: $integer = $integer::MIN;
                let bits = self.to_bits() as $integer;
                let ordered = self.order();
                let rank = if MAX { !ordered } else { ordered };
                if bits & !SIGN > $infinity.to_bits() as $integer { SIGN } else { rank }
            }
            #[inline(always)]
            fn of_rank<const MAX: bool>(rank: $integer) -> Self {
                if rank == $integer::MIN {
                    return $nan;
                }
                let ordered = if MAX { !rank } else { rank };
                let bits = if ordered < 0 { ordered ^ $integer::MAX } else { ordered };
                Self::from_bits(bits as _)
            }
            #[inline(always)]
            fn order(self) -> $integer {
                let bits = self.to_bits() as $integer;
                // Sign and magnitude to two's complement, with −0 as −1.
                bits ^ ((bits >> ($integer::BITS - 1)) & $integer::MAX)
            }
            #[inline(always)]
            fn has_order(self, order: $integer) -> bool {
                // The order of an order are the bits.
                let bits = order ^ ((order >> ($integer::BITS - 1)) & $integer::MAX);
                self.to_bits() as $integer == bits
            }
            #[inline(always)]
            fn has_nan(least: $integer, greatest: $integer) -> bool {
                let infinity = $infinity.to_bits() as $integer;
                least < !infinity || greatest > infinity
            }
            by_comparison! { $type $($native)? }
            fn canonical(self) -> Self {
                if self.is_nan() { $nan } else { self }
            }
        }
    )*};
}
ranked_floats! {
    f16, i16, f16::INFINITY, f16::from_bits(0x7e00);
    bf16, i16, bf16::INFINITY, bf16::from_bits(0x7fc0);
    f32, i32, f32::INFINITY, <f32 as Float>::CANONICAL_NAN, i32;
    f64, i64, f64::INFINITY, <f64 as Float>::CANONICAL_NAN, i64;
}

/// Bytes of values whose best one is found before it is compared with that of the values before: the place is searched for in
/// one such block only.
const BLOCK_BYTES: usize = 2048;

/// The first index of the minimum (`MAX`: maximum) of `values`; none if there are none.
pub fn first_extremum<T: Ranked, const MAX: bool>(simd: Simd, values: &[T]) -> Option<usize> {
    let mut best = (values.first()?.order(), 0);
    let block_len = BLOCK_BYTES / size_of::<T>();
    for (k, block) in values.chunks(block_len).enumerate() {
        let Some(found) = simd.run(BestOrder::<T, MAX>(block)) else {
            // The first block with a NaN has the first NaN.
            return Some(k * block_len + simd.run(FirstByRank::<T, MAX>(block)));
        };
        if if MAX { found > best.0 } else { found < best.0 } {
            best = (found, k * block_len);
        }
    }
    let (order, at) = best;
    Some(at + simd.run(PlaceOf(&values[at..], order)))
}

/// [`Ranked::best_order`]. A function of its own: in a loop over blocks the compiler makes vectors of two elements of it.
struct BestOrder<'a, T, const MAX: bool>(&'a [T]);

impl<T: Ranked, const MAX: bool> Work for BestOrder<'_, T, MAX> {
    type Output = Option<T::Rank>;

    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> Option<T::Rank> {
        T::best_order::<MAX>(self.0)
    }
}

/// [`place_of`].
struct PlaceOf<'a, T: Ranked>(&'a [T], T::Rank);

impl<T: Ranked> Work for PlaceOf<'_, T> {
    type Output = usize;

    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> usize {
        place_of(self.0, self.1)
    }
}

/// The index of the first of some values that has the lowest rank.
struct FirstByRank<'a, T, const MAX: bool>(&'a [T]);

impl<T: Ranked, const MAX: bool> Work for FirstByRank<'_, T, MAX> {
    type Output = usize;

    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> usize {
        let mut lowest = self.0[0].rank::<MAX>();
        for value in self.0 {
            lowest = lowest.min(value.rank::<MAX>());
        }
        let mut at = 0;
        while self.0[at].rank::<MAX>() != lowest {
            at += 1;
        }
        at
    }
}

/// The index of the first value with this order, of which there is one.
#[inline(always)]
fn place_of<T: Ranked>(values: &[T], order: T::Rank) -> usize {
    // Some at a time, so that the search vectorises, and fewer and fewer.
    let at = skip::<T, 64>(values, 0, order);
    let mut at = skip::<T, 8>(values, at, order);
    while at < values.len() && !values[at].has_order(order) {
        at += 1;
    }
    at
}

/// From `at` on, where the first `N` values are with one of this order among them, or fewer are left.
#[inline(always)]
fn skip<T: Ranked, const N: usize>(values: &[T], mut at: usize, order: T::Rank) -> usize {
    while let Some(some) = values.get(at..at + N) {
        let mut is_here = false;
        for value in some {
            is_here |= value.has_order(order);
        }
        if is_here {
            break;
        }
        at += N;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 48 bits, the same each time.
    fn numbers() -> impl FnMut() -> u64 {
        let mut state = 1u64;
        move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            state >> 16
        }
    }

    #[test]
    fn ranks_order_floats_as_total_cmp_with_nan_first() {
        let mut random = numbers();
        let special = [
            0,
            1 << 31,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0xffc0_0001,
            1,
        ];
        for k in 0..20_000 {
            let pick = |r: u64| {
                f32::from_bits(if r.is_multiple_of(3) {
                    special[(r / 3 % 7) as usize]
                } else {
                    r as u32
                })
            };
            let (a, b) = (pick(random()), pick(random()));
            let expected = match (a.is_nan(), b.is_nan()) {
                (false, false) => a.total_cmp(&b),
                (a, b) => b.cmp(&a),
            };
            assert_eq!(
                a.rank::<false>().cmp(&b.rank::<false>()),
                expected,
                "{k}: {a} {b}"
            );
            if !a.is_nan() && !b.is_nan() {
                assert_eq!(a.rank::<true>().cmp(&b.rank::<true>()), expected.reverse());
            } else {
                assert_eq!(a.rank::<true>().cmp(&b.rank::<true>()), expected);
            }
        }
    }

    fn checks_orders<T: Ranked + PartialEq + std::fmt::Debug>(
        values: &[T],
        is_nan: fn(&T) -> bool,
        bits: fn(T) -> u64,
    ) {
        for &a in values {
            let back = [
                T::of_rank::<false>(a.rank::<false>()),
                T::of_rank::<true>(a.rank::<true>()),
            ];
            assert_eq!(back.map(bits), [bits(a.canonical()); 2], "{a:?}");
            assert_eq!(T::has_nan(a.order(), a.order()), is_nan(&a), "{a:?}");
            for &b in values.iter().filter(|b| !is_nan(b) && !is_nan(&a)) {
                let by_rank = a.rank::<false>().cmp(&b.rank::<false>());
                assert_eq!(a.order().cmp(&b.order()), by_rank, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn ranks_lead_back_and_orders_are_those_of_ranks() {
        let f16s: Vec<f16> = (0..=u16::MAX).step_by(97).map(f16::from_bits).collect();
        checks_orders(&f16s, |x| x.is_nan(), |x| x.to_bits().into());
        let special = [0.0, 1.5, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE, 1e300];
        let f64s = [special, special.map(|x| -x)].concat();
        checks_orders(&f64s, |x| x.is_nan(), f64::to_bits);
        let f32s: Vec<f32> = f64s.iter().map(|&x| x as f32).collect();
        checks_orders(&f32s, |x| x.is_nan(), |x| x.to_bits().into());
        checks_orders(&[i8::MIN, -1, 0, 7, i8::MAX], |_| false, |x| x as u64);
        checks_orders(&[0, 7, u64::MAX], |_| false, |x: u64| x);
    }

    #[test]
    fn f16_ranks_agree_with_f32_ranks() {
        for bits in (0..=u16::MAX).step_by(7) {
            for other in (0..=u16::MAX).step_by(641) {
                let (a, b) = (f16::from_bits(bits), f16::from_bits(other));
                let (wide_a, wide_b) = (a.to_f32(), b.to_f32());
                assert_eq!(
                    a.rank::<true>().cmp(&b.rank::<true>()),
                    wide_a.rank::<true>().cmp(&wide_b.rank::<true>())
                );
                let (a, b) = (bf16::from_bits(bits), bf16::from_bits(other));
                let (wide_a, wide_b) = (a.to_f32(), b.to_f32());
                assert_eq!(
                    a.rank::<false>().cmp(&b.rank::<false>()),
                    wide_a.rank::<false>().cmp(&wide_b.rank::<false>())
                );
            }
        }
    }

    /// As ranks have it, one value after the other.
    fn by_ranks<T: Ranked, const MAX: bool>(values: &[T]) -> Option<usize> {
        (0..values.len()).min_by_key(|&at| (values[at].rank::<MAX>(), at))
    }

    fn agrees_with_ranks<T: Ranked>(values: &[T], what: &str) {
        for simd in Simd::available() {
            let [least, most] = [
                first_extremum::<T, false>(simd, values),
                first_extremum::<T, true>(simd, values),
            ];
            let len = values.len();
            assert_eq!(least, by_ranks::<T, false>(values), "{simd} {what} {len}");
            assert_eq!(most, by_ranks::<T, true>(values), "{simd} {what} {len}");
        }
    }

    #[test]
    fn places_are_those_of_ranks_around_the_lengths_of_rows_and_blocks() {
        let mut random = numbers();
        let blocks = [2, 4, 8].map(|bytes| BLOCK_BYTES / bytes);
        let beside = blocks.map(|block| [block - 1, block, block + 1, 2 * block + 31]);
        let lengths = (0..70).chain(beside.concat());
        for len in lengths {
            // Many equal ones; zeros of both signs above all others, and below; a NaN now and then.
            for kind in 0..4 {
                let values: Vec<f64> = (0..len)
                    .map(|_| {
                        let value = (random() % 7) as f64;
                        let zero = if random().is_multiple_of(2) {
                            0.0
                        } else {
                            -0.0
                        };
                        match kind {
                            0 => value - 3.0,
                            1 if value == 0.0 => zero,
                            2 if value == 0.0 => zero,
                            2 => -value,
                            3 if random().is_multiple_of(200) => f64::NAN,
                            _ => value,
                        }
                    })
                    .collect();
                agrees_with_ranks(&values, "f64");
                let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
                agrees_with_ranks(&values, "f32");
                let values: Vec<f16> = values.iter().map(|&x| f16::from_f32(x)).collect();
                agrees_with_ranks(&values, "f16");
            }
        }
    }

    #[test]
    fn the_first_of_equals_wins_in_any_block() {
        for simd in Simd::available() {
            let block = BLOCK_BYTES / size_of::<i16>();
            for place in [0, 1, block - 1, block, 2 * block + 5] {
                let mut values = vec![3i16; 3 * block];
                values[place] = -5;
                *values.last_mut().unwrap() = -5;
                assert_eq!(
                    first_extremum::<_, false>(simd, &values),
                    Some(place),
                    "{simd}"
                );
                values.iter_mut().for_each(|x| *x = -*x);
                assert_eq!(
                    first_extremum::<_, true>(simd, &values),
                    Some(place),
                    "{simd}"
                );
            }
            let mut values = vec![f64::INFINITY; 20_000];
            (values[13_000], values[17_000]) = (f64::NAN, -f64::NAN);
            assert_eq!(first_extremum::<_, true>(simd, &values), Some(13_000));
            assert_eq!(first_extremum::<_, false>(simd, &values), Some(13_000));
            assert_eq!(first_extremum::<f32, false>(simd, &[]), None);
            assert_eq!(
                first_extremum::<_, false>(simd, &[0.0f32, -0.0, -0.0]),
                Some(1)
            );
            assert_eq!(
                first_extremum::<_, true>(simd, &[-0.0f32, 0.0, 0.0]),
                Some(1)
            );
        }
    }
}
