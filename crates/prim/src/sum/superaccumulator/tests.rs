//! The truth is `num-bigint`: every finite value is an integer multiple of the smallest subnormal,
//! so an exact sum is a sum of big integers.

use num_bigint::BigInt;
use proptest::prelude::*;

use super::*;

/// `value` in units of the smallest subnormal of its type.
fn exact<F: Float>(value: F) -> BigInt {
    let field = F::PRECISION - 1;
    let bits = value.to_bits64();
    let exponent = (bits >> field) & (F::INFINITY.to_bits64() >> field);
    let fraction = bits & ((1 << field) - 1);
    let magnitude = if exponent == 0 {
        BigInt::from(fraction)
    } else {
        BigInt::from(fraction | 1 << field) << (exponent - 1)
    };
    if bits >> (size_of::<F>() * 8 - 1) == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// Distance of `result` from the exact quotient `sum / count` must be minimal: no neighbour is
/// closer, and of two equally close ones the even significand wins.
fn assert_nearest<F: Float>(sum: &BigInt, count: u64, result: F) {
    let distance = |value: F| {
        let difference = exact(value) * count - sum;
        if difference < BigInt::ZERO {
            -difference
        } else {
            difference
        }
    };
    let magnitude = result.to_bits64() & !(1 << (size_of::<F>() * 8 - 1));
    let sign = result.to_bits64() - magnitude;
    if magnitude == F::INFINITY.to_bits64() {
        // Infinite from half an ulp beyond the largest finite value on.
        let largest = exact(F::from_bits64(magnitude - 1));
        let below = exact(F::from_bits64(magnitude - 2));
        let half_beyond = (&largest * 2 + (&largest - below)) * count;
        let twice: BigInt = if sign == 0 { sum * 2 } else { sum * -2 };
        assert!(twice >= half_beyond);
        return;
    }
    let here = distance(result);
    for neighbour in [magnitude.wrapping_sub(1), magnitude + 1] {
        if neighbour >= F::INFINITY.to_bits64() {
            continue;
        }
        let there = distance(F::from_bits64(sign | neighbour));
        assert!(
            here < there || (here == there && magnitude & 1 == 0),
            "{result:?}"
        );
    }
}

/// Values of every magnitude, many close to the last one negated, many special.
fn finite_f64() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()),
        2 => -1e3..1e3f64,
        1 => (0u64..1 << 53).prop_map(f64::from_bits),
        1 => prop::sample::select(vec![0.0, -0.0, f64::MAX, -f64::MAX, f64::MIN_POSITIVE, 1.0]),
    ]
}

fn finite_f32() -> impl Strategy<Value = f32> {
    prop_oneof![
        4 => any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |x| x.is_finite()),
        2 => -1e3..1e3f32,
        1 => (0u32..1 << 24).prop_map(f32::from_bits),
        1 => prop::sample::select(vec![0.0, -0.0, f32::MAX, -f32::MAX, f32::MIN_POSITIVE, 1.0]),
    ]
}

fn check<F: Float>(values: &[F], cancelled: usize, count: u64) {
    let mut accumulator = Superaccumulator::<F>::new();
    let mut sum = BigInt::ZERO;
    let negated = values.iter().take(cancelled);
    let negated = negated.map(|x| F::from_bits64(x.to_bits64() ^ 1 << (size_of::<F>() * 8 - 1)));
    for value in values.iter().copied().chain(negated) {
        accumulator.add(value);
        sum += exact(value);
    }
    if sum != BigInt::ZERO {
        assert_nearest(&sum, 1, accumulator.round());
        assert_nearest(
            &sum,
            count,
            accumulator.mean(NonZeroU64::new(count).unwrap()),
        );
    } else if !values.is_empty()
        && values
            .iter()
            .any(|x| x.to_bits64() != F::NEG_ZERO.to_bits64())
    {
        assert_eq!(accumulator.round().to_bits64(), 0);
    }
    if size_of::<F>() == 4 && sum != BigInt::ZERO {
        // Scaled so that units are those of f64.
        assert_nearest::<f64>(&(sum << (1074 - 149)), 1, accumulator.round_f64());
    }
}

