//! Sums, means, dot products and norms of values near the ends of their type's range: against the rule of leaves
//! followed word for word, with totals as rational numbers (`num-bigint`) and a rounding found by bisection.

use crosswarp_prim::{Op, ReduceError, Reducer, Simd, Value};
use crosswarp_shmem::spmd;
use half::bf16;
use num_bigint::BigInt;
use proptest::prelude::*;

/// Exact sums are counted in units of 2^−1074, of which every `f64` is a multiple.
fn exact(value: f64) -> BigInt {
    let bits = value.to_bits();
    let (exponent, fraction) = (bits >> 52 & 2047, bits & ((1 << 52) - 1));
    assert!(exponent < 2047, "a finite value");
    let magnitude = match exponent {
        0 => BigInt::from(fraction),
        _ => BigInt::from(fraction | 1 << 52) << (exponent - 1),
    };
    if bits >> 63 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// sum / count to the nearest value, ties to even, of the format whose value number k (by bits, from 0 upwards) is
/// `value(k)`, and of which number `infinity` stands for 2^`limit`.
fn nearest(sum: &BigInt, count: u64, infinity: u64, limit: u32, value: impl Fn(u64) -> f64) -> u64 {
    let magnitude = if *sum < BigInt::ZERO {
        -sum
    } else {
        sum.clone()
    };
    let number = |k: u64| match k {
        k if k == infinity => BigInt::from(1) << (limit + 1074),
        k => exact(value(k)),
    };
    // The last number that is not above the quotient.
    let (mut low, mut high) = (0, infinity + 1);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if number(middle) * count <= magnitude {
            low = middle
        } else {
            high = middle
        }
    }
    if low == infinity {
        return infinity;
    }
    let twice = (number(low) + number(low + 1)) * count;
    match (&magnitude * 2u32).cmp(&twice) {
        std::cmp::Ordering::Less => low,
        std::cmp::Ordering::Equal => low + (low & 1),
        std::cmp::Ordering::Greater => low + 1,
    }
}

fn nearest_f32(sum: &BigInt, count: u64) -> f32 {
    let value = |k: u64| f32::from_bits(k as u32).into();
    let size = f32::from_bits(nearest(sum, count, 0x7f80_0000, 128, value) as u32);
    if *sum < BigInt::ZERO { -size } else { size }
}

fn nearest_f64(sum: &BigInt, count: u64) -> f64 {
    let size = nearest(sum, count, f64::INFINITY.to_bits(), 1024, f64::from_bits);
    if *sum < BigInt::ZERO {
        -f64::from_bits(size)
    } else {
        f64::from_bits(size)
    }
}

