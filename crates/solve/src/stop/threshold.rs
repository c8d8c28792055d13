//! When a norm meets the tolerance, in terms of the exact sum: what a kernel can decide without rounding.

use crate::problem::Norm;

/// The largest exact sum of squares whose norm is at most the tolerance.
///
/// Rounding the sum to `f64`, dividing it and taking the root are monotonic, so comparing integers decides as the
/// rounded norm does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Threshold {
    /// The largest `f64` whose norm is at most the tolerance; perhaps infinite.
    sum: f64,
}

impl Threshold {
    /// For norms of grids of `points` points; `tolerance` is not negative and not NaN.
    pub(crate) fn new(tolerance: f64, norm: Norm, points: usize) -> Threshold {
        // Numbers of `f64` without sign have the order of their bits. Zero meets every tolerance.
        let (mut meets, mut beyond) = (0, f64::INFINITY.to_bits() + 1);
        while beyond - meets > 1 {
            let middle = meets + (beyond - meets) / 2;
            if norm.of(f64::from_bits(middle), points) <= tolerance {
                meets = middle;
            } else {
                beyond = middle;
            }
        }
        Threshold {
            sum: f64::from_bits(meets),
        }
    }

    /// Base-2 logarithm of the sum; −∞ if only a sum of zero will do.
    pub(crate) fn log2(&self) -> f64 {
        self.sum.log2()
    }

    /// Whether an infinite sum meets it.
    pub(crate) fn allows_infinity(&self) -> bool {
        self.sum.is_infinite()
    }

    /// The largest exact finite sum that rounds to at most the threshold, as base-2³² digits from the lowest; the first
    /// counts units of 2^`unit`. All ones if it has more digits.
    pub(crate) fn digits(&self, unit: i32, digits: &mut [u32]) {
        digits.fill(u32::MAX);
        if self.sum.is_infinite() {
            return;
        }
        let bits = self.sum.to_bits();
        let exponent = (bits >> 52) as i32;
        let hidden = u64::from(exponent != 0);
        let significand = bits & ((1 << 52) - 1) | hidden << 52;
        // Half a last place above: what lies below rounds down, and so does the middle itself to an even number.
        let middle = 2 * significand + 1;
        let shift = exponent - hidden as i32 - 1075 - unit;
        let odd = significand % 2 == 1;
        if shift < 0 {
            // The middle is no multiple of the unit; what is left out decides nothing.
            let whole = if shift > -64 { middle >> -shift } else { 0 };
            digits.fill(0);
            set(digits, 0, whole);
            return;
        }
        let (first, bit) = (shift as usize / 32, shift as u32 % 32);
        let shifted = u128::from(middle) << bit;
        let fits = (0..3).all(|k| first + k < digits.len() || shifted >> (32 * k) == 0);
        if !fits {
            return;
        }
        digits.fill(0);
        for k in 0..3 {
            if let Some(digit) = digits.get_mut(first + k) {
                *digit = (shifted >> (32 * k)) as u32;
            }
        }
        if odd {
            for digit in digits {
                let (less, borrow) = digit.overflowing_sub(1);
                *digit = less;
                if !borrow {
                    break;
                }
            }
        }
    }
}

/// Stores `value` from digit `at` on; it fits.
fn set(digits: &mut [u32], at: usize, value: u64) {
    digits[at] = value as u32;
    digits[at + 1] = (value >> 32) as u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use crosswarp_cuda::sum_layout::TRACKERS;
    use crosswarp_prim::{Float, Superaccumulator};

    /// The sum whose limbs are `digits`.
    fn sum<F: Float>(digits: &[u32]) -> f64 {
        let mut words = F::Words::zeroed();
        for (word, &digit) in words.as_mut().iter_mut().zip(digits) {
            *word = digit.into();
        }
        words.as_mut()[Superaccumulator::<F>::WORDS - TRACKERS] = 1;
        Superaccumulator::<F>::from_words(words).round_f64()
    }

    fn plus_one(digits: &mut [u32]) -> bool {
        digits.iter_mut().any(|digit| {
            *digit = digit.wrapping_add(1);
            *digit != 0
        })
    }

    fn check<F: Float>(tolerance: f64, norm: Norm, points: usize) {
        let threshold = Threshold::new(tolerance, norm, points);
        let mut digits = vec![0; Superaccumulator::<F>::WORDS - TRACKERS];
        threshold.digits(F::MIN_LSB_EXPONENT, &mut digits);
        let meets = |digits: &[u32]| norm.of(sum::<F>(digits), points) <= tolerance;
        assert!(meets(&digits), "{tolerance} {norm:?} {points}");
        // All ones: whatever the sum, it is at most that.
        if digits.iter().any(|&digit| digit != u32::MAX) {
            plus_one(&mut digits);
            assert!(!meets(&digits), "{tolerance} {norm:?} {points}, one more");
        }
    }

    #[test]
    fn one_unit_more_does_not_meet_the_tolerance() {
        let tolerances = [
            0.0,
            5e-324,
            1e-310,
            1e-200,
            1e-160,
            1e-45,
            1e-23,
            1.4e-22,
            1e-9,
            1e-4,
            0.3,
            1.0,
            3.0,
            1e19,
            1e60,
            1e153,
            1e154,
            1e200,
            f64::MAX,
            f64::INFINITY,
        ];
        for tolerance in tolerances {
            for points in [3, 4, 7, 1000, 1 << 22, 123_456_789] {
                for norm in [Norm::L2, Norm::Rms] {
                    check::<f32>(tolerance, norm, points);
                    check::<f64>(tolerance, norm, points);
                }
            }
        }
        for i in 0..2000u32 {
            let tolerance = (f64::from(i) * 0.37 - 300.0).exp2();
            check::<f32>(tolerance, Norm::Rms, 4_194_304);
            check::<f64>(tolerance, Norm::L2, 3);
        }
    }

    #[test]
    fn infinite_sums_meet_only_an_infinite_tolerance() {
        assert!(Threshold::new(f64::INFINITY, Norm::L2, 9).allows_infinity());
        assert!(!Threshold::new(f64::MAX, Norm::L2, 9).allows_infinity());
        assert_eq!(Threshold::new(0.0, Norm::L2, 9).log2(), f64::NEG_INFINITY);
    }
}
