//! Exact sums of floating-point numbers in a long fixed-point integer.
//!
//! After Kulisch's long accumulator, in carry-save form as in Neal, "Fast exact summation using
//! small and large superaccumulators" (2015).

use core::fmt;
use core::num::NonZeroU64;

use crosswarp_cuda::sum_layout::TRACKERS;

use crate::Float;
use crate::sum::rounding::{divide_digits, round_digits};

/// Value bits in one limb.
const LIMB_BITS: u32 = 32;
/// Additions without carrying: each moves a limb by less than 2^32, so limbs stay below 2^61 and
/// two accumulators can be added limb by limb within an `i64`.
const MAX_PENDING: u32 = 1 << 29;
// The trackers kept behind the limbs.
const NOT_NEG_ZERO: usize = 0;
const NANS: usize = 1;
const INFINITIES: usize = 2;
const NEG_INFINITIES: usize = 3;

/// The exact sum of any number of values of `F`, rounded only when asked for.
///
/// The sum does not depend on the order of the values, nor on how they were spread over
/// accumulators that were later [merged](Self::merge). NaNs and infinities are counted beside the
/// number, so they obey IEEE 754 in any order too.
///
/// ```
/// use crosswarp_prim::Superaccumulator;
///
/// let values = [1e300, 1.0, -1e300, 2.0f64.powi(-1074)];
/// let mut sum = Superaccumulator::<f64>::new();
/// values.iter().for_each(|&value| sum.add(value));
/// assert_eq!(sum.round(), 1.0);
/// sum.add(-1.0);
/// assert_eq!(sum.round(), 2.0f64.powi(-1074));
/// ```
///
/// # Words
/// [`to_words`](Self::to_words) gives a fixed-size array in which accumulators of different PEs
/// (or of a device) can be combined by element-wise wrapping addition of `u64`, in any order:
///
/// ```
/// # use crosswarp_prim::Superaccumulator;
/// let mut here = Superaccumulator::<f32>::new();
/// let mut there = Superaccumulator::<f32>::new();
/// here.add(16777216.0);
/// there.add(1.0);
/// there.add(1.0);
/// let mut words = here.to_words();
/// words.iter_mut().zip(there.to_words()).for_each(|(a, b)| *a = a.wrapping_add(b));
/// assert_eq!(Superaccumulator::<f32>::from_words(words).round(), 16777218.0);
/// ```
#[derive(Clone, Copy)]
pub struct Superaccumulator<F: Float> {
    /// Limbs, least significant first, as two's-complement `i64`: limb k counts units of
    /// 2^(32k + `MIN_LSB_EXPONENT`). Then the trackers.
    words: F::Words,
    /// Additions since the limbs were last carried; at most [`MAX_PENDING`].
    pending: u32,
}

impl<F: Float> Superaccumulator<F> {
    /// Number of `u64` in [`to_words`](Self::to_words): 14 for `f32`, 71 for `f64`.
    pub const WORDS: usize = size_of::<F::Words>() / 8;
    pub(crate) const LIMBS: usize = Self::WORDS - TRACKERS;
    pub(crate) const TRACKERS: usize = TRACKERS;

