//! Counting on the CPU.
#![allow(unsafe_code)] // Reason: counters are indexed without checks, by bins limited just before.

use std::ops::Range;

use crosswarp_shmem::{Pe, op};

use super::bins::Bins;
use super::error::HistogramError;
use super::rule::{BinRule, Visit};
use super::sample::Sample;
use crate::simd::{Isa, Work};
use crate::source::{ReadError, in_pieces};
use crate::threads::{Cost, Workers};
use crate::{Simd, Source};

/// A counter of 32 bits can not overflow within so many samples.
const MOST_OF_A_COUNTER: usize = 1 << 31;
/// Samples whose bins are found before they are counted: the loop that finds them has no dependences
/// and fills whole vectors.
const BLOCK: usize = 1024;
/// Samples that pay for a thread.
const SAMPLES_PER_THREAD: usize = 1 << 15;
/// Totals exchanged at a time by a team.
const EXCHANGED: usize = 1 << 16;

/// Histograms of slices on the CPU, on one thread or many, or of an array of which each PE of a team
/// holds a part.
///
/// ```
/// use crosswarp_prim::histogram::{Bins, Histogram};
///
/// let dice = [1u8, 6, 3, 3, 2, 6, 6];
/// let faces = Bins::integers(1, 7)?;
/// assert_eq!(Histogram::new(&faces).count(&dice)?, [1, 1, 2, 0, 0, 3]);
/// assert_eq!(
///     Histogram::new(&faces).sum_weights(&dice, &[10, 1, 1, 1, 1, 1, 1])?,
///     [10, 1, 2, 0, 0, 3]
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Histogram<'a, T: Sample> {
    bins: &'a Bins<T>,
    workers: Workers<'a>,
    pe: Option<&'a Pe>,
}

impl<'a, T: Sample> Histogram<'a, T> {
    /// Histograms of whole arrays on one thread.
    #[must_use]
    pub fn new(bins: &'a Bins<T>) -> Self {
        Self {
            bins,
            workers: Workers::new(),
            pe: None,
        }
    }

