//! The reductions as called by users.

use std::sync::atomic::AtomicBool;

use crosswarp_shmem::Pe;

use crate::reduce::element::Element;
use crate::reduce::exchange::Exchange;
use crate::reduce::extremum::first_extremum;
use crate::reduce::from_source::FromSource;
use crate::reduce::part::Part;
use crate::reduce::partial::take_first;
use crate::threads::{Cost, Workers};
use crate::{Op, ReduceError, Simd, Source, Value};

/// Reductions of arrays of any [`Element`] type.
///
/// Every result has the same bits for any number of threads, any instruction set, and any split of
/// the array over the PEs of a team.
///
/// # One array
/// ```
/// use crosswarp_prim::Reducer;
///
/// let values: Vec<f64> = (1..=100_000).map(|k| 1.0 / k as f64).collect();
/// let reducer = Reducer::new().threads(2);
/// assert_eq!(reducer.sum(&values)?, 12.09014612986343);
/// assert_eq!(reducer.max(&values)?, 1.0);
/// assert_eq!(reducer.argmin(&values)?, 99_999);
/// # Ok::<(), crosswarp_prim::ReduceError>(())
/// ```
///
/// # An array spread over a team
/// Each PE passes its contiguous part: PE 0 the first elements by global index, PE 1 the next, and
/// so on. Parts may differ in length and may be empty. Every PE calls the same reduction in the same
/// order, and every PE gets the result.
/// ```
/// use crosswarp_prim::{ReduceError, Reducer};
///
/// let values: Vec<f32> = (0..10_000).map(|k| (k as f32).sin()).collect();
/// let alone = Reducer::new().sum(&values)?;
/// let sums = crosswarp_shmem::spmd(3, |pe| {
///     let part = [0..17, 17..5_001, 5_001..10_000][pe.my_pe()].clone();
///     Reducer::new().on(pe).sum(&values[part])
/// })
/// .unwrap();
/// for sum in sums {
///     assert_eq!(sum?.to_bits(), alone.to_bits());
/// }
/// # Ok::<(), ReduceError>(())
/// ```
/// Memory ordering: a reduction over a team implies a `sync`, not a `quiet`.
///
/// # Errors
/// Over a team all reductions report [`ReduceError::Mismatch`] on every PE if the PEs called
/// different operations or element types, and pass on failures of the symmetric heap and of the
/// team. Beyond that, errors are listed with each reduction.
#[derive(Clone, Copy)]
pub struct Reducer<'a> {
    workers: Workers<'a>,
    pe: Option<&'a Pe>,
}

