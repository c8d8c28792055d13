//! A sum that is that of two numbers of `f64`, as the total of a few thousand leaves nearly always is.

use core::num::NonZeroU64;

use crate::Float;

/// An exact sum as two numbers: the time of a few additions for each value (Knuth's two-sum), and none of the words that a
/// superaccumulator has to clear and to round.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    high: f64,
    low: f64,
}

/// Quotients are found from sums of at least this size, whose remainders are above the subnormals: 2^−900,
const LEAST_DIVIDED: f64 = f64::from_bits((1023 - 900) << 52);
/// and by numbers of values that are exact: 2^53.
const MOST_VALUES: u64 = 1 << 53;

impl Pair {
    /// The sum of nothing. −0.0 changes no sum, nor its sign.
    pub const EMPTY: Self = Self {
        high: -0.0,
        low: -0.0,
    };

    /// Adds a value if the sum is that of two numbers then; whether it did.
    #[inline(always)]
    pub fn add(&mut self, value: f64) -> bool {
        let (high, error) = two_sum(self.high, value);
        let (low, rest) = two_sum(self.low, error);
        // `rest` is a NaN if anything is not finite: an infinity minus itself.
        let fits = rest == 0.0;
        if fits {
            *self = Self { high, low };
        }
        fits
    }

    /// Numbers whose exact sum this is, and no +0.0 for the second: beside a sum of −0.0 it would change the sign.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        // The sign of a sum that is 0 is that of `high`.
        [Some(self.high), (self.low != 0.0).then_some(self.low)]
            .into_iter()
            .flatten()
    }

    /// The sum rounded to `f64`, and what that took away; nothing if it is beyond the range.
    fn rounded(&self) -> Option<(f64, f64)> {
        if self.low == 0.0 {
            return Some((self.high, 0.0));
        }
        let (sum, error) = two_sum(self.high, self.low);
        sum.is_finite().then_some((sum, error))
    }

    /// The sum, rounded once to nearest even; nothing if it takes more to know.
    pub fn round<F: Float>(&self) -> Option<F> {
        let (mut sum, error) = self.rounded()?;
        let odd = sum.to_bits() & 1 == 1;
        if size_of::<F>() == 4 && error != 0.0 && !odd {
            // To odd first: what is rounded to 29 bits less then is rounded as the exact sum would be (Boldo and Melquiond,
            // "Emulation of FMA and correctly rounded sums", 2008).
            let away = (error > 0.0) == (sum > 0.0);
            sum = f64::from_bits(sum.to_bits().wrapping_add_signed(if away { 1 } else { -1 }));
        }
        Some(F::from_f64(sum))
    }

    /// The quotient of the sum and `count`, likewise.
    pub fn mean<F: Float>(&self, count: NonZeroU64) -> Option<F> {
        let (sum, error) = self.rounded()?;
        if sum == 0.0 {
            return Some(F::from_f64(sum));
        }
        if sum.abs() < LEAST_DIVIDED || count.get() > MOST_VALUES {
            return None;
        }
        let count = count.get() as f64;
        let quotient = sum / count;
        // What a division leaves is exact.
        let left = |quotient: f64, of: f64| (-quotient).mul_add(count, of);
        // Between which the exact quotient lies: if both round alike, it does so, too (Ziv, "Fast evaluation of elementary
        // mathematical functions with correctly rounded last bit", 1991).
        let (least, most) = if size_of::<F>() == 4 {
            // A rounding, and the error, which is half a last bit of the sum at most: less than 2^−51 of the quotient.
            const UNSURE: f64 = f64::EPSILON * 2.0;
            (quotient - quotient * UNSURE, quotient + quotient * UNSURE)
        } else {
            // Two roundings of what is still to be added, and one of each bound: less than 2^−50.
            const UNSURE: f64 = f64::EPSILON * 4.0;
            let more = (left(quotient, sum) + error) / count;
            (
                quotient + (more - more * UNSURE),
                quotient + (more + more * UNSURE),
            )
        };
        let (least, most): (F, F) = (F::from_f64(least), F::from_f64(most));
        if least == most {
            return Some(least);
        }
        // Half of a last bit, as powers of two give it often.
        let low = error / count;
        let exact = left(quotient, sum) == 0.0 && left(low, error) == 0.0;
        let quotient = Self {
            high: quotient,
            low,
        };
        exact.then(|| quotient.round()).flatten()
    }

    /// The square root of the sum rounded to `f64`, rounded to `F`; nothing if the sum is beyond the range.
    pub fn root<F: Float>(&self) -> Option<F> {
        let (sum, _) = self.rounded()?;
        // + 0.0 turns the −0.0 of no elements into +0.0.
        Some(F::from_f64(sum.sqrt() + 0.0))
    }
}

/// a + b, and what rounding took away.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Superaccumulator;

    /// Values near one another, far apart, halves of last bits, and none.
    fn values() -> impl Strategy<Value = Vec<f64>> {
        let near = -1.0..1.0f64;
        let apart = (any::<u32>(), -300..300i32).prop_map(|(x, e)| f64::from(x) * 2f64.powi(e));
        let small = (-64..64i64).prop_map(|x| x as f64);
        let narrow = any::<f32>().prop_map(f64::from);
        let bits = (0..60i32, any::<bool>()).prop_map(|(e, minus)| {
            let x = 2f64.powi(-e);
            if minus { -x } else { x }
        });
        let one = prop_oneof![
            near,
            apart,
            small,
            narrow,
            bits,
            Just(-0.0),
            Just(0.0),
            Just(f64::MAX),
            Just(f64::from_bits(1)),
        ];
        proptest::collection::vec(one, 0..9)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn what_a_pair_says_is_what_a_superaccumulator_says(
            values in values(),
            count in prop_oneof![1..5000u64, 1..1u64 << 53, (0..20u32).prop_map(|k| 1 << k)],
        ) {
            let mut pair = Pair::EMPTY;
            let mut exact = Superaccumulator::<f64>::new();
            for value in values {
                if pair.add(value) {
                    exact.add(value);
                }
            }
            let count = NonZeroU64::new(count).unwrap();
            if let Some(sum) = pair.round::<f64>() {
                prop_assert_eq!(sum.to_bits(), exact.round().to_bits());
            }
            if let Some(sum) = pair.round::<f32>() {
                prop_assert_eq!(sum.to_bits(), exact.round_to::<f32>(None, 0).to_bits());
            }
            if let Some(mean) = pair.mean::<f64>(count) {
                prop_assert_eq!(mean.to_bits(), exact.mean(count).to_bits());
            }
            if let Some(mean) = pair.mean::<f32>(count) {
                prop_assert_eq!(mean.to_bits(), exact.round_to::<f32>(Some(count), 0).to_bits());
            }
            if let Some(root) = pair.root::<f64>().filter(|root| !root.is_nan()) {
                prop_assert_eq!(root.to_bits(), (exact.round().sqrt() + 0.0).to_bits());
            }
            let again: f64 = pair.numbers().sum();
            prop_assert_eq!(Some(again).filter(|again| again.is_finite()), pair.round::<f64>());
        }
    }

    #[test]
    fn a_pair_takes_what_leaves_are_like() {
        let mut pair = Pair::EMPTY;
        for k in 0..4096 {
            assert!(pair.add((f64::from(k) * 0.37).sin() * 1e3), "{k}");
        }
        assert!(
            pair.mean::<f64>(NonZeroU64::new(10_000_001).unwrap())
                .is_some()
        );
        assert!(!pair.add(f64::from_bits(1)), "a third number");
        assert!(!pair.add(f64::INFINITY) && !pair.add(f64::NAN));
    }
}
