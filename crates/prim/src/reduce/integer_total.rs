//! Integer sums, sums of squares, products and dot products.
#![allow(unsafe_code)] // Reason: `Work::run` is unsafe, for the sake of loops with intrinsics.

use core::num::NonZeroU64;

use crate::simd::{Isa, Work};
use crate::sum::leaf::LEAF;
use crate::sum::rounding::{divide_digits, round_digits};

/// The exact sum of any number of integers of up to 64 bits, or of their squares: 192 bits in two's
/// complement, least significant word first. Sums of 2^64 terms fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IntegerTotal {
    pub words: [u64; 3],
}

impl IntegerTotal {
    /// Adds `low` + `high` · 2^64.
    #[inline]
    fn add(&mut self, low: i128, high: i128) {
        let extension = |value: i128| (value >> 127) as u64;
        self.merge(&Self {
            words: [low as u64, (low >> 64) as u64, extension(low)],
        });
        self.merge(&Self {
            words: [0, high as u64, (high >> 64) as u64],
        });
    }

    /// From the words in which PEs exchange it.
    pub fn from_words(words: &[u64]) -> Self {
        Self {
            words: [words[0], words[1], words[2]],
        }
    }

    pub fn merge(&mut self, other: &Self) {
        let mut carry = false;
        for (word, &other) in self.words.iter_mut().zip(&other.words) {
            let (sum, first) = word.overflowing_add(other);
            let (sum, second) = sum.overflowing_add(carry.into());
            (*word, carry) = (sum, first || second);
        }
    }

    /// The total modulo 2^64.
    pub fn wrapped(&self) -> u64 {
        self.words[0]
    }

    /// The total divided by `count`, rounded once to nearest even.
    pub fn mean(&self, count: NonZeroU64) -> f64 {
        // The quotient of a non-zero total is above 2^-64; 128 more bits leave 64 to round from.
        const FRACTION: usize = 4;
        let (negative, magnitude) = self.sign_and_magnitude();
        let mut digits = [0u32; FRACTION + 6];
        digits[FRACTION..].copy_from_slice(&magnitude);
        let sticky = divide_digits(&mut digits, count);
        round_digits(negative, &digits, -32 * FRACTION as i32, sticky)
    }

    /// The total rounded to nearest even.
    pub fn round(&self) -> f64 {
        let (negative, magnitude) = self.sign_and_magnitude();
        round_digits(negative, &magnitude, 0, false)
    }

    fn sign_and_magnitude(&self) -> (bool, [u32; 6]) {
        let negative = (self.words[2] as i64) < 0;
        let mut magnitude = Self::default();
        if negative {
            magnitude.words = self.words.map(|word| !word);
            magnitude.merge(&Self { words: [1, 0, 0] });
        } else {
            magnitude = *self;
        }
        let mut digits = [0; 6];
        for (pair, word) in digits.chunks_exact_mut(2).zip(magnitude.words) {
            pair.copy_from_slice(&[word as u32, (word >> 32) as u32]);
        }
        (negative, digits)
    }
}

/// The integer element types.
pub(crate) trait Integer: Copy + Send + Sync + 'static {
    /// This value modulo 2^64.
    fn low64(self) -> u64;
    /// Sum of at most [`LEAF`] values.
    fn block_sum(block: &[Self]) -> i128;
    /// The same modulo 2^64: for 64 bits a quarter of the instructions.
    #[inline(always)]
    fn block_sum_modulo(block: &[Self]) -> u64 {
        Self::block_sum(block) as u64
    }
    /// Sum of the squares of at most [`LEAF`] values, as (low, high) of low + high · 2^64.
    fn block_squares(block: &[Self]) -> (i128, i128);
}