proptest! {
    #[test]
    fn f64_sums_are_correctly_rounded(
        values in prop::collection::vec(finite_f64(), 0..40), cancelled in 0usize..40,
        count in 1u64..=u64::MAX,
    ) {
        check(&values, cancelled, count);
    }

    #[test]
    fn f32_sums_are_correctly_rounded(
        values in prop::collection::vec(finite_f32(), 0..40), cancelled in 0usize..40,
        count in prop_oneof![1u64..100, 1u64..=u64::MAX],
    ) {
        check(&values, cancelled, count);
    }

    #[test]
    fn order_and_grouping_do_not_matter(
        values in prop::collection::vec(any::<u64>().prop_map(f64::from_bits), 1..40),
        cuts in prop::collection::vec(0usize..40, 0..5),
    ) {
        let mut whole = Superaccumulator::new();
        whole.extend(values.iter().rev().copied());
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(values.len())).collect();
        cuts.extend([0, values.len()]);
        cuts.sort_unstable();
        let mut merged = Superaccumulator::new();
        let mut words = [0u64; Superaccumulator::<f64>::WORDS];
        for part in cuts.windows(2) {
            let mut accumulator = Superaccumulator::new();
            accumulator.extend(values[part[0]..part[1]].iter().copied());
            merged.merge(&accumulator);
            words.iter_mut().zip(accumulator.to_words()).for_each(|(a, b)| *a = a.wrapping_add(b));
        }
        prop_assert_eq!(whole.to_words(), merged.to_words());
        prop_assert_eq!(whole.to_words(), Superaccumulator::<f64>::from_words(words).to_words());
        prop_assert_eq!(whole.round().to_bits(), merged.round().to_bits());
    }
}

fn sum_of(values: &[f32]) -> f32 {
    let mut accumulator = Superaccumulator::new();
    accumulator.extend(values.iter().copied());
    accumulator.round()
}

#[test]
fn special_values_follow_ieee() {
    let (inf, nan) = (f32::INFINITY, f32::from_bits(0xffa0_1234));
    assert_eq!(sum_of(&[1.0, inf, -5.0]), inf);
    assert_eq!(sum_of(&[-inf, f32::MAX, -inf]), -inf);
    assert_eq!(sum_of(&[inf, -inf]).to_bits(), 0x7fc0_0000);
    assert_eq!(sum_of(&[nan, 1.0]).to_bits(), 0x7fc0_0000);
    assert_eq!(sum_of(&[f32::MAX, f32::MAX]), inf);
    assert_eq!(sum_of(&[f32::MAX, f32::MAX, -f32::MAX]), f32::MAX);
    let mut accumulator = Superaccumulator::<f64>::new();
    accumulator.extend([f64::NAN, f64::INFINITY]);
    assert_eq!(accumulator.round().to_bits(), 0x7ff8_0000_0000_0000);
}

#[test]
fn the_sign_of_a_zero_sum_does_not_depend_on_order() {
    assert_eq!(sum_of(&[]).to_bits(), (-0.0f32).to_bits());
    assert_eq!(sum_of(&[-0.0, -0.0]).to_bits(), (-0.0f32).to_bits());
    for values in [[-0.0, 0.0, -0.0], [1.0, -0.0, -1.0], [-1.0, 1.0, -0.0]] {
        assert_eq!(sum_of(&values).to_bits(), 0);
    }
}

#[test]
fn the_mean_may_come_from_a_sum_beyond_the_range() {
    let mut accumulator = Superaccumulator::new();
    accumulator.extend([f64::MAX; 3]);
    assert_eq!(accumulator.round(), f64::INFINITY);
    assert_eq!(accumulator.mean(NonZeroU64::new(3).unwrap()), f64::MAX);
}

#[test]
fn carries_before_limbs_overflow() {
    // Doubling by merging reaches 2^40 copies, with far more pending additions than a limb holds.
    for value in [f32::MAX, -f32::MAX, f32::from_bits(1)] {
        let mut accumulator = Superaccumulator::new();
        accumulator.add(value);
        for _ in 0..40 {
            let copy = accumulator;
            accumulator.merge(&copy);
        }
        assert_eq!(accumulator.mean(NonZeroU64::new(1 << 40).unwrap()), value);
    }
    // The same through words: 2^20 copies of an accumulator with full limbs.
    let mut accumulator = Superaccumulator::new();
    accumulator.extend([-1e-300, f64::from_bits(0x3fef_ffff_ffff_ffff), 1e300]);
    let expected = accumulator.mean(NonZeroU64::new(1).unwrap());
    let words = accumulator
        .to_words()
        .map(|word| word.wrapping_mul(1 << 20));
    let scaled = Superaccumulator::<f64>::from_words(words);
    assert_eq!(scaled.mean(NonZeroU64::new(1 << 20).unwrap()), expected);
}
