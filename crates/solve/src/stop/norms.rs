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

/// The first PE whose own `sums` are not finite; none where that is not one's alone: all have such sums, as where every PE
/// computes all, or only all together are not finite. Collective.
pub(crate) fn not_finite_on<F: Real>(
    reduction: &Reduction<'_>,
    sums: &[Superaccumulator<F>],
) -> Result<Option<usize>, PeError> {
    let finite = sums.iter().all(Superaccumulator::is_finite);
    let first = first_of(reduction, !finite)?;
    let is_told = reduction.n_pes() == 1 || first_of(reduction, finite)?.is_some();
    Ok(first.filter(|_| is_told))
}

/// What becomes of sums over all PEs.
#[derive(Default)]
pub(crate) struct Totals {
    words: Vec<u64>,
    /// Where the last sum that is not finite came up: see [`not_finite_on`].
    pub not_finite_on: Option<usize>,
}

impl Totals {
    /// The sums over all PEs, rounded once, and whether any PE is interrupted. Where sums are not `spread` every PE
    /// computes all, and each has the whole sum. Collective.
    pub fn of<const N: usize>(
        &mut self,
        reduction: &Reduction<'_>,
        mut sums: [Superaccumulator<f64>; N],
        spread: bool,
        interrupted: bool,
    ) -> Result<([f64; N], bool), PeError> {
        let own = sums;
        let to_add = if spread { &mut sums[..] } else { &mut [] };
        let interrupted = sum_over_pes(reduction, to_add, interrupted, &mut self.words)?;
        let totals = sums.map(|total| total.round());
        if !totals.iter().all(|total: &f64| total.is_finite()) {
            self.not_finite_on = not_finite_on(reduction, &own)?;
        }
        Ok((totals, interrupted))
    }
}
