//! The power of two by which a problem is scaled, so that squares of differences neither underflow nor overflow.
//!
//! The norm squares differences in the element type: of a problem of magnitude 1e-22 all squares are zero in `f32`, of
//! one of 1e25 they are infinite. So a problem whose largest magnitude (of sides, initial values, fixed values, and
//! h²f) lies outside 2^−30 … 2^30 is solved as 2^−e times itself, with the largest magnitude in [1, 2), and what comes
//! out is multiplied by 2^e. A sweep commutes with that: only numbers that are subnormal on one side and not on the
//! other are rounded differently. Inside the range nothing is scaled.
//!
//! What stays: a difference below 2^−74 (`f64`: 2^−537) of the scaled problem has a square of zero, one below 2^−63
//! (2^−511) a square that is rounded as a subnormal. Where nothing is scaled, these are the numbers themselves.

use crate::element::Real;

/// Values are held as 2^−`exponent` times what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scale {
    pub exponent: i32,
}

impl Scale {
    /// As they are.
    pub(crate) const NONE: Scale = Scale { exponent: 0 };

    /// For a problem whose largest magnitude is `largest`.
    pub(crate) fn of(largest: f64) -> Scale {
        const LIMIT: f64 = (1u64 << 30) as f64;
        if largest == 0.0 || !largest.is_finite() || (1.0 / LIMIT..=LIMIT).contains(&largest) {
            return Scale::NONE;
        }
        let exponent = |normal: f64| (normal.to_bits() >> 52) as i32 - 1023;
        Scale {
            exponent: if largest < f64::MIN_POSITIVE {
                exponent(times_power(largest, 64)) - 64
            } else {
                exponent(largest)
            },
        }
    }

    /// Whether one product with a power of two scales: what is normal, and so large as what decides, stays normal.
    pub(crate) fn is_one_product(self) -> bool {
        (-1000..=1000).contains(&self.exponent)
    }

    /// What is held for `value`.
    #[inline]
    pub(crate) fn down(self, value: f64) -> f64 {
        match self.exponent {
            0 => value,
            exponent => times_power(value, -exponent),
        }
    }
    /// Makes of all `values` what is held for them.
    pub(crate) fn all_down(self, values: &mut [f64]) {
        if self != Scale::NONE {
            values
                .iter_mut()
                .for_each(|value| *value = self.down(*value));
        }
    }
    /// What `held` stands for.
    #[inline]
    pub(crate) fn up(self, held: f64) -> f64 {
        match self.exponent {
            0 => held,
            exponent => times_power(held, exponent),
        }
    }
    /// As [`down`](Self::down).
    pub(crate) fn element_down<F: Real>(self, value: F) -> F {
        self.element(value, -self.exponent)
    }
    /// As [`up`](Self::up).
    pub(crate) fn element_up<F: Real>(self, held: F) -> F {
        self.element(held, self.exponent)
    }

    fn element<F: Real>(self, value: F, exponent: i32) -> F {
        // The product of an `f32` is exact in `f64`, so it is rounded once.
        F::from_f64(times_power(value.to_f64(), exponent))
    }
}

/// `value` · 2^`exponent`, rounded once.
fn times_power(mut value: f64, mut exponent: i32) -> f64 {
    let power = |exponent: i32| f64::from_bits(((exponent + 1023) as u64) << 52);
    while exponent > 1023 {
        value *= power(1023);
        exponent -= 1023;
    }
    while exponent < -1022 {
        // 53 less than could be: what is rounded here vanishes in the next step.
        value *= power(-1022 + 53);
        exponent += 1022 - 53;
    }
    value * power(exponent)
}

/// Makes of `values`, held as `scale` says, what they are. Whether all have room in the type.
pub(crate) fn scale_up<F: Real>(values: &mut [F], scale: Scale) -> bool {
    let mut fits = true;
    for value in values {
        let up = scale.element_up(*value);
        fits &= up.to_f64().is_finite();
        *value = up;
    }
    fits
}