    /// Uses up to `threads` threads (on each PE); 0 counts as 1. Small arrays use fewer.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.workers.threads = threads.max(1);
        self
    }

    /// Uses this instruction set.
    #[must_use]
    pub fn simd(mut self, simd: Simd) -> Self {
        self.workers.simd = simd;
        self
    }

    /// Adds over all PEs of `pe`'s world: each passes its part of the samples, in any split, and gets
    /// the totals of all. Collective: every PE calls with the same bins.
    ///
    /// Memory ordering: implies a `sync`, not a `quiet`.
    #[must_use]
    pub fn on(self, pe: &'a Pe) -> Self {
        Self {
            pe: Some(pe),
            ..self
        }
    }

    /// Samples in each bin.
    ///
    /// # Errors
    /// Over a team, what [`team_sum`](Self::team_sum) reports; none without.
    pub fn count(&self, samples: &[T]) -> Result<Vec<u64>, HistogramError> {
        let totals = self.tally(Samples::Slice(samples), None);
        self.team_total(totals)
    }

    /// Samples in each bin, of an array that is read piece by piece. Each thread reads into a buffer of its own of
    /// 256 KiB.
    ///
    /// # Errors
    /// Those of [`count`](Self::count); [`HistogramError::Read`] if the source cannot be read; on other PEs this shows
    /// as a mismatch.
    pub fn count_from(&self, samples: &dyn Source<T>) -> Result<Vec<u64>, HistogramError> {
        let totals = self.tally(Samples::Source(samples), None);
        self.team_total(totals)
    }

    /// Sum of the weights of the samples in each bin, modulo 2^64.
    ///
    /// # Errors
    /// [`HistogramError::Weights`] unless there is a weight for each sample; on other PEs this shows as
    /// a mismatch. Those of [`count`](Self::count).
    pub fn sum_weights(&self, samples: &[T], weights: &[u32]) -> Result<Vec<u64>, HistogramError> {
        self.check_weights(samples.len(), weights.len())?;
        let totals = self.tally(Samples::Slice(samples), Some(Samples::Slice(weights)));
        self.team_total(totals)
    }

    /// [`sum_weights`](Self::sum_weights) of arrays that are read piece by piece.
    ///
    /// # Errors
    /// Those of [`sum_weights`](Self::sum_weights) and of [`count_from`](Self::count_from).
    pub fn sum_weights_from(
        &self,
        samples: &dyn Source<T>,
        weights: &dyn Source<u32>,
    ) -> Result<Vec<u64>, HistogramError> {
        self.check_weights(samples.len(), weights.len())?;
        let totals = self.tally(Samples::Source(samples), Some(Samples::Source(weights)));
        self.team_total(totals)
    }

    fn check_weights(&self, samples: usize, weights: usize) -> Result<(), HistogramError> {
        if samples == weights {
            return Ok(());
        }
        self.withdraw();
        Err(HistogramError::Weights { samples, weights })
    }

    /// [`team_sum`](Self::team_sum) where a PE may have failed to count.
    fn team_total(&self, totals: Result<Vec<u64>, ReadError>) -> Result<Vec<u64>, HistogramError> {
        if totals.is_err() {
            self.withdraw();
        }
        self.team_sum(totals?)
    }

    /// So that nobody waits for this PE, whose own error says more than the mismatch on the others.
    fn withdraw(&self) {
        if let Some(pe) = self.pe {
            let _ = pe.agree(0, 0);
        }
    }

    /// Adds the totals of the team's PEs, one a bin, element by element; without a team, returns them.
    /// For totals that were counted elsewhere, as on GPUs.
    ///
    /// # Errors
    /// [`HistogramError::Collective`] on every PE if the PEs passed different bins or a PE failed;
    /// [`HistogramError::Alloc`] if the symmetric heap has no room (1 MiB at most).
    ///
    /// # Panics
    /// If there is not one total a bin.
    pub fn team_sum(&self, mut totals: Vec<u64>) -> Result<Vec<u64>, HistogramError> {
        assert_eq!(totals.len(), self.bins.count(), "one total a bin");
        let Some(pe) = self.pe else {
            return Ok(totals);
        };
        pe.agree(self.bins.count() as u64, self.bins.fingerprint())?;
        let piece = totals.len().min(EXCHANGED);
        let memory = pe.alloc::<u64>(piece)?;
        for part in totals.chunks_mut(EXCHANGED) {
            let place = memory.range(..part.len());
            pe.write(place, part);
            pe.world().reduce(place, place, op::Sum)?;
            pe.read(part, place);
        }
        pe.free(memory)?;
        Ok(totals)
    }

    fn tally(
        &self,
        samples: Samples<'_, T>,
        weights: Option<Samples<'_, u32>>,
    ) -> Result<Vec<u64>, ReadError> {
        let bins = self.bins.count();
        // A thread's counters have to be cleared and added up, too.
        let most = samples.len() / SAMPLES_PER_THREAD.max(bins);
        let workers = Workers {
            threads: self.workers.threads.min(most),
            ..self.workers
        };
        let parts = workers.split(Cost::Slow, size_of::<T>(), samples.len(), |range| {
            self.bins.rule().visit(Tally {
                simd: workers.simd,
                bins,
                range,
                samples,
                weights,
            })
        });
        let mut totals = vec![0u64; bins];
        for part in parts {
            totals.iter_mut().zip(part?).for_each(|(total, part)| {
                *total = total.wrapping_add(part);
            });
        }
        Ok(totals)
    }
}

/// Where samples or weights are.
#[derive(Clone, Copy)]
enum Samples<'a, T> {
    Slice(&'a [T]),
    Source(&'a dyn Source<T>),
}

impl<T: bytemuck::Pod> Samples<'_, T> {
    fn len(&self) -> usize {
        match self {
            Self::Slice(samples) => samples.len(),
            Self::Source(source) => source.len(),
        }
    }

    /// Calls `work` with those of `range`, in order, in pieces of at most 2^31.
    fn each(&self, range: Range<usize>, mut work: impl FnMut(&[T])) -> Result<(), ReadError> {
        match self {
            Self::Slice(samples) => samples[range].chunks(MOST_OF_A_COUNTER).for_each(work),
            Self::Source(source) => in_pieces(&[*source], range, 1, |pieces, _| work(pieces[0]))?,
        }
        Ok(())
    }
}

/// One thread's part.
struct Tally<'a, T> {
    simd: Simd,
    bins: usize,
    range: Range<usize>,
    samples: Samples<'a, T>,
    weights: Option<Samples<'a, u32>>,
}

impl<T: Sample> Visit<T::Key> for Tally<'_, T> {
    type Output = Result<Vec<u64>, ReadError>;
    fn visit<R: BinRule<T::Key>>(self, rule: &R) -> Self::Output {
        if let Some(weights) = self.weights {
            return self.weigh(rule, weights);
        }
        // An increment has to wait until the one before of the same counter has reached the cache,
        // about five cycles, so neighbouring samples count in sets of counters of their own, as long
        // as those fit the first-level cache.
        match self.bins {
            0..=1024 => self.count::<R, 8>(rule),
            1025..=4096 => self.count::<R, 2>(rule),
            _ => self.count::<R, 1>(rule),
        }
    }
}