    /// The sum of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            words: bytemuck::Zeroable::zeroed(),
            pending: 0,
        }
    }

    /// Adds one value, exactly.
    #[inline]
    pub fn add(&mut self, value: F) {
        let field_bits = F::PRECISION - 1;
        let bits = value.to_bits64();
        let exponent_mask = F::INFINITY.to_bits64() >> field_bits;
        let exponent = (bits >> field_bits) & exponent_mask;
        if exponent == exponent_mask {
            return self.add_special(value);
        }
        let sign = bits >> (size_of::<F>() * 8 - 1);
        let hidden = u64::from(exponent != 0);
        let significand = (bits & ((1 << field_bits) - 1)) | hidden << field_bits;
        // Subnormals share the last bit of the smallest normals.
        let position = (exponent - hidden) as u32;
        let limb = (position / LIMB_BITS) as usize;
        let shifted = u128::from(significand) << (position % LIMB_BITS);

        // Two's complement of each chunk when negative: (x ^ −1) + 1.
        let flip = sign.wrapping_neg();
        let words = self.words.as_mut();
        words[Self::LIMBS + NOT_NEG_ZERO] += u64::from(bits != F::NEG_ZERO.to_bits64());
        // 24 or 53 bits moved by up to 31 span two limbs or three.
        let span = ((F::PRECISION + LIMB_BITS - 1).div_ceil(LIMB_BITS)) as usize;
        for (k, word) in words[limb..limb + span].iter_mut().enumerate() {
            let chunk = u64::from((shifted >> (k as u32 * LIMB_BITS)) as u32);
            *word = word.wrapping_add((chunk ^ flip).wrapping_add(sign));
        }
        self.pending += 1;
        if self.pending == MAX_PENDING {
            self.carry();
        }
    }

    #[cold]
    fn add_special(&mut self, value: F) {
        let tracker = if value.is_nan() {
            NANS
        } else if value == F::INFINITY {
            INFINITIES
        } else {
            NEG_INFINITIES
        };
        let words = self.words.as_mut();
        words[Self::LIMBS + NOT_NEG_ZERO] += 1;
        words[Self::LIMBS + tracker] += 1;
    }

    /// Adds the sum held by `other`, exactly.
    pub fn merge(&mut self, other: &Self) {
        for (word, other) in self.words.as_mut().iter_mut().zip(other.words.as_ref()) {
            *word = word.wrapping_add(*other);
        }
        // A carried limb is itself below 2^32: one more addition.
        self.pending += other.pending + 1;
        if self.pending >= MAX_PENDING {
            self.carry();
        }
    }

    /// The sum, rounded once to nearest even.
    ///
    /// NaN (the canonical quiet one) if a NaN or infinities of both signs were added, an infinity
    /// if one was added or the exact sum rounds beyond the range. A sum of nothing but −0.0, or of
    /// nothing at all, is −0.0; any other sum that is exactly zero is +0.0.
    #[must_use]
    pub fn round(&self) -> F {
        self.round_to(None, 0)
    }

    /// Whether no value that was added is NaN or infinite. The rounded sum can still be beyond the range of its type.
    #[must_use]
    pub fn is_finite(&self) -> bool {
        let trackers = &self.words.as_ref()[Self::LIMBS..];
        [NANS, INFINITIES, NEG_INFINITIES]
            .iter()
            .all(|&kind| trackers[kind] == 0)
    }

    /// The sum, rounded once to the nearest `f64`: like [`round`](Self::round), but with the digits
    /// an `f32` result would lose. Used where the sum goes through a square root or a division.
    #[must_use]
    pub fn round_f64(&self) -> f64 {
        self.round_to(None, 0)
    }

    /// The quotient of the sum and `count`, rounded once to nearest even; special values as in
    /// [`round`](Self::round). The exact sum may lie beyond the range of `F`.
    #[must_use]
    pub fn mean(&self, count: NonZeroU64) -> F {
        self.round_to(Some(count), 0)
    }

    /// The sum, divided by `divisor` if there is one, times 2^`exponent`, rounded once.
    pub(crate) fn round_to<G: Float>(&self, divisor: Option<NonZeroU64>, exponent: i32) -> G {
        let carried = self.to_words();
        let (limbs, trackers) = carried.as_ref().split_at(Self::LIMBS);
        let (positive, negative) = (trackers[INFINITIES] > 0, trackers[NEG_INFINITIES] > 0);
        if trackers[NANS] > 0 || (positive && negative) {
            return G::CANONICAL_NAN;
        } else if positive {
            return G::INFINITY;
        } else if negative {
            return G::NEG_INFINITY;
        } else if trackers[NOT_NEG_ZERO] == 0 {
            return G::NEG_ZERO;
        }

        // Magnitude in base 2^32: a digit of zeros below the limbs that a quotient can grow into,
        // the carried limbs, and the top limb's upper half.
        let mut storage = [0u32; 72];
        let digits = &mut storage[..Self::LIMBS + 2];
        let is_negative = (limbs[Self::LIMBS - 1] as i64) < 0;
        let flip = u32::from(is_negative).wrapping_neg();
        let mut carry = is_negative;
        let top_half = (limbs[Self::LIMBS - 1] >> LIMB_BITS) as u32;
        let halves = limbs.iter().map(|&limb| limb as u32).chain([top_half]);
        for (digit, half) in digits[1..].iter_mut().zip(halves) {
            (*digit, carry) = (half ^ flip).overflowing_add(carry.into());
        }
        let sticky = divisor.is_some_and(|divisor| divide_digits(digits, divisor));
        round_digits(
            is_negative,
            digits,
            F::MIN_LSB_EXPONENT - LIMB_BITS as i32 + exponent,
            sticky,
        )
    }

    /// The accumulator as an array of `u64` that adds element by element (wrapping), in any order.
    ///
    /// The limbs are carried first, so that at least 2^31 such arrays can be added before one limb
    /// overflows. Equal arrays mean equal sums and equal counts of special values.
    #[must_use]
    pub fn to_words(&self) -> F::Words {
        let mut carried = *self;
        carried.carry();
        carried.words
    }

    /// The accumulator with these words: one from [`to_words`](Self::to_words), or a sum of up to
    /// 2^31 of them.
    #[must_use]
    pub fn from_words(words: F::Words) -> Self {
        let mut accumulator = Self { words, pending: 0 };
        accumulator.carry();
        accumulator
    }

    /// Adds limbs as those of an accumulator, the first of which begins with bit `bit` of this one, and its trackers.
    pub(crate) fn add_limbs(&mut self, limbs: &[u64], bit: usize, trackers: &[u64]) {
        self.carry();
        let (first, shift) = (bit / LIMB_BITS as usize, bit as u32 % LIMB_BITS);
        let words = self.words.as_mut();
        for (k, &limb) in limbs.iter().enumerate() {
            let moved = i128::from(limb as i64) << shift;
            let at = &mut words[first + k..first + k + 2];
            at[0] = at[0].wrapping_add((moved as u32).into());
            at[1] = at[1].wrapping_add((moved >> LIMB_BITS) as u64);
        }
        for (word, tracker) in words[Self::LIMBS..].iter_mut().zip(trackers) {
            *word = word.wrapping_add(*tracker);
        }
        self.carry();
    }

    /// Adds this sum, which has no bits below bit `bit` and fits, to the limbs of an accumulator that begins there, and
    /// to its trackers.
    pub(crate) fn add_to_limbs(&self, limbs: &mut [u64], bit: usize, trackers: &mut [u64]) {
        let words = self.to_words();
        let words = words.as_ref();
        let (first, shift) = (bit / LIMB_BITS as usize, bit as u32 % LIMB_BITS);
        let top = limbs.len() - 1;
        for (k, to) in limbs.iter_mut().enumerate() {
            let both = words[first + k] | words[first + k + 1] << LIMB_BITS;
            let part = (both >> shift) as u32;
            // The top limb has the sign.
            let part = if k == top {
                part as i32 as u64
            } else {
                part.into()
            };
            *to = to.wrapping_add(part);
        }
        for (to, tracker) in trackers.iter_mut().zip(&words[Self::LIMBS..]) {
            *to = to.wrapping_add(*tracker);
        }
    }

    /// Brings all limbs but the top one into 0..2^32. The top one keeps the sign.
    fn carry(&mut self) {
        let limbs = &mut self.words.as_mut()[..Self::LIMBS];
        let mut carry = 0i64;
        let (top, lower) = limbs.split_last_mut().expect("there are limbs");
        for limb in lower {
            let sum = *limb as i64 + carry;
            *limb = u64::from(sum as u32);
            carry = sum >> LIMB_BITS;
        }
        *top = top.wrapping_add(carry as u64);
        self.pending = 0;
    }
}

impl<F: Float> Default for Superaccumulator<F> {
    fn default() -> Self {
        Self::new()
    }
}

/// Equal if both hold the same exact sum and counted the same special values.
impl<F: Float> PartialEq for Superaccumulator<F> {
    fn eq(&self, other: &Self) -> bool {
        self.to_words().as_ref() == other.to_words().as_ref()
    }
}

impl<F: Float> fmt::Debug for Superaccumulator<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Superaccumulator")
            .field(&self.round())
            .finish()
    }
}

impl<F: Float> Extend<F> for Superaccumulator<F> {
    fn extend<I: IntoIterator<Item = F>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.add(value));
    }
}

#[cfg(test)]
mod tests;
