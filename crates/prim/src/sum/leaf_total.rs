//! The exact total of leaves, and of those that their type was too narrow for.
//!
//! A leaf is added in its type, `f32` or `f64`. Its value says whether that was too narrow for it:
//! - `f32`, the value is not finite: the leaf is computed again in `f64`, whose range no leaf of `f32` leaves, and the
//!   result added exactly. (If an element is a NaN or infinite, so is that result, by IEEE 754.)
//! - `f32`, the value of a sum of squares is below [`LOST_BELOW`], and an element other than 0 is below
//!   [`SQUARES_ARE_NORMAL`]: likewise. Squares of larger elements keep all their bits, and beside a larger sum those
//!   that were lost, less than 2^−139 in all, do not matter.
//! - `f64`, the value is not finite: the leaf's terms are added exactly.
//!
//! So what is computed again depends on elements alone, as everything else.

use core::num::NonZeroU64;

use crosswarp_cuda::sum_layout::{
    LIMBS_BELOW, LIMBS_WIDE, LOST_BELOW_EXPONENT, NORMAL_SQUARE_EXPONENT,
};

use crate::sum::leaf::{LANES, add_row, combine_lanes, empty_lanes};
use crate::sum::pair::Pair;
use crate::sum::vector_leaf::{InVectors, LeafOp, Term};
use crate::{Float, Superaccumulator};

/// 2^−100.
const LOST_BELOW: f64 = f64::from_bits(((1023 + LOST_BELOW_EXPONENT) as u64) << 52);
/// 2^−63.
const SQUARES_ARE_NORMAL: f64 = f64::from_bits(((1023 + NORMAL_SQUARE_EXPONENT) as u64) << 52);

/// Bit of a `Superaccumulator<f64>` with which the limbs of a `Superaccumulator<f32>` begin, and that with which those
/// words begin.
const F32_BIT: usize = 1074 - 149;
const WIDE_BIT: usize = F32_BIT - 32 * LIMBS_BELOW;

/// The exact sum of leaves.
#[derive(Clone)]
pub struct LeafTotal<F: Float> {
    /// Leaves that are not in `rest` yet.
    few: Pair,
    /// Most often there is nothing else.
    rest: Option<Box<Rest<F>>>,
}

/// What no two numbers hold.
#[derive(Clone)]
struct Rest<F: Float> {
    sum: Superaccumulator<F>,
    /// What leaves of `f32` gave in `f64`, if there were such.
    wide: Option<Box<Superaccumulator<f64>>>,
}

impl<F: Float> Default for LeafTotal<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: Float> LeafTotal<F> {
    const IS_F32: bool = size_of::<F>() == 4;
    const TRACKERS: usize = Superaccumulator::<F>::TRACKERS;
    /// Words of [`to_words`](Self::to_words): those of `warp_accumulator` on the device. 24 for `f32`, 71 for `f64`.
    pub(crate) const WORDS: usize = if Self::IS_F32 {
        LIMBS_WIDE + Self::TRACKERS
    } else {
        Superaccumulator::<F>::WORDS
    };

    /// The total of no leaves.
    pub fn new() -> Self {
        Self {
            few: Pair::EMPTY,
            rest: None,
        }
    }

    /// Adds the leaf of `inputs`, the elements that are there, the value of which is `value`.
    #[inline]
    pub(crate) fn add_leaf<T: InVectors<Wide = F>, O: LeafOp>(
        &mut self,
        value: F,
        inputs: &[&[T]],
    ) {
        if is_doubtful::<F, O>(value) {
            self.rest().add_again::<T, O>(value, inputs);
        } else {
            self.add(value);
        }
    }

    /// Adds the value of a leaf that is not doubtful.
    #[inline]
    pub fn add(&mut self, value: F) {
        if !self.few.add(value.as_f64()) {
            self.add_rest(value);
        }
    }

    /// Adds a value that the two numbers do not take.
    #[cold]
    fn add_rest(&mut self, value: F) {
        let few = std::mem::replace(&mut self.few, Pair::EMPTY);
        let rest = self.rest();
        rest.add_few(&few);
        rest.sum.add(value);
    }

    fn rest(&mut self) -> &mut Rest<F> {
        self.rest.get_or_insert_with(|| Box::new(Rest::new()))
    }