impl Default for Reducer<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Reducer<'a> {
    /// Reductions of whole arrays on one thread with the machine's widest vectors.
    #[must_use]
    pub fn new() -> Self {
        Self {
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

    /// Ends with [`ReduceError::Stopped`] soon after `stop` has become true: a few milliseconds, unless memory is very
    /// slow. For one array: a reduction over a team goes on, because the other PEs count on it.
    ///
    /// ```
    /// use std::sync::atomic::AtomicBool;
    ///
    /// use crosswarp_prim::{Op, ReduceError, Reducer};
    ///
    /// let stop = AtomicBool::new(true);
    /// let error = Reducer::new().stop_when(&stop).sum(&[1.0f32]).unwrap_err();
    /// assert_eq!(error, ReduceError::Stopped { op: Op::Sum });
    /// ```
    #[must_use]
    pub fn stop_when<'s>(self, stop: &'s AtomicBool) -> Reducer<'s>
    where
        'a: 's,
    {
        Reducer {
            workers: Workers {
                stop: self.pe.is_none().then_some(stop),
                ..self.workers
            },
            pe: self.pe,
        }
    }

    /// Reduces over all PEs of `pe`'s world: arrays are this PE's part of the global array.
    #[must_use]
    pub fn on<'p>(self, pe: &'p Pe) -> Reducer<'p> {
        Reducer {
            workers: Workers {
                simd: self.workers.simd,
                threads: self.workers.threads,
                stop: None,
            },
            pe: Some(pe),
        }
    }

    /// Sum.
    ///
    /// Floats: the reproducible sum of the crate's documentation, exact but for the roundings inside
    /// leaves; `f16` and `bf16` are added as `f32`, which is also the result. An element that is a NaN, or
    /// infinite elements of both signs, give the canonical quiet NaN. Finite elements give an infinity only
    /// if their sum rounds beyond the result's range. No elements give +0.0, nothing but −0.0 gives −0.0.
    ///
    /// Integers: the exact sum modulo 2^64, as `i64` or `u64`.
    ///
    /// # Errors
    /// Only those of all reductions, see [`Reducer`].
    pub fn sum<T: Element>(&self, values: &[T]) -> Result<T::Sum, ReduceError> {
        let part = Part::Host(vec![values]);
        self.run(Op::Sum, &part, |exchange| T::sum(exchange, &part))
    }

    /// The exact sum, rounded once to nearest even: as [`sum`](Self::sum), but without any rounding
    /// on the way, so that the order of the elements does not matter either. Slower; for integers
    /// the same as [`sum`](Self::sum).
    ///
    /// ```
    /// use crosswarp_prim::Reducer;
    ///
    /// let values = [1e16f64, 1.0, -1e16];
    /// assert_eq!(Reducer::new().exact_sum(&values)?, 1.0);
    /// # Ok::<(), crosswarp_prim::ReduceError>(())
    /// ```
    ///
    /// # Errors
    /// Only those of all reductions, see [`Reducer`].
    pub fn exact_sum<T: Element>(&self, values: &[T]) -> Result<T::Sum, ReduceError> {
        let part = Part::Host(vec![values]);
        self.run(Op::ExactSum, &part, |exchange| {
            T::exact_sum(exchange, &part)
        })
    }

    /// Product; 1 if there are no elements.
    ///
    /// Floats: leaves of 2048 elements as in a sum (16 factors in order in each of 128 lanes, lanes
    /// combined by halving); the array of leaf products is then reduced by the same rule, and so on
    /// until one value is left. In `f32` for `f16` and `bf16`. NaNs are canonical.
    ///
    /// Integers: the exact product modulo 2^64, as `i64` or `u64`.
    ///
    /// # Errors
    /// Only those of all reductions, see [`Reducer`].
    pub fn prod<T: Element>(&self, values: &[T]) -> Result<T::Sum, ReduceError> {
        let part = Part::Host(vec![values]);
        self.run(Op::Prod, &part, |exchange| T::prod(exchange, &part))
    }

    /// Arithmetic mean: the sum before its final rounding, divided by the number of elements and
    /// rounded once. `f32` for `f16` and `bf16`, `f64` for integers (and there the sum is exact,
    /// whatever its size).
    ///
    /// # Errors
    /// [`ReduceError::Empty`] if there are no elements.
    pub fn mean<T: Element>(&self, values: &[T]) -> Result<T::Mean, ReduceError> {
        let part = Part::Host(vec![values]);
        self.run(Op::Mean, &part, |exchange| T::mean(exchange, &part))
    }

    /// Euclidean norm: the square root of the sum of squares; +0.0 if there are no elements.
    ///
    /// Floats: squares are rounded to the type in which [`sum`](Self::sum) adds, and summed like the
    /// elements of a sum; the total is rounded to `f64`, and its root to the result. Leaves of `f32` whose
    /// squares over- or underflow are computed again in `f64`, so a norm that is in range is right. Squares of
    /// `f64` are not scaled: from 1.4e154 on they make the norm infinite, below 1.5e−154 they lose bits.
    ///
    /// Integers: the sum of squares is exact, its root an `f64`.
    ///
    /// # Errors
    /// Only those of all reductions, see [`Reducer`].
    pub fn norm2<T: Element>(&self, values: &[T]) -> Result<T::Mean, ReduceError> {
        let part = Part::Host(vec![values]);
        self.run(Op::Norm2, &part, |exchange| T::norm2(exchange, &part))
    }

    /// Dot product Σ x·y: each product is rounded (integers: taken modulo 2^64), then they are summed
    /// as in [`sum`](Self::sum).
    ///
    /// # Errors
    /// [`ReduceError::Length`] if `x` and `y` are not of the same length on every PE.
    pub fn dot<T: Element>(&self, x: &[T], y: &[T]) -> Result<T::Sum, ReduceError> {
        let part = Part::Host(vec![x, y]);
        self.run(Op::Dot, &part, |exchange| T::dot(exchange, &part))
    }

    /// Smallest element. −0.0 is less than +0.0; if there is a NaN, the result is the canonical NaN.
    ///
    /// # Errors
    /// [`ReduceError::Empty`] if there are no elements.
    pub fn min<T: Element>(&self, values: &[T]) -> Result<T, ReduceError> {
        self.extremum::<T, false>(Op::Min, values)
            .map(|(value, _)| value)
    }

    /// Largest element. −0.0 is less than +0.0; if there is a NaN, the result is the canonical NaN.
    ///
    /// # Errors
    /// [`ReduceError::Empty`] if there are no elements.
    pub fn max<T: Element>(&self, values: &[T]) -> Result<T, ReduceError> {
        self.extremum::<T, true>(Op::Max, values)
            .map(|(value, _)| value)
    }

    /// Global index of the smallest element, the lowest if there are several; of the first NaN if
    /// there is one.
    ///
    /// # Errors
    /// [`ReduceError::Empty`] if there are no elements.
    pub fn argmin<T: Element>(&self, values: &[T]) -> Result<u64, ReduceError> {
        self.extremum::<T, false>(Op::Argmin, values)
            .map(|(_, index)| index)
    }

    /// Global index of the largest element, the lowest if there are several; of the first NaN if
    /// there is one.
    ///
    /// # Errors
    /// [`ReduceError::Empty`] if there are no elements.
    pub fn argmax<T: Element>(&self, values: &[T]) -> Result<u64, ReduceError> {
        self.extremum::<T, true>(Op::Argmax, values)
            .map(|(_, index)| index)
    }

    /// Any reduction, chosen at run time. `inputs`: one array, two for [`Op::Dot`].
    ///
    /// # Errors
    /// Those of the operation; [`ReduceError::Inputs`] if the number of arrays is wrong.
    pub fn reduce<T: Element>(&self, op: Op, inputs: &[&[T]]) -> Result<Value, ReduceError> {
        // What one thread reads in a few microseconds.
        const SMALL: usize = 256 << 10;
        let len = inputs.first().map_or(0, |input| input.len());
        let bytes = len * size_of::<T>();
        let fits = inputs.len() == op.inputs() && inputs.iter().all(|input| input.len() == len);
        let here = fits && self.pe.is_none() && !self.workers.is_stopped();
        if here
            && bytes * op.inputs() < SMALL
            && let Some(value) = T::row(self.workers.simd, op, inputs, bytes)
        {
            return Ok(value);
        }
        self.reduce_part(op, &Part::Host(inputs.to_vec()))
    }

    /// Any reduction of arrays that are read piece by piece, with the same bits as [`reduce`](Self::reduce). Each thread
    /// reads into a buffer of its own, 256 KiB for each input.
    ///
    /// # Errors
    /// Those of [`reduce`](Self::reduce); [`ReduceError::Read`] if a source cannot be read, on other PEs
    /// [`ReduceError::PeerFailed`].
    pub fn reduce_from<T: Element>(
        &self,
        op: Op,
        inputs: &[&dyn Source<T>],
    ) -> Result<Value, ReduceError> {
        let part = FromSource {
            workers: self.workers,
            inputs,
        };
        self.reduce_part(op, &Part::Remote(&part))
    }

    /// Any reduction of a part, wherever it is.
    pub(crate) fn reduce_part<T: Element>(
        &self,
        op: Op,
        part: &Part<'_, T>,
    ) -> Result<Value, ReduceError> {
        self.run(op, part, |exchange| {
            Ok(match op {
                Op::Sum => T::sum(exchange, part)?.into(),
                Op::ExactSum => T::exact_sum(exchange, part)?.into(),
                Op::Prod => T::prod(exchange, part)?.into(),
                Op::Min => extremum::<T, false>(exchange, part, op)?.0.into(),
                Op::Max => extremum::<T, true>(exchange, part, op)?.0.into(),
                Op::Argmin => extremum::<T, false>(exchange, part, op)?.1.into(),
                Op::Argmax => extremum::<T, true>(exchange, part, op)?.1.into(),
                Op::Mean => T::mean(exchange, part)?.into(),
                Op::Norm2 => T::norm2(exchange, part)?.into(),
                Op::Dot => T::dot(exchange, part)?.into(),
            })
        })
    }

    fn run<T: Element, R>(
        &self,
        op: Op,
        part: &Part<'_, T>,
        work: impl FnOnce(&Exchange<'_>) -> Result<R, ReduceError>,
    ) -> Result<R, ReduceError> {
        Exchange::run(self.workers, self.pe, op, part, work)
    }

    fn extremum<T: Element, const MAX: bool>(
        &self,
        op: Op,
        values: &[T],
    ) -> Result<(T, u64), ReduceError> {
        let part = Part::Host(vec![values]);
        self.run(op, &part, |exchange| {
            extremum::<T, MAX>(exchange, &part, op)
        })
    }
}

