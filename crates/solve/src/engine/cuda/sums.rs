//! Sums of squares as kernels leave them.

use bytemuck::Zeroable;
use crosswarp_prim::{Float, Superaccumulator};

use crate::element::Real;

/// The accumulator of a sum of squares whose words the kernels have added up.
pub(crate) fn sum_of_squares<F: Real>(words: &[u64]) -> Superaccumulator<F> {
    let mut sum = <F as Float>::Words::zeroed();
    sum.as_mut().copy_from_slice(words);
    // The kernels do not count values other than −0.0; that a sum is not −0.0 makes no difference to a norm.
    sum.as_mut()[words.len() - 4] = 1;
    Superaccumulator::from_words(sum)
}
