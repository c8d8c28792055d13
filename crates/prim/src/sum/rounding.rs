//! Rounding of a long binary number to a floating-point type, once, to nearest even.

use crate::Float;

/// Rounds (−1)^`negative` · (D + s) · 2^`lsb_exponent` to nearest, ties to even.
///
/// D is the unsigned integer with base-2³² digits `digits`, least significant first; s is 0, or
/// something strictly between 0 and 1 when `sticky` is set. An exact zero gives +0.0, a non-zero
/// value that rounds to zero keeps its sign, a value beyond the range gives an infinity.
pub(crate) fn round_digits<G: Float>(
    negative: bool,
    digits: &[u32],
    lsb_exponent: i32,
    sticky: bool,
) -> G {
    let sign = u64::from(negative) << (size_of::<G>() * 8 - 1);
    let Some(top) = digits.iter().rposition(|&digit| digit != 0) else {
        // Both callers keep at least 32 bits below half of the smallest subnormal, or no sticky part.
        return if sticky {
            G::from_bits64(sign)
        } else {
            G::ZERO
        };
    };
    let high_bit = top as i32 * 32 + 31 - digits[top].leading_zeros() as i32;

    // Position in `digits` of the result's last bit: PRECISION bits from the top, but never below
    // the subnormals' last bit.
    let last_bit = (high_bit - (G::PRECISION as i32 - 1)).max(G::MIN_LSB_EXPONENT - lsb_exponent);
    let significand = if last_bit <= 0 {
        debug_assert!(!sticky);
        bits_from(digits, 0) << -last_bit
    } else {
        let last_bit = last_bit as usize;
        let truncated = bits_from(digits, last_bit);
        let half = bits_from(digits, last_bit - 1) & 1 == 1;
        let below = sticky || any_bit_below(digits, last_bit - 1);
        truncated + u64::from(half && (below || truncated & 1 == 1))
    };

    // With the exponent field of the last bit (0 for subnormals and for the smallest normals), the
    // hidden bit carries into the field by itself, and so does a significand rounded up to 2^PRECISION.
    let exponent = (lsb_exponent + last_bit - G::MIN_LSB_EXPONENT) as u64;
    let magnitude = (exponent << (G::PRECISION - 1)) + significand;
    G::from_bits64(sign | magnitude.min(G::INFINITY.to_bits64()))
}

/// The 64 bits of `digits` from bit `from` upwards.
fn bits_from(digits: &[u32], from: usize) -> u64 {
    let digit = |i: usize| u128::from(digits.get(from / 32 + i).copied().unwrap_or(0));
    ((digit(0) | digit(1) << 32 | digit(2) << 64) >> (from % 32)) as u64
}

/// Whether any of the bits 0..`end` of `digits` is set.
fn any_bit_below(digits: &[u32], end: usize) -> bool {
    digits[..(end / 32).min(digits.len())]
        .iter()
        .any(|&digit| digit != 0)
        || digits
            .get(end / 32)
            .is_some_and(|&digit| digit & ((1 << (end % 32)) - 1) != 0)
}

/// Divides `digits` (base 2³², least significant first) by `divisor` in place; returns whether there
/// was a remainder.
pub(crate) fn divide_digits(digits: &mut [u32], divisor: core::num::NonZeroU64) -> bool {
    let divisor = u128::from(divisor.get());
    let mut remainder = 0u128;
    for digit in digits.iter_mut().rev() {
        let dividend = remainder << 32 | u128::from(*digit);
        *digit = (dividend / divisor) as u32;
        remainder = dividend % divisor;
    }
    remainder != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_like_the_conversion_of_u128() {
        // `as` from u128 rounds to nearest even, by the language reference.
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..20_000 {
            let wide = (u128::from(next()) << 64 | u128::from(next())) >> (next() % 128);
            // Sparse values, so that ties come up.
            let wide = if next() % 2 == 0 {
                wide
            } else {
                wide & !0 << (next() % 100)
            };
            let digits: Vec<u32> = (0..4).map(|i| (wide >> (32 * i)) as u32).collect();
            let f64_bits = round_digits::<f64>(false, &digits, 0, false).to_bits();
            assert_eq!(f64_bits, (wide as f64).to_bits(), "{wide:#x}");
            let f32_bits = round_digits::<f32>(false, &digits, 0, false).to_bits();
            assert_eq!(f32_bits, (wide as f32).to_bits(), "{wide:#x}");
        }
    }

    #[test]
    fn subnormal_results_round_at_the_last_subnormal_bit() {
        // 3/4, 1/2 and 5/2 of the smallest subnormal of f32.
        assert_eq!(round_digits::<f32>(false, &[3], -151, false).to_bits(), 1);
        assert_eq!(
            round_digits::<f32>(true, &[2], -151, false).to_bits(),
            1 << 31
        );
        assert_eq!(round_digits::<f32>(false, &[2], -151, true).to_bits(), 1);
        assert_eq!(round_digits::<f32>(false, &[10], -151, false).to_bits(), 2);
    }

    #[test]
    fn values_beyond_the_range_are_infinite() {
        let half_ulp_below = round_digits::<f32>(false, &[0xffff_ff7f], 96, false);
        assert_eq!(half_ulp_below, f32::MAX);
        assert_eq!(
            round_digits::<f32>(false, &[0xffff_ff80], 96, false),
            f32::INFINITY
        );
        assert_eq!(
            round_digits::<f64>(true, &[1], 1024, false),
            f64::NEG_INFINITY
        );
    }

    #[test]
    fn division_leaves_quotient_and_remainder() {
        let mut digits = [7, 0, 1];
        let whole = 7u128 + (1u128 << 64);
        let inexact = divide_digits(
            &mut digits,
            core::num::NonZeroU64::new(0x1_0000_0003).unwrap(),
        );
        let quotient = whole / 0x1_0000_0003;
        assert_eq!(
            digits,
            [
                quotient as u32,
                (quotient >> 32) as u32,
                (quotient >> 64) as u32
            ]
        );
        assert_eq!(inexact, !whole.is_multiple_of(0x1_0000_0003));
    }
}