/// The first extremum and its global index.
fn extremum<T: Element, const MAX: bool>(
    exchange: &Exchange<'_>,
    part: &Part<'_, T>,
    op: Op,
) -> Result<(T, u64), ReduceError> {
    let mine = match part {
        Part::Host(inputs) => {
            let (values, workers) = (inputs[0], exchange.workers);
            let found = workers.split(Cost::Streaming, size_of::<T>(), values.len(), |part| {
                let place = first_extremum::<T, MAX>(workers.simd, &values[part.clone()])?;
                Some(part.start + place)
            });
            // Candidates in the order of their index; `min_by_key` takes the first of equals.
            let mine = found
                .into_iter()
                .flatten()
                .min_by_key(|&place| values[place].rank::<MAX>());
            Ok(mine
                .map_or([0; 3], |place| [1, place as u64, values[place].bits()])
                .to_vec())
        }
        Part::Remote(part) => part.partial(op, 0..part.len(0)),
    };
    let mine = mine.map(|words| vec![words[0], exchange.start() + words[1], words[2]]);
    let mut first = [0; 3];
    for words in exchange.gather(3, mine)? {
        take_first::<T, MAX>(&mut first, &words, 0);
    }
    let [found, index, bits] = first;
    if found == 0 {
        return Err(ReduceError::Empty { op });
    }
    Ok((T::from_bits64(bits).canonical(), index))
}
