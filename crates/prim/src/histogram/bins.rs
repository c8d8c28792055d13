//! Which samples belong to which bin.

use super::error::BinsError;
use super::key::Rule;
use super::rule::{BinRule, MOST_BINS, Visit};
use super::sample::{Bounds, Sample};

/// What becomes of samples below the first or above the last edge (for [`Bins::integers`]: at it, too).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfRange {
    /// They are not counted.
    #[default]
    Drop,
    /// They count in the first or the last bin. A NaN is still dropped.
    Clamp,
}

/// The bins of a histogram of samples of type `T`; the rules are in the documentation of
/// [`histogram`](crate::histogram).
///
/// ```
/// use crosswarp_prim::histogram::{Bins, OutOfRange};
///
/// let decades = Bins::<i32>::even(0, 100, 10)?;
/// assert_eq!(decades.bin_of(42), Some(4));
/// assert_eq!(decades.bin_of(100), Some(9)); // The last bin has both its edges.
/// assert_eq!(decades.bin_of(101), None);
/// let clamped = decades.out_of_range(OutOfRange::Clamp);
/// assert_eq!(clamped.bin_of(101), Some(9));
///
/// let grades = Bins::<f64>::edges(&[0.0, 1.5, 2.5, f64::INFINITY])?;
/// assert_eq!(grades.bin_of(2.5), Some(2));
/// assert_eq!(grades.bin_of(f64::INFINITY), Some(2));
/// assert_eq!(grades.bin_of(f64::NAN), None);
/// # Ok::<(), crosswarp_prim::histogram::BinsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bins<T: Sample> {
    rule: Rule<T::Key>,
    bins: u32,
    out_of_range: OutOfRange,
    bounds: Bounds<T::Bound>,
}

impl<T: Sample> Bins<T> {
    /// `bins` bins of the same width from `low` to `high`. Each begins at its lower edge and ends before its
    /// upper one; the last ends with it: a sample that is `high` is in it.
    ///
    /// # Errors
    /// [`BinsError`] unless `low` < `high` and there are 1 to 2^28 bins; for floats also if a bin's
    /// width has no finite inverse, for integers if a bound is beyond ±2^31.
    pub fn even(low: T::Bound, high: T::Bound, bins: usize) -> Result<Self, BinsError> {
        let count = count(bins)?;
        check_range::<T>(low, high)?;
        Self::of(Bounds::Even(low, high), count)
    }

    /// One bin fewer than there are `edges`; bin k from edge k up to, not including, edge k + 1; the last
    /// bin includes it. Edges may be equal (such a bin stays empty, unless it is the last, which holds the
    /// samples equal to its edges), and those of floats infinite.
    ///
    /// # Errors
    /// [`BinsError`] unless edges ascend, the first is below the last, and there are 1 to 2^28 bins.
    pub fn edges(edges: &[T::Bound]) -> Result<Self, BinsError> {
        if edges.len() < 2 {
            let edges = edges.len();
            return Err(BinsError::Edges { edges });
        }
        let count = count(edges.len() - 1)?;
        for (index, pair) in edges.windows(2).enumerate() {
            if pair[0] > pair[1] || pair[0].partial_cmp(&pair[1]).is_none() {
                return Err(BinsError::Unsorted {
                    index: index + 1,
                    edge: T::bound_to_f64(pair[1]),
                    before: T::bound_to_f64(pair[0]),
                });
            }
        }
        check_range::<T>(edges[0], edges[edges.len() - 1])?;
        Self::of(Bounds::Edges(edges.to_vec()), count)
    }

    fn of(bounds: Bounds<T::Bound>, bins: u32) -> Result<Self, BinsError> {
        Ok(Self {
            rule: T::rule(&bounds, bins, false)?,
            bins,
            out_of_range: OutOfRange::Drop,
            bounds,
        })
    }

    /// The same bins with this policy; without, samples outside are dropped.
    #[must_use]
    pub fn out_of_range(mut self, out_of_range: OutOfRange) -> Self {
        let clamp = out_of_range == OutOfRange::Clamp;
        // The bounds were found good when these bins were made.
        if let Ok(rule) = T::rule(&self.bounds, self.bins, clamp) {
            (self.rule, self.out_of_range) = (rule, out_of_range);
        }
        self
    }