// A sum of LEAF = 2^11 values of up to 16 bits fits into 32 bits, of 32 bits into 64 bits.
macro_rules! integers {
    ($($type:ident $sum:ident;)*) => {$(
        impl Integer for $type {
            #[inline(always)]
            fn low64(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn block_sum(block: &[Self]) -> i128 {
                block.iter().fold(0 as $sum, |sum, &x| sum.wrapping_add(x as $sum)).into()
            }
            #[inline(always)]
            fn block_squares(block: &[Self]) -> (i128, i128) {
                let mut total = Halves::default();
                for &x in block {
                    let magnitude = (x as i64).unsigned_abs();
                    total.add(magnitude * magnitude);
                }
                (total.total(), 0)
            }
        }
    )*};
}

/// A sum of at most [`LEAF`] numbers, of their halves.
#[derive(Clone, Copy, Default)]
struct Halves {
    low: u64,
    high: u64,
}

impl Halves {
    #[inline(always)]
    fn add(&mut self, number: u64) {
        self.low += u64::from(number as u32);
        self.high += number >> 32;
    }

    #[inline(always)]
    fn total(self) -> i128 {
        i128::from(self.low) + (i128::from(self.high) << 32)
    }
}

macro_rules! wide_integers {
    ($($type:ident, $magnitude:expr;)*) => {$(
        impl Integer for $type {
            #[inline(always)]
            fn low64(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn block_sum(block: &[Self]) -> i128 {
                // Halves, the high one signed if the type is, so that they can be added in 64 bits.
                let (mut low, mut high) = (0u64, 0 as $type);
                for &x in block {
                    low += u64::from(x as u32);
                    high += x >> 32;
                }
                i128::from(low) + (i128::from(high) << 32)
            }
            #[inline(always)]
            fn block_sum_modulo(block: &[Self]) -> u64 {
                block.iter().fold(0, |sum: u64, &x| sum.wrapping_add(x as u64))
            }
            #[inline(always)]
            fn block_squares(block: &[Self]) -> (i128, i128) {
                // Magnitudes are low + high · 2^32, and their products are added by halves in 64 bits. In most blocks
                // there is nothing in the high halves.
                let halves = |x: Self| {
                    let magnitude: u64 = $magnitude(x);
                    (u64::from(magnitude as u32), magnitude >> 32)
                };
                let mut of_low = Halves::default();
                let mut any_high = 0;
                for &x in block {
                    let (low, high) = halves(x);
                    of_low.add(low * low);
                    any_high |= high;
                }
                if any_high == 0 {
                    return (of_low.total(), 0);
                }
                let (mut of_both, mut of_high) = (Halves::default(), Halves::default());
                for &x in block {
                    let (low, high) = halves(x);
                    of_both.add(low * high);
                    of_high.add(high * high);
                }
                (of_low.total() + (of_both.total() << 33), of_high.total())
            }
        }
    )*};
}

integers! {
    i8 i32; i16 i32; i32 i64;
    u8 u32; u16 u32; u32 u64;
}
wide_integers! {
    i64, i64::unsigned_abs;
    u64, core::convert::identity;
}

/// Exact sum of all values.
pub(crate) struct IntegerSum<'a, T>(pub &'a [T]);
/// Sum of all values modulo 2^64, as a total.
pub(crate) struct IntegerSumModulo<'a, T>(pub &'a [T]);
/// Exact sum of the squares of all values.
pub(crate) struct IntegerSquares<'a, T>(pub &'a [T]);
/// Product of all values modulo 2^64.
pub(crate) struct IntegerProduct<'a, T>(pub &'a [T]);
/// Σ x·y modulo 2^64, over the shorter of the two.
pub(crate) struct IntegerDot<'a, T>(pub &'a [T], pub &'a [T]);

impl<T: Integer> Work for IntegerSum<'_, T> {
    type Output = IntegerTotal;
    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> IntegerTotal {
        let mut total = IntegerTotal::default();
        self.0
            .chunks(LEAF)
            .for_each(|block| total.add(T::block_sum(block), 0));
        total
    }
}

impl<T: Integer> Work for IntegerSumModulo<'_, T> {
    type Output = IntegerTotal;
    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> IntegerTotal {
        let sum = self.0.chunks(LEAF).map(T::block_sum_modulo);
        IntegerTotal {
            words: [sum.fold(0, u64::wrapping_add), 0, 0],
        }
    }
}