/// The rule of the `leaf` module, one term at a time.
fn leaf<F: Copy + std::ops::Add<Output = F>>(terms: impl Iterator<Item = F>, identity: F) -> F {
    let mut lanes = [identity; 128];
    for (k, term) in terms.enumerate() {
        lanes[k % 128] = lanes[k % 128] + term;
    }
    let mut half = 64;
    while half > 0 {
        for k in 0..half {
            lanes[k] = lanes[k] + lanes[k + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The exact total of the leaves of finite inputs, each in `f32` or, where the contract says so, in `f64`.
fn total(op: Op, x: &[f32], y: &[f32]) -> BigInt {
    let mut total = BigInt::ZERO;
    for (x, y) in x.chunks(2048).zip(y.chunks(2048)) {
        let pairs = || x.iter().copied().zip(y.iter().copied());
        let narrow = leaf(
            pairs().map(|(x, y)| match op {
                Op::Norm2 => x * x,
                Op::Dot => x * y,
                _ => x,
            }),
            -0.0f32,
        );
        let wide = leaf(
            pairs().map(|(x, y)| match op {
                Op::Norm2 => f64::from(x) * f64::from(x),
                Op::Dot => f64::from(x) * f64::from(y),
                _ => f64::from(x),
            }),
            -0.0f64,
        );
        // The smallest normal number is 2^−126, the root of which is 2^−63.
        let lost = |x: &f32| *x != 0.0 && f64::from(x.abs()) < 2f64.powi(-63);
        let small = op == Op::Norm2 && f64::from(narrow) < 2f64.powi(-100) && x.iter().any(lost);
        total += exact(if !narrow.is_finite() || small {
            wide
        } else {
            f64::from(narrow)
        });
    }
    total
}

fn expected(op: Op, x: &[f32], y: &[f32]) -> f32 {
    let total = total(op, x, y);
    match op {
        Op::Norm2 => nearest_f64(&total, 1).sqrt() as f32,
        Op::Mean => nearest_f32(&total, x.len() as u64),
        _ => nearest_f32(&total, 1),
    }
}

const SUMS: [Op; 4] = [Op::Sum, Op::Mean, Op::Norm2, Op::Dot];

fn reduce(reducer: Reducer<'_>, op: Op, x: &[f32], y: &[f32]) -> f32 {
    match reducer.reduce(op, &[x, y][..op.inputs()]) {
        Ok(Value::F32(value)) => value,
        other => panic!("{op}: {other:?}"),
    }
}

/// All sums, with every vector unit, and over PEs with parts that end at `cuts`.
fn check(x: &[f32], y: &[f32], cuts: &[usize]) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (x.len() + 1)).collect();
    cuts.extend([0, x.len()]);
    cuts.sort_unstable();
    let together = spmd(cuts.len() - 1, |pe| {
        let part = cuts[pe.my_pe()]..cuts[pe.my_pe() + 1];
        SUMS.map(|op| {
            reduce(
                Reducer::new().on(pe),
                op,
                &x[part.clone()],
                &y[part.clone()],
            )
        })
    })
    .unwrap();
    for (k, op) in SUMS.into_iter().enumerate() {
        let expected = expected(op, x, y);
        // The sign of a zero is another test's.
        let same =
            |value: f32| value.to_bits() == expected.to_bits() || value == 0.0 && expected == 0.0;
        for simd in Simd::available() {
            let value = reduce(Reducer::new().simd(simd), op, x, y);
            assert!(
                same(value),
                "{op} of {} with {simd}: {value:e}, not {expected:e}",
                x.len()
            );
        }
        for results in &together {
            assert!(
                same(results[k]),
                "{op}, cuts {cuts:?}: {:e}, not {expected:e}",
                results[k]
            );
        }
    }
}

fn at(len: usize, values: &[(usize, f32)]) -> Vec<f32> {
    let mut x = vec![0.0; len];
    values.iter().for_each(|&(k, value)| x[k] = value);
    x
}

#[test]
fn finite_values_have_finite_sums() {
    let reducer = Reducer::new();
    let cancels = at(256, &[(0, 3e38), (128, 3e38), (64, -3e38), (192, -3e38)]);
    assert_eq!(reducer.sum(&cancels), Ok(0.0));
    assert_eq!(reducer.mean(&cancels), Ok(0.0));
    assert_eq!(reducer.mean(&[3e38f32, 3e38]), Ok(3e38));
    assert_eq!(reducer.sum(&[3e38f32, 3e38]), Ok(f32::INFINITY));
    assert_eq!(reducer.sum(&[-3e38f32, -3e38]), Ok(f32::NEG_INFINITY));
    assert_eq!(reducer.norm2(&[1e20f32]), Ok(1e20));
    assert_eq!(reducer.norm2(&[1e-30f32; 4]), Ok(2e-30));
    assert_eq!(reducer.norm2(&[f32::MAX]), Ok(f32::MAX));
    assert_eq!(reducer.norm2(&[f32::from_bits(1)]), Ok(f32::from_bits(1)));
    assert_eq!(reducer.dot(&[1e30f32, 1e30], &[1e30, -1e30]), Ok(0.0));
    let large = bf16::from_f32(3e38);
    assert_eq!(reducer.mean(&[large, large]), Ok(large.to_f32()));
    assert_eq!(
        reducer.norm2(&[bf16::from_f32(1e30)]),
        Ok(bf16::from_f32(1e30).to_f32())
    );
    // Every one of the leaves overflows, their sum does not.
    let mut many = vec![3e38f32; 4096];
    many.extend(vec![-3e38f32; 4095]);
    assert_eq!(reducer.sum(&many), Ok(3e38));
}

#[test]
fn infinities_and_nans_come_from_such_elements() {
    let reducer = Reducer::new();
    let infinity = at(500, &[(0, f32::INFINITY), (64, -3e38), (192, -3e38)]);
    assert_eq!(reducer.sum(&infinity), Ok(f32::INFINITY));
    let both = at(500, &[(0, f32::INFINITY), (64, f32::NEG_INFINITY)]);
    assert!(reducer.sum(&both).unwrap().is_nan());
    let nan = reducer
        .norm2(&at(500, &[(3, f32::NAN), (5, 1e30)]))
        .unwrap();
    assert_eq!(nan.to_bits(), 0x7fc0_0000);
    assert!(reducer.dot(&[0.0f32], &[f32::INFINITY]).unwrap().is_nan());
}

/// In f64, whose leaves cannot be computed in anything wider: terms that do not overflow are added exactly.
#[test]
fn leaves_of_f64_that_overflow_are_added_exactly() {
    let reducer = Reducer::new();
    let mut x = vec![0.0f64; 256];
    (x[0], x[128], x[64], x[192]) = (1.7e308, 1.7e308, -1.7e308, -1.7e308);
    x[5] = 1.0;
    assert_eq!(reducer.sum(&x), Ok(1.0));
    assert_eq!(reducer.mean(&[1.7e308f64, 1.7e308]), Ok(1.7e308));
    // Two squares in the range of f64, whose sum is not.
    let norm = reducer.norm2(&[1e154f64, 1e154]).unwrap();
    assert_eq!(
        norm,
        ((1e154 * 1e154) * 2f64.powi(-63)).sqrt() * 2f64.powi(32)
    );
    // A square beyond the range of f64 is infinite.
    assert_eq!(reducer.norm2(&[1e200f64]), Ok(f64::INFINITY));
}

#[test]
fn no_elements_have_the_sum_0_and_the_product_1() {
    let reducer = Reducer::new();
    for op in Op::ALL {
        let value = reducer.reduce::<f32>(*op, &vec![&[][..]; op.inputs()]);
        match op {
            Op::Sum | Op::ExactSum | Op::Dot | Op::Norm2 => {
                assert_eq!(value.unwrap().bits(), 0, "{op}")
            }
            Op::Prod => assert_eq!(value, Ok(Value::F32(1.0))),
            _ => assert_eq!(value, Err(ReduceError::Empty { op: *op })),
        }
    }
    assert_eq!(
        reducer.sum(&[-0.0f32]).unwrap().to_bits(),
        (-0.0f32).to_bits()
    );
}

#[test]
fn many_threads_share_leaves_that_are_computed_again() {
    // 64 MiB, so that there are several threads, and a last leaf that is not whole, whose lanes overflow when they are halved.
    let x: Vec<f32> = (0..(16 << 20) + 77)
        .map(|k: u32| match k % 5000 {
            7 | 135 | 2218 | 2282 => 3e38,
            71 | 199 | 2219 | 2283 => -3e38,
            _ => (k % 1000) as f32 * 1e-3,
        })
        .collect();
    let alone = SUMS.map(|op| reduce(Reducer::new(), op, &x, &x).to_bits());
    let threads = SUMS.map(|op| reduce(Reducer::new().threads(3), op, &x, &x).to_bits());
    assert_eq!(threads, alone);
    assert_eq!(f32::from_bits(alone[0]), expected(Op::Sum, &x, &x));
    assert_eq!(f32::from_bits(alone[2]), expected(Op::Norm2, &x, &x));
}

/// Values with exponents from `exponents`, of either sign or not.
fn value(exponents: std::ops::Range<u32>, signs: bool) -> impl Strategy<Value = f32> {
    (exponents, 0u32..1 << 23, any::<bool>()).prop_map(move |(exponent, fraction, negative)| {
        let size = f32::from_bits(exponent << 23 | fraction);
        if negative && signs { -size } else { size }
    })
}

/// Arrays of one kind: near the top of the range; where squares begin to overflow; where they underflow, all of them or
/// beside larger ones; subnormal; anything finite; each with zeros between.
fn array() -> impl Strategy<Value = Vec<f32>> {
    let kind = prop_oneof![
        Just((250..255, true)),
        Just((250..255, false)),
        Just((185..195, true)),
        Just((50..68, true)),
        Just((30..66, true)),
        Just((0..2, true)),
        Just((0..255, true)),
        Just((75..80, true)),
    ];
    let len = prop_oneof![1usize..40, 1usize..5000];
    (kind, len, 1u32..5).prop_flat_map(|((exponents, signs), len, zeros)| {
        let one = (value(exponents, signs), 0..zeros)
            .prop_map(|(x, zero)| if zero == 0 { x } else { 0.0 });
        prop::collection::vec(one, len)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn extreme_values_follow_the_rule(
        x in array(),
        y in array(),
        cuts in prop::collection::vec(any::<usize>(), 0..3),
    ) {
        let len = x.len().min(y.len());
        check(&x[..len], &y[..len], &cuts);
        check(&x, &x, &[]);
    }
}