    /// Number of bins.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bins as usize
    }

    /// The bin of a sample; `None` if it is dropped.
    #[must_use]
    pub fn bin_of(&self, sample: T) -> Option<usize> {
        struct BinOf<K>(K);
        impl<K> Visit<K> for BinOf<K> {
            type Output = u32;
            fn visit<R: BinRule<K>>(self, rule: &R) -> u32 {
                rule.bin(self.0)
            }
        }
        let bin = self.rule.visit(BinOf(sample.key()));
        (bin < self.bins).then_some(bin as usize)
    }

    /// Lower edge of bin `k`, or the upper of the last for `k` = [`count`](Self::count), for tables and
    /// plots: even bins' edges are rounded to `f64`.
    ///
    /// # Panics
    /// If `k` is above the number of bins.
    #[must_use]
    pub fn edge(&self, k: usize) -> f64 {
        assert!(k <= self.count(), "edge {k} of {} bins", self.count());
        match &self.bounds {
            Bounds::Edges(edges) => T::bound_to_f64(edges[k]),
            Bounds::Even(_, high) | Bounds::Values(_, high) if k == self.count() => {
                T::bound_to_f64(*high)
            }
            Bounds::Even(low, high) | Bounds::Values(low, high) => {
                let (low, high) = (T::bound_to_f64(*low), T::bound_to_f64(*high));
                low + (high - low) * k as f64 / f64::from(self.bins)
            }
        }
    }

    pub(crate) fn rule(&self) -> &Rule<T::Key> {
        &self.rule
    }

    /// A number that is the same for the same bins, and hardly for others: how PEs see that they agree.
    pub(crate) fn fingerprint(&self) -> u64 {
        let values = u64::from(matches!(self.bounds, Bounds::Values(..)));
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ (self.out_of_range as u64) ^ (values << 1);
        let mut mix = |bound: T::Bound| {
            // FNV-1a, by words.
            hash = (hash ^ T::bound_to_f64(bound).to_bits()).wrapping_mul(0x0100_0000_01b3);
        };
        match &self.bounds {
            Bounds::Even(low, high) | Bounds::Values(low, high) => {
                [*low, *high].into_iter().for_each(&mut mix);
            }
            Bounds::Edges(edges) => edges.iter().copied().for_each(&mut mix),
        }
        hash
    }
}

impl<T: Sample<Bound: Into<i128>>> Bins<T> {
    /// A bin for every integer from `low` up to, not including, `high`. Each bin holds one value, the last
    /// one, too: no sample that is `high` is in it.
    ///
    /// # Errors
    /// As for [`even`](Self::even).
    pub fn integers(low: T::Bound, high: T::Bound) -> Result<Self, BinsError> {
        let bins = high.into().saturating_sub(low.into()).max(1);
        let count = count(usize::try_from(bins).unwrap_or(usize::MAX))?;
        check_range::<T>(low, high)?;
        Self::of(Bounds::Values(low, high), count)
    }
}

fn count(bins: usize) -> Result<u32, BinsError> {
    match u32::try_from(bins) {
        Ok(count) if (1..=MOST_BINS).contains(&bins) => Ok(count),
        _ => Err(BinsError::Count {
            bins,
            most: MOST_BINS,
        }),
    }
}