impl<T: Integer> Work for IntegerSquares<'_, T> {
    type Output = IntegerTotal;
    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> IntegerTotal {
        let mut total = IntegerTotal::default();
        for block in self.0.chunks(LEAF) {
            let (low, high) = T::block_squares(block);
            total.add(low, high);
        }
        total
    }
}

impl<T: Integer> Work for IntegerProduct<'_, T> {
    type Output = u64;
    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> u64 {
        self.0
            .iter()
            .fold(1, |product: u64, x| product.wrapping_mul(x.low64()))
    }
}

impl<T: Integer> Work for IntegerDot<'_, T> {
    type Output = u64;
    #[inline(always)]
    unsafe fn run<I: Isa>(self) -> u64 {
        let terms = self.0.iter().zip(self.1);
        terms.fold(0, |sum: u64, (x, y)| {
            sum.wrapping_add(x.low64().wrapping_mul(y.low64()))
        })
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;

    use super::*;
    use crate::Simd;

    fn as_bigint(total: &IntegerTotal) -> BigInt {
        let bytes: Vec<u8> = total
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        BigInt::from_signed_bytes_le(&bytes)
    }

    fn check<T: Integer + Into<BigInt>>(values: &[T]) {
        let big = |x: &T| -> BigInt { (*x).into() };
        let sum: BigInt = values.iter().map(big).sum();
        let squares: BigInt = values.iter().map(|x| big(x) * big(x)).sum();
        let modulus = BigInt::from(1u8) << 64;
        let wrapped = |x: BigInt| ((x % &modulus) + &modulus) % &modulus;
        let product = values
            .iter()
            .map(big)
            .fold(BigInt::from(1), |a, b| wrapped(a * b));
        for simd in Simd::available() {
            assert_eq!(as_bigint(&simd.run(IntegerSum(values))), sum);
            let modulo = as_bigint(&simd.run(IntegerSumModulo(values)));
            assert_eq!(wrapped(modulo), wrapped(sum.clone()));
            assert_eq!(as_bigint(&simd.run(IntegerSquares(values))), squares);
            assert_eq!(BigInt::from(simd.run(IntegerProduct(values))), product);
            assert_eq!(
                BigInt::from(simd.run(IntegerDot(values, values))),
                wrapped(squares.clone())
            );
        }
    }

    #[test]
    fn totals_agree_with_big_integers() {
        let mut state = 5u64;
        let mut random = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            state ^ state >> 31
        };
        for len in [0, 1, 100, LEAF, LEAF + 1, 3 * LEAF + 77] {
            macro_rules! check_all {
                ($($type:ident)*) => {$(
                    check(&(0..len).map(|_| random() as $type).collect::<Vec<_>>());
                    check(&vec![$type::MAX; len]);
                    check(&vec![$type::MIN; len]);
                    check(&(0..len).map(|_| (random() % 100) as $type).collect::<Vec<_>>());
                )*};
            }
            check_all!(i8 i16 i32 i64 u8 u16 u32 u64);
        }
    }

    #[test]
    fn means_are_rounded_once() {
        let mut total = IntegerTotal::default();
        total.add(i128::from(i64::MIN), 0);
        total.add(i128::from(i64::MIN), 0);
        assert_eq!(total.mean(NonZeroU64::new(2).unwrap()), i64::MIN as f64);
        assert_eq!(total.round(), 2.0 * i64::MIN as f64);
        let mut third = IntegerTotal::default();
        third.add(-1, 0);
        assert_eq!(third.mean(NonZeroU64::new(3).unwrap()), -1.0 / 3.0);
        assert_eq!(third.mean(NonZeroU64::MAX), -1.0 / 2f64.powi(64));
        assert_eq!(IntegerTotal::default().mean(NonZeroU64::MAX).to_bits(), 0);
    }
}
