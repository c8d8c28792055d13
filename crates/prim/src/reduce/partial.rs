//! Partial results: what a part of an array has been reduced to, as the words in which PEs exchange it
//! ([`RemotePart::partial`](crate::reduce::part::RemotePart::partial)).

use crate::reduce::integer_total::IntegerTotal;
use crate::sum::leaf_total::LeafTotal;
use crate::{DType, Element, Float, Op};

/// Combines the partial result of what comes before with that of the elements from `offset` on.
pub(crate) fn combine<T: Element>(op: Op, total: &mut Vec<u64>, words: &[u64], offset: u64) {
    match (op, T::DTYPE.is_float()) {
        (Op::Min | Op::Argmin, _) => take_first::<T, false>(total, words, offset),
        (Op::Max | Op::Argmax, _) => take_first::<T, true>(total, words, offset),
        (Op::Prod, true) => total.extend(words),
        (_, true) if T::DTYPE == DType::F64 => add_leaf_totals::<f64>(total, words),
        (_, true) => add_leaf_totals::<f32>(total, words),
        (Op::Prod, false) => total[0] = total[0].wrapping_mul(words[0]),
        (Op::Dot, false) => total[0] = total[0].wrapping_add(words[0]),
        (_, false) => {
            let mut both = IntegerTotal::from_words(total);
            both.merge(&IntegerTotal::from_words(words));
            total.copy_from_slice(&both.words);
        }
    }
}

/// Of two extrema (whether there is one, its index, its bits) the first of the better ones.
pub(crate) fn take_first<T: Element, const MAX: bool>(
    best: &mut [u64],
    words: &[u64],
    offset: u64,
) {
    let rank = |bits| T::from_bits64(bits).rank::<MAX>();
    if words[0] == 1 && (best[0] == 0 || rank(words[2]) < rank(best[2])) {
        best.copy_from_slice(&[1, offset + words[1], words[2]]);
    }
}

fn add_leaf_totals<F: Float>(total: &mut [u64], words: &[u64]) {
    let mut both = LeafTotal::<F>::from_words(total);
    both.merge(&LeafTotal::from_words(words));
    total.copy_from_slice(&both.to_words());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_results_add_up() {
        let mut extremum = vec![1, 7, 5];
        combine::<i32>(Op::Min, &mut extremum, &[1, 3, 5], 10);
        assert_eq!(extremum, [1, 7, 5], "the first of equals stays");
        combine::<i32>(Op::Argmin, &mut extremum, &[1, 3, 0xffff_ffff], 10);
        assert_eq!(extremum, [1, 13, 0xffff_ffff]);
        combine::<i32>(Op::Max, &mut extremum, &[0, 0, 0], 10);
        assert_eq!(extremum, [1, 13, 0xffff_ffff]);

        let mut integers = vec![u64::MAX, u64::MAX, 0];
        combine::<u64>(Op::Sum, &mut integers, &[1, 0, 0], 0);
        assert_eq!(integers, [0, 0, 1]);
        let mut product = vec![3];
        combine::<u8>(Op::Prod, &mut product, &[5], 0);
        assert_eq!(product, [15]);

        let words = |values: &[f32]| {
            let mut sum = LeafTotal::new();
            sum.extend(values.iter().copied());
            sum.to_words()
        };
        let mut sums = words(&[1e20, 1.0]);
        combine::<f32>(Op::Norm2, &mut sums, &words(&[-1e20]), 0);
        assert_eq!(sums, words(&[1.0, 1e20, -1e20]));
        let mut products = vec![1, 2];
        combine::<f64>(Op::Prod, &mut products, &[3], 0);
        assert_eq!(products, [1, 2, 3]);
    }
}