    /// All of it, without the two numbers.
    fn whole(&self) -> Rest<F> {
        let mut all = self.rest.as_deref().cloned().unwrap_or_else(Rest::new);
        all.add_few(&self.few);
        all
    }

    /// Adds values that are no leaves.
    pub fn extend(&mut self, values: impl Iterator<Item = F>) {
        self.rest().sum.extend(values);
    }

    /// Adds the total held by `other`.
    pub fn merge(&mut self, other: &Self) {
        for number in other.few.numbers() {
            if !self.few.add(number) {
                let few = std::mem::replace(&mut self.few, Pair::EMPTY);
                self.rest().add_few(&few);
                self.few.add(number);
            }
        }
        if let Some(other) = &other.rest {
            self.rest().merge(other);
        }
    }

    /// [`Superaccumulator::round`]
    pub fn round(&self) -> F {
        self.if_few(Pair::round)
            .unwrap_or_else(|| self.whole().round())
    }

    /// The square root: of the total rounded to `f64`, rounded to `F`.
    pub fn root(&self) -> F {
        self.if_few(Pair::root)
            .unwrap_or_else(|| self.whole().root())
    }

    /// [`Superaccumulator::mean`]
    pub fn mean(&self, count: NonZeroU64) -> F {
        self.if_few(|few| few.mean(count))
            .unwrap_or_else(|| self.whole().mean(count))
    }

    /// What the two numbers say, if there is nothing else.
    #[inline]
    fn if_few(&self, say: impl FnOnce(&Pair) -> Option<F>) -> Option<F> {
        match self.rest {
            None => say(&self.few),
            Some(_) => None,
        }
    }

    /// The total as words that add element by element (wrapping), in any order.
    pub fn to_words(&self) -> Vec<u64> {
        self.whole().to_words()
    }

    /// The total with these words: [`to_words`](Self::to_words), or a sum of up to 2^31 of them.
    ///
    /// # Panics
    /// If there are not [`WORDS`](Self::WORDS).
    pub fn from_words(words: &[u64]) -> Self {
        Self {
            few: Pair::EMPTY,
            rest: Some(Box::new(Rest::from_words(words))),
        }
    }
}

impl<F: Float> Rest<F> {
    fn new() -> Self {
        Self {
            sum: Superaccumulator::new(),
            wide: None,
        }
    }

    /// Adds numbers: of a total of `f32`, which need not be of `f32` themselves, in `f64`.
    fn add_few(&mut self, few: &Pair) {
        for number in few.numbers() {
            let narrow = F::from_f64(number);
            if narrow.as_f64() == number {
                self.sum.add(narrow);
            } else {
                self.wide.get_or_insert_default().add(number);
            }
        }
    }