fn check_range<T: Sample>(low: T::Bound, high: T::Bound) -> Result<(), BinsError> {
    if low < high {
        return Ok(());
    }
    let (low, high) = (T::bound_to_f64(low), T::bound_to_f64(high));
    Err(BinsError::Range { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_that_make_no_sense_are_refused() {
        let message = |error: BinsError| error.to_string();
        assert_eq!(
            message(Bins::<i32>::even(3, 3, 1).unwrap_err()),
            "the range from 3 to 3 is empty: the lower end must be below the upper"
        );
        assert_eq!(
            message(Bins::<u8>::integers(0, 1 << 40).unwrap_err()),
            "1099511627776 bins: from 1 to 268435456 are possible"
        );
        assert!(matches!(
            Bins::<i32>::even(0, (1 << 31) + 1, 4),
            Err(BinsError::Bound { .. })
        ));
        assert!(Bins::<i32>::even(-1 << 31, 1 << 31, 4).is_ok());
        for (low, high) in [
            (f32::NAN, 1.0),
            (0.0, f32::NAN),
            (0.0, f32::INFINITY),
            (f32::MIN, f32::MAX),
            (0.0, 1e-45),
        ] {
            assert!(Bins::<f32>::even(low, high, 8).is_err(), "{low} {high}");
        }
        assert_eq!(
            message(Bins::<f64>::edges(&[]).unwrap_err()),
            "a bin is between two edges, and there are none"
        );
        assert_eq!(
            message(Bins::<f64>::edges(&[1.0]).unwrap_err()),
            "a bin is between two edges, and there is only one"
        );
        assert_eq!(
            message(Bins::<i32>::edges(&[0, 5, 4]).unwrap_err()),
            "edge 2 (4) is not at or above edge 1 (5)"
        );
        assert!(Bins::<f64>::edges(&[0.0, f64::NAN, 1.0]).is_err());
        assert!(Bins::<f64>::edges(&[0.0, 0.0]).is_err());
    }

    #[test]
    fn edges_may_be_equal_and_beyond_all_samples() {
        let bins = Bins::<i32>::edges(&[-1 << 31, 0, 0, 7, 1 << 31]).unwrap();
        let found = [i32::MIN, -1, 0, 6, 7, i32::MAX].map(|x| bins.bin_of(x));
        assert_eq!(found, [0, 0, 2, 2, 3, 3].map(Some));
        let bins = Bins::<u8>::edges(&[2, 5, 5]).unwrap();
        let found = [1, 2, 4, 5, 6].map(|x| bins.bin_of(x));
        assert_eq!(found, [None, Some(0), Some(0), Some(1), None]);
        let clamped = Bins::<f32>::edges(&[1.0, 2.0, 3.0])
            .unwrap()
            .out_of_range(OutOfRange::Clamp);
        let found =
            [f32::NEG_INFINITY, 0.9, 2.0, 3.0, f32::INFINITY, f32::NAN].map(|x| clamped.bin_of(x));
        assert_eq!(found, [Some(0), Some(0), Some(1), Some(1), Some(1), None]);
    }

    #[test]
    fn floats_follow_the_stated_operations() {
        let bins = Bins::<f32>::even(0.1, 0.7, 6).unwrap();
        let scale = 6.0 / (0.7f32 - 0.1);
        for k in 0..2000 {
            let x = k as f32 * 5e-4 - 0.1;
            let expected = (0.1..=0.7)
                .contains(&x)
                .then(|| (((x - 0.1) * scale) as usize).min(5));
            assert_eq!(bins.bin_of(x), expected, "{x}");
        }
        let just_below = f32::from_bits(0.7f32.to_bits() - 1);
        let just_above = f32::from_bits(0.7f32.to_bits() + 1);
        assert_eq!([just_below, 0.7].map(|x| bins.bin_of(x)), [Some(5); 2]);
        assert_eq!([just_above, f32::NAN].map(|x| bins.bin_of(x)), [None; 2]);
        let clamped = bins.out_of_range(OutOfRange::Clamp);
        let found = [f32::NEG_INFINITY, f32::INFINITY, f32::NAN].map(|x| clamped.bin_of(x));
        assert_eq!(found, [Some(0), Some(5), None]);
    }

    #[test]
    fn edges_for_tables() {
        let bins = Bins::<i32>::even(-10, 10, 4).unwrap();
        assert_eq!(
            (0..=4).map(|k| bins.edge(k)).collect::<Vec<_>>(),
            [-10.0, -5.0, 0.0, 5.0, 10.0]
        );
        assert_ne!(
            bins.fingerprint(),
            Bins::<i32>::even(-10, 11, 4).unwrap().fingerprint()
        );
        assert_ne!(
            Bins::<i32>::even(-10, 10, 20).unwrap().fingerprint(),
            Bins::<i32>::integers(-10, 10).unwrap().fingerprint()
        );
    }
}
