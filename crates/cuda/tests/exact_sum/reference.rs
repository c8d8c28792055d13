//! Exact sums by integers of any length, and the values to add up.

use num_bigint::{BigInt, Sign};

/// A binary format.
pub trait Float: Copy {
    /// As kernels are named.
    const NAME: &'static str;
    /// Bits of a significand, with the hidden one.
    const PRECISION: u64;
    /// All bits.
    const BITS: u64;

    fn from_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;

    /// Of the sign.
    fn sign_bit() -> u64 {
        1 << (Self::BITS - 1)
    }

    fn infinity() -> u64 {
        Self::sign_bit() - (1 << (Self::PRECISION - 1))
    }

    /// The bits of the sum of all values, rounded once to nearest even. Of NaNs, or infinities of both signs: the quiet
    /// NaN; of zeros: +0 unless all are −0.
    fn exact_sum(values: &[Self]) -> u64 {
        let (sign, infinity) = (Self::sign_bit(), Self::infinity());
        let field = Self::PRECISION - 1;
        let (mut nan, mut infinite, mut all_neg_zero) = (false, [false; 2], true);
        // In units of the least subnormal number.
        let mut sum = BigInt::ZERO;
        for bits in values.iter().map(|value| value.to_bits()) {
            let (negative, magnitude) = (bits & sign != 0, bits & !sign);
            all_neg_zero &= bits == sign;
            if magnitude >= infinity {
                nan |= magnitude > infinity;
                infinite[usize::from(negative)] = true;
                continue;
            }
            let (exponent, fraction) = (magnitude >> field, magnitude & ((1 << field) - 1));
            let hidden = u64::from(exponent > 0);
            let value = BigInt::from(fraction | hidden << field) << (exponent - hidden);
            sum += if negative { -value } else { value };
        }
        match infinite {
            _ if nan => infinity | 1 << (field - 1),
            [true, true] => infinity | 1 << (field - 1),
            [true, false] => infinity,
            [false, true] => infinity | sign,
            _ if all_neg_zero => sign,
            _ => Self::rounded(&sum),
        }
    }

    /// A number of least subnormal numbers, as bits.
    fn rounded(sum: &BigInt) -> u64 {
        let magnitude = sum.magnitude();
        // What is cut off: nothing of subnormal numbers.
        let cut = magnitude.bits().saturating_sub(Self::PRECISION);
        let kept = magnitude >> cut;
        let rest = (magnitude - (&kept << cut)) << 1u32;
        let half = num_bigint::BigUint::from(1u32) << cut;
        let up = cut > 0 && (rest > half || (rest == half && kept.bit(0)));
        let kept = kept.to_u64_digits().first().copied().unwrap_or(0) + u64::from(up);
        // A significand's hidden bit counts on into the exponent.
        let bits = ((cut << (Self::PRECISION - 1)) + kept).min(Self::infinity());
        bits | if sum.sign() == Sign::Minus {
            Self::sign_bit()
        } else {
            0
        }
    }
}

impl Float for f32 {
    const NAME: &'static str = "float";
    const PRECISION: u64 = 24;
    const BITS: u64 = 32;

    fn from_bits(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }

    fn to_bits(self) -> u64 {
        u64::from(f32::to_bits(self))
    }
}

impl Float for f64 {
    const NAME: &'static str = "double";
    const PRECISION: u64 = 53;
    const BITS: u64 = 64;

    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }

    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }
}