    #[cold]
    fn add_again<T: InVectors<Wide = F>, O: LeafOp>(&mut self, value: F, inputs: &[&[T]]) {
        let (x, y) = (inputs[0], inputs[O::INPUTS - 1]);
        if !LeafTotal::<F>::IS_F32 {
            let values = x.iter().zip(y).map(|(x, y)| match O::TERM {
                Term::Value => x.widen(),
                Term::Square => x.widen() * x.widen(),
                Term::Product => x.widen() * y.widen(),
            });
            self.sum.extend(values);
            return;
        }
        match leaf_in_f64::<T, O>(value.as_f64(), x, y) {
            Some(again) => self.wide.get_or_insert_default().add(again),
            None => self.sum.add(value),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.sum.merge(&other.sum);
        if let Some(other) = &other.wide {
            self.wide.get_or_insert_default().merge(other);
        }
    }

    /// All of it, where some of it does not fit in a `Superaccumulator<F>`.
    fn widened(&self) -> Option<Superaccumulator<f64>> {
        self.wide.as_ref().map(|wide| {
            let mut all = **wide;
            let words = self.sum.to_words();
            let (limbs, trackers) = words.as_ref().split_at(Superaccumulator::<F>::LIMBS);
            all.add_limbs(limbs, F32_BIT, trackers);
            all
        })
    }

    fn round(&self) -> F {
        self.widened()
            .map_or_else(|| self.sum.round(), |all| all.round_to(None, 0))
    }

    fn root(&self) -> F {
        let rounded = |exponent| {
            self.widened().map_or_else(
                || self.sum.round_to::<f64>(None, exponent),
                |all| all.round_to(None, exponent),
            )
        };
        let mut root = rounded(0).sqrt();
        if root == f64::INFINITY {
            // Squares of f64 whose sum is beyond its range; its root is not.
            root = rounded(-64).sqrt() * f64::from_bits((1023 + 32) << 52);
        }
        // + 0.0 turns the −0.0 of no elements into the norm's +0.0.
        F::from_f64(root + 0.0).canonical()
    }

    fn mean(&self, count: NonZeroU64) -> F {
        self.widened()
            .map_or_else(|| self.sum.mean(count), |all| all.round_to(Some(count), 0))
    }

    fn to_words(&self) -> Vec<u64> {
        let words = self.sum.to_words();
        if !LeafTotal::<F>::IS_F32 {
            return words.as_ref().to_vec();
        }
        let (limbs, trackers) = words.as_ref().split_at(Superaccumulator::<F>::LIMBS);
        let mut all = vec![0; LeafTotal::<F>::WORDS];
        all[LIMBS_BELOW..LIMBS_BELOW + limbs.len()].copy_from_slice(limbs);
        all[LIMBS_WIDE..].copy_from_slice(trackers);
        if let Some(wide) = &self.wide {
            let (limbs, trackers) = all.split_at_mut(LIMBS_WIDE);
            wide.add_to_limbs(limbs, WIDE_BIT, trackers);
        }
        all
    }

    fn from_words(words: &[u64]) -> Self {
        assert_eq!(words.len(), LeafTotal::<F>::WORDS, "the words of a total");
        let narrow = |limbs: &[u64], trackers: &[u64]| {
            let mut array = <F::Words as bytemuck::Zeroable>::zeroed();
            let (to_limbs, to_trackers) = array.as_mut().split_at_mut(limbs.len());
            to_limbs.copy_from_slice(limbs);
            to_trackers.copy_from_slice(trackers);
            Superaccumulator::from_words(array)
        };
        if !LeafTotal::<F>::IS_F32 {
            let (limbs, trackers) = words.split_at(Superaccumulator::<F>::LIMBS);
            return Self {
                sum: narrow(limbs, trackers),
                wide: None,
            };
        }
        let (limbs, trackers) = words.split_at(LIMBS_WIDE);
        let own = LIMBS_BELOW..LIMBS_BELOW + Superaccumulator::<F>::LIMBS;
        let outside = limbs[..own.start].iter().chain(&limbs[own.end..]);
        if outside.clone().all(|&limb| limb == 0) {
            return Self {
                sum: narrow(&limbs[own], trackers),
                wide: None,
            };
        }
        let mut wide = Superaccumulator::new();
        wide.add_limbs(limbs, WIDE_BIT, trackers);
        Self {
            sum: Superaccumulator::new(),
            wide: Some(Box::new(wide)),
        }
    }
}

/// Whether a leaf is doubtful, so that it has to be computed again, by its value.
#[inline(always)]
fn is_doubtful<F: Float, O: LeafOp>(value: F) -> bool {
    let wide = value.as_f64();
    let small = size_of::<F>() == 4 && O::TERM == Term::Square && wide < LOST_BELOW;
    !wide.is_finite() || small
}

/// The value of a leaf in `f64`; nothing if `value` was finite and no square too small for `f32`.
fn leaf_in_f64<T: InVectors, O: LeafOp>(value: f64, x: &[T], y: &[T]) -> Option<f64> {
    let wide = |x: &T| x.widen().as_f64();
    let is_small = |x: &T| {
        let size = wide(x).abs();
        size > 0.0 && size < SQUARES_ARE_NORMAL
    };
    // No branches, so that the many leaves of zeros there may be are checked fast.
    if value.is_finite() && !x.iter().fold(false, |any, x| any | is_small(x)) {
        return None;
    }
    let mut lanes = empty_lanes::<f64>();
    for (x, y) in x.chunks(LANES).zip(y.chunks(LANES)) {
        let mut row = [0.0; LANES];
        for (term, (x, y)) in row.iter_mut().zip(x.iter().zip(y)) {
            *term = match O::TERM {
                Term::Value => wide(x),
                Term::Square => wide(x) * wide(x),
                Term::Product => wide(x) * wide(y),
            };
        }
        add_row(&mut lanes, &row[..x.len()]);
    }
    Some(combine_lanes(&lanes))
}

#[cfg(test)]
mod tests;