impl<T: Sample> Tally<'_, T> {
    fn count<R: BinRule<T::Key>, const SETS: usize>(
        &self,
        rule: &R,
    ) -> Result<Vec<u64>, ReadError> {
        let mut totals = vec![0u64; self.bins];
        // The counters of a bin lie side by side, so a set is a constant offset of the same place. The last bin
        // takes what is dropped.
        let mut counters = vec![[0u32; SETS]; self.bins + 1];
        let mut found = [0u32; BLOCK];
        let mut flush = |counters: &mut [[u32; SETS]]| {
            for (total, counters) in totals.iter_mut().zip(&*counters) {
                *total += counters.iter().map(|&count| u64::from(count)).sum::<u64>();
            }
            counters.fill([0; SETS]);
        };
        // Samples counted since counters were 0.
        let mut since = 0;
        self.samples.each(self.range.clone(), |part| {
            if since + part.len() > MOST_OF_A_COUNTER {
                flush(&mut counters);
                since = 0;
            }
            since += part.len();
            self.count_part(rule, part, &mut counters, &mut found);
        })?;
        flush(&mut counters);
        Ok(totals)
    }

    /// Counts samples in `counters`, of which there is one more than bins. Not a closure: that what it is called with
    /// does not overlap is known here.
    fn count_part<R: BinRule<T::Key>, const SETS: usize>(
        &self,
        rule: &R,
        samples: &[T],
        counters: &mut [[u32; SETS]],
        found: &mut [u32; BLOCK],
    ) {
        assert!(counters.len() > self.bins);
        for samples in samples.chunks(BLOCK) {
            let found = &mut found[..samples.len()];
            self.find_bins(rule, samples, found);
            let (whole, rest) = found.as_chunks::<SETS>();
            for bins in whole {
                for (set, &bin) in bins.iter().enumerate() {
                    // SAFETY: `find_bins` leaves no number above `self.bins`, and there is one counter more.
                    unsafe {
                        counters.get_unchecked_mut(bin as usize)[set] += 1;
                    }
                }
            }
            for &bin in rest {
                counters[bin as usize][0] += 1;
            }
        }
    }

    fn weigh<R: BinRule<T::Key>>(
        &self,
        rule: &R,
        weights: Samples<'_, u32>,
    ) -> Result<Vec<u64>, ReadError> {
        // The last total takes what is dropped.
        let mut totals = vec![0u64; self.bins + 1];
        let mut found = [0u32; BLOCK];
        let mut add = |samples: &[T], weights: &[u32]| {
            for (samples, weights) in samples.chunks(BLOCK).zip(weights.chunks(BLOCK)) {
                let found = &mut found[..samples.len()];
                self.find_bins(rule, samples, found);
                for (&bin, &weight) in found.iter().zip(weights) {
                    let total = &mut totals[bin as usize];
                    *total = total.wrapping_add(weight.into());
                }
            }
        };
        // Pieces of weights follow those of samples.
        let mut start = self.range.start;
        let mut failure = Ok(());
        self.samples.each(self.range.clone(), |samples| {
            let mut done = 0;
            let range = start..start + samples.len();
            start = range.end;
            if failure.is_ok() {
                failure = weights.each(range, |weights| {
                    add(&samples[done..done + weights.len()], weights);
                    done += weights.len();
                });
            }
        })?;
        failure?;
        totals.pop();
        Ok(totals)
    }

    /// Writes the bin of each sample, or `self.bins` for one that is dropped.
    fn find_bins<R: BinRule<T::Key>>(&self, rule: &R, samples: &[T], found: &mut [u32]) {
        self.simd.run(FindBins {
            rule,
            bins: self.bins as u32,
            samples,
            found,
        });
    }
}

struct FindBins<'a, T, R> {
    rule: &'a R,
    bins: u32,
    samples: &'a [T],
    found: &'a mut [u32],
}

impl<T: Sample, R: BinRule<T::Key>> Work for FindBins<'_, T, R> {
    type Output = ();
    #[inline(always)]
    unsafe fn run<I: Isa>(self) {
        let key = |sample: &T| sample.key();
        self.rule.bins(self.samples, key, self.bins, self.found);
    }
}