/// The largest magnitude of `values`; what is not finite counts as larger than all that is. By bits, which compilers make
/// vectors of; signed ones, which more vector units compare.
#[inline(always)]
pub(crate) fn largest_magnitude(values: impl Iterator<Item = f64>) -> f64 {
    let magnitudes = values.map(|value| value.abs().to_bits() as i64);
    f64::from_bits(magnitudes.fold(0, i64::max) as u64)
}

/// Whether all of `values` are finite. By bits, too.
#[inline(always)]
pub(crate) fn are_finite(values: &[f64]) -> bool {
    // One more in an exponent of ones only becomes the sign.
    const ONE: u64 = 1 << 52;
    let exponent = |value: &f64| value.to_bits() & f64::INFINITY.to_bits();
    let signs = values
        .iter()
        .fold(0, |signs, value| signs | (exponent(value) + ONE));
    signs >> 63 == 0
}

/// The larger of `largest` and all magnitudes of `values`; NaN counts for nothing.
pub(crate) fn largest_of<F: Real>(largest: F, values: &[F]) -> F {
    values.iter().fold(largest, |largest, &value| {
        let size = if value < F::ZERO {
            F::ZERO - value
        } else {
            value
        };
        if size > largest { size } else { largest }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_the_largest() {
        let of = |values: &[f64]| largest_magnitude(values.iter().copied());
        assert_eq!(of(&[]), 0.0);
        assert_eq!(of(&[0.5, -2.0, 1.0, -0.0]), 2.0);
        assert_eq!(of(&[5e-324, -1e-310]), 1e-310);
        assert!(of(&[1.0, f64::NEG_INFINITY, 3.0]).is_infinite());
        assert!(of(&[f64::INFINITY, -f64::NAN, 3.0]).is_nan());
    }

    #[test]
    fn one_value_that_is_not_finite_is_seen() {
        let mut values = [0.0, -0.0, f64::MAX, f64::MIN, 5e-324, -1.0, 1e-310];
        assert!(are_finite(&[]) && are_finite(&values));
        for wrong in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            values[3] = wrong;
            assert!(!are_finite(&values), "{wrong}");
        }
    }

    #[test]
    fn the_largest_magnitude_comes_between_1_and_2() {
        let sizes = [
            5e-324,
            1e-310,
            1e-300,
            1e-170,
            1e-45,
            1e-38,
            1e-22,
            1e-10,
            1.1e9,
            1e25,
            1e38,
            1e300,
            f64::MAX,
        ];
        for largest in sizes {
            let scale = Scale::of(largest);
            let held = scale.down(largest);
            assert!((1.0..2.0).contains(&held), "{largest}: {held}");
            assert_eq!(scale.up(held), largest);
        }
    }

    #[test]
    fn what_lies_between_2_to_the_minus_30_and_2_to_the_30_stays() {
        for largest in [0.0, 2f64.powi(-30), 1.0, 10.0, 8848.0, 2f64.powi(30)] {
            assert_eq!(Scale::of(largest), Scale::NONE, "{largest}");
        }
        assert_eq!(Scale::of(2f64.powi(-30) * 0.999).exponent, -31);
        assert_eq!(Scale::of(2f64.powi(30) * 1.001).exponent, 30);
        assert_eq!(
            Scale::NONE.element_down(-0.0f32).to_bits(),
            (-0.0f32).to_bits()
        );
    }

    #[test]
    fn products_are_rounded_once() {
        // Halfway between two subnormals after one step, above it after the other.
        let value = f64::from_bits(0x3ff8_0000_0000_0001);
        assert_eq!(times_power(value, -1074), f64::from_bits(2));
        assert_eq!(times_power(1.5, -1074), f64::from_bits(2));
        assert_eq!(times_power(0.5, -1074), 0.0);
        assert_eq!(
            times_power(f64::from_bits(3), 2000),
            3.0 * 2f64.powi(463) * 2f64.powi(463)
        );
        assert_eq!(times_power(1.0, 2000), f64::INFINITY);
    }
}
