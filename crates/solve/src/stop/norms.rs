//! Sums of squares over all PEs, exactly.

use bytemuck::Zeroable;
use crosswarp_prim::{Float, Superaccumulator};

use crate::element::Real;
use crate::pes::agree::first_of;
use crate::pes::error::PeError;
use crate::pes::reduction::Reduction;

/// Words that are added up for `sweeps` sweeps: an accumulator each, and the interrupts.
pub(crate) fn words<F: Real>(sweeps: usize) -> usize {
    sweeps * Superaccumulator::<F>::WORDS + 1
}

/// Makes of each of `sums` the sum over all PEs, the same on every PE, and says whether any PE is `interrupted`.
/// Collective. `words` is memory that is used again.
pub(crate) fn sum_over_pes<F: Real>(
    reduction: &Reduction<'_>,
    sums: &mut [Superaccumulator<F>],
    interrupted: bool,
    words: &mut Vec<u64>,
) -> Result<bool, PeError> {
    words.clear();
    for sum in sums.iter() {
        words.extend_from_slice(sum.to_words().as_ref());
    }
    words.push(interrupted.into());
    reduction.sum(words)?;
    let interrupted = words.pop() != Some(0);
    for (sum, all) in sums
        .iter_mut()
        .zip(words.chunks_exact(Superaccumulator::<F>::WORDS))
    {
        let mut words = <F as Float>::Words::zeroed();
        words.as_mut().copy_from_slice(all);
        *sum = Superaccumulator::from_words(words);
    }
    Ok(interrupted)
}

/// The first PE whose own `sums` are not finite; none where only all together are not. Collective.
pub(crate) fn not_finite_on<F: Real>(
    reduction: &Reduction<'_>,
    sums: &[Superaccumulator<F>],
) -> Result<Option<usize>, PeError> {
    first_of(reduction, !sums.iter().all(Superaccumulator::is_finite))
}