/// Values to add up, with what they are.
pub fn cases<T: Float>() -> Vec<(&'static str, Vec<T>)> {
    let (sign, infinity) = (T::sign_bit(), T::infinity());
    let field = T::PRECISION - 1;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let bias = (infinity >> field) / 2;
    let one = bias << field;
    let power = |exponent: i64| bias.wrapping_add_signed(exponent) << field;
    let greatest = infinity - 1;
    let all = sign | (sign - 1);

    let similar: Vec<u64> = (0..3001)
        .map(|_| one | random() & (sign | ((1 << field) - 1)))
        .collect();
    let any: Vec<u64> = (0..2500)
        .map(|_| random() & all)
        .filter(|bits| bits & !sign < infinity)
        .collect();
    // Each with its opposite, far from it, and something small that is left.
    let mut cancelling = any.clone();
    cancelling.extend(any.iter().rev().map(|bits| bits ^ sign));
    cancelling.insert(777, one | 1);
    let mut to_zero = cancelling.clone();
    to_zero.push(one | 1 | sign);
    let subnormal: Vec<u64> = (0..1000)
        .map(|_| random() & (sign | ((1 << field) - 1)))
        .collect();
    // Beyond the range in between, in any order but the exact one.
    let mut overflowing = vec![greatest; 900];
    overflowing.extend([greatest | sign; 899]);
    let precision = T::PRECISION as i64;
    let cases = [
        ("nothing but −0", vec![sign; 70]),
        ("zeros of both signs", vec![sign, sign, 0, sign]),
        ("one value", vec![power(-7) | 5]),
        ("of similar size", similar),
        ("any finite values", any),
        ("cancelling", cancelling),
        ("cancelling to nothing", to_zero),
        ("subnormal", subnormal.clone()),
        ("huge, tiny, huge", vec![greatest, 1, 1, greatest | sign, 1]),
        (
            "subnormal beside huge",
            [subnormal, vec![greatest, sign | 3]].concat(),
        ),
        ("beyond the range in between", overflowing),
        ("beyond the range", vec![greatest; 40]),
        ("beyond the range, negative", vec![greatest | sign; 40]),
        ("half a unit beyond, to even", vec![one, power(-precision)]),
        (
            "half a unit beyond and odd",
            vec![one | 1, power(-precision)],
        ),
        (
            "more than half by the least",
            vec![one, power(-precision), 1],
        ),
        (
            "less than half by the least",
            vec![one | 1, power(-precision), 1 | sign],
        ),
        ("infinity", vec![one, infinity, greatest | sign]),
        ("negative infinity", vec![one, infinity | sign, greatest]),
        (
            "infinities of both signs",
            vec![infinity, one, infinity | sign],
        ),
        ("NaN", vec![one, infinity | 1 << (field - 1), infinity]),
    ];
    let values = |bits: Vec<u64>| bits.into_iter().map(T::from_bits).collect();
    cases.map(|(name, bits)| (name, values(bits))).into()
}

/// The reference against sums that are known.
#[test]
fn the_reference_rounds_once() {
    let bits = |x: f64| x.to_bits();
    let sum = |values: &[f64]| f64::exact_sum(values);
    assert_eq!(sum(&[0.1, 0.2, -0.1]), bits(0.2));
    assert_eq!(sum(&[1e300, 1.0, -1e300]), bits(1.0));
    assert_eq!(sum(&[1.0, 2f64.powi(-53)]), bits(1.0));
    assert_eq!(
        sum(&[1.0, 2f64.powi(-53), 5e-324]),
        bits(1.0 + f64::EPSILON)
    );
    assert_eq!(sum(&[f64::MAX, f64::MAX]), bits(f64::INFINITY));
    assert_eq!(sum(&[f64::MAX, f64::MAX, f64::MIN]), bits(f64::MAX));
    assert_eq!(sum(&[-0.0, -0.0]), bits(-0.0));
    assert_eq!(sum(&[-0.0, 0.0]), bits(0.0));
    assert_eq!(
        sum(&[f64::INFINITY, f64::NEG_INFINITY]),
        0x7ff8_0000_0000_0000
    );
    // A sum of two f32 in f64 is exact where they are near enough; rounding it is rounding once.
    for (a, b) in [
        (1.5f32, 3e-7),
        (-7.25, 7.125),
        (1e-40, -3e-41),
        (f32::MAX, 1e31),
    ] {
        let expected = (f64::from(a) + f64::from(b)) as f32;
        assert_eq!(
            f32::exact_sum(&[a, b]),
            u64::from(f32::to_bits(expected)),
            "{a} + {b}"
        );
    }
}
