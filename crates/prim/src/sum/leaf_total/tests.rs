use super::*;
use crate::sum::vector_leaf::{Sum, SumOfSquares};

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
    let all = total.whole();
    all.widened()
        .map_or_else(|| all.sum.round_f64(), |all| all.round_f64())
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
fn numbers_that_are_not_of_f32_are_kept() {
    let total = |values: &[f32]| {
        let mut total = LeafTotal::<f32>::new();
        for &value in values {
            total.add_leaf::<f32, Sum>(value, &[&[value]]);
        }
        total
    };
    let small = 2f32.powi(-40);
    for (a, b) in [
        (vec![-1.0, -small], vec![small]),
        (vec![1e30, -1.0, small], vec![-1e30]),
    ] {
        let exact: Superaccumulator<f64> = {
            let mut exact = Superaccumulator::new();
            exact.extend(a.iter().chain(&b).map(|&x| f64::from(x)));
            exact
        };
        let mut merged = total(&a);
        merged.merge(&total(&b));
        let back = LeafTotal::<f32>::from_words(&merged.to_words());
        for all in [&merged, &back] {
            assert_eq!(f64_of(all), exact.round(), "{a:?} {b:?}");
            assert_eq!(all.round(), exact.round_to::<f32>(None, 0), "{a:?} {b:?}");
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
        total.rest().wide.get_or_insert_default().add(value);
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
        assert!(back.whole().wide.is_none());
        assert_eq!(back.round().to_bits(), total.round().to_bits());
    }
}

#[test]
fn totals_of_any_leaves_are_exact() {
    let leaves: [&[f64]; 10] = [
        &[],
        &[-0.0, -0.0],
        &[0.0, -0.0],
        &[1e16, 1.0, -1e16],
        &[1e300, 1.0, 1e-300, -1e300],
        &[f64::MAX, f64::MAX, -f64::MAX],
        &[1.0, f64::NAN],
        &[f64::INFINITY, 1.0],
        &[5e-324, -1.0, 1.0],
        &[0.1, 0.2, 0.3, 1e17],
    ];
    let total = |values: &[f64]| {
        let mut total = LeafTotal::new();
        for &value in values {
            total.add_leaf::<f64, Sum>(value, &[&[value]]);
        }
        total
    };
    let count = NonZeroU64::new(7).unwrap();
    let results = |total: &LeafTotal<f64>| {
        [total.round(), total.mean(count), total.root()].map(|x| x.canonical().to_bits())
    };
    for a in leaves {
        for b in leaves {
            let mut merged = total(a);
            merged.merge(&total(b));
            let all = [a, b].concat();
            let mut exact = LeafTotal::new();
            exact.extend(all.iter().copied());
            assert_eq!(results(&merged), results(&exact), "{a:?} and {b:?}");
            assert_eq!(results(&total(&all)), results(&exact), "{a:?} {b:?}");
            let back = LeafTotal::from_words(&merged.to_words());
            assert_eq!(results(&back), results(&exact), "{a:?} {b:?} as words");
        }
    }
}
