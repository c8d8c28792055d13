use super::*;
use crate::sum::vector_leaf::SumOfSquares;

/// Totals of leaves of one element each, of `f32` and of `f64`.
fn total(values: &[f32]) -> LeafTotal<f32> {
    let mut total = LeafTotal::new();
    for &value in values {
        total.add_leaf::<f32, SumOfSquares>(value * value, &[&[value]]);
    }
    total
}

/// The total, rounded to `f64`.
fn f64_of(total: &LeafTotal<f32>) -> f64 {
    total
        .widened()
        .map_or_else(|| total.sum.round_f64(), |all| all.round_f64())
}

#[test]
fn words_hold_all_of_it_and_add_up() {
    let lists: [&[f32]; 5] = [
        &[1.0, 2.0],
        &[1e30, 3.0],
        &[1e-40, f32::from_bits(1)],
        &[f32::MAX, f32::from_bits(1), 1.0],
        &[],
    ];
    for a in lists {
        for b in lists {
            let mut both = total(a);
            both.merge(&total(b));
            let expected = f64_of(&both);
            let squares = a.iter().chain(b).map(|&x| f64::from(x) * f64::from(x));
            let mut exact = Superaccumulator::<f64>::new();
            exact.extend(squares);
            if !(a.is_empty() && b.is_empty()) {
                assert_eq!(expected, exact.round());
            }
            let (x, y) = (total(a).to_words(), total(b).to_words());
            let sum: Vec<u64> = x.iter().zip(y).map(|(x, y)| x.wrapping_add(y)).collect();
            assert_eq!(sum.len(), LeafTotal::<f32>::WORDS);
            let back = LeafTotal::<f32>::from_words(&sum);
            assert_eq!(f64_of(&back).to_bits(), expected.to_bits(), "{a:?} {b:?}");
            assert_eq!(back.round().to_bits(), both.round().to_bits());
        }
    }
}

#[test]
fn negative_totals_keep_their_sign_in_words() {
    for value in [-1e200f64, -1e-80, -1.0, 1e75, -1.5e80] {
        let mut total = LeafTotal::<f32>::new();
        total.extend([-2.0f32].into_iter());
        // As a leaf of f32 gives them: multiples of 2^-298, below 2^267.
        let value = if value.abs() > 1e80 { -1e80 } else { value };
        total.wide.get_or_insert_default().add(value);
        let back = LeafTotal::<f32>::from_words(&total.to_words());
        let mut exact = Superaccumulator::<f64>::new();
        exact.extend([-2.0, value]);
        assert_eq!(f64_of(&back), exact.round());
        assert_eq!(back.round(), total.round());
    }
}

#[test]
fn narrow_totals_come_back_narrow() {
    for values in [
        vec![1.0f32, -3.0],
        vec![-1e38],
        vec![-0.0],
        vec![f32::NAN, 1.0],
    ] {
        let mut total = LeafTotal::<f32>::new();
        total.extend(values.into_iter());
        let back = LeafTotal::<f32>::from_words(&total.to_words());
        assert!(back.wide.is_none());
        assert_eq!(back.round().to_bits(), total.round().to_bits());
    }
}

#[test]
fn a_sum_as_two_numbers_is_exact_or_refused() {
    let mut taken = 0;
    for values in [
        vec![],
        vec![-0.0, -0.0],
        vec![0.0, -0.0],
        vec![1e16, 1.0, -1e16],
        vec![1e300, 1.0, 1e-300, -1e300],
        vec![f64::MAX, f64::MAX, -f64::MAX],
        vec![1.0, f64::NAN],
        vec![f64::INFINITY, f64::NEG_INFINITY],
        vec![5e-324, -1.0, 1.0],
        (0..1000).map(|k| f64::from(k).sin()).collect(),
    ] {
        let mut total = LeafTotal::<f64>::new();
        let mut exact = LeafTotal::<f64>::new();
        exact.extend(values.iter().copied());
        if total.add_as_two(values.iter().copied()) {
            taken += 1;
            assert_eq!(
                total.round().to_bits(),
                exact.round().to_bits(),
                "{values:?}"
            );
        } else {
            assert_eq!(total.to_words(), LeafTotal::<f64>::new().to_words());
        }
    }
    // All but three numbers far apart, an overflow, NaN and infinities.
    assert_eq!(taken, 6);
}
