//! Histograms and counts of small integers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crosswarp::prim::histogram::{Bins, Histogram, Sample};
use crosswarp::prim::internal::share;
use crosswarp::prim::{DType, Float, Scalar, Superaccumulator, Value};
use numpy::npyffi::NPY_TYPES;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::array::{Array, empty};
use crate::error::Failure;
use crate::run::{Stop, guarded, is_stopped, threads, work};

/// Samples counted between two looks at the flag that stops.
const PIECE: usize = 4 << 20;
/// Weighted samples, or counts of integers, between two looks.
const SLOW_PIECE: usize = 1 << 20;
/// A sample's cost in bytes that could be read meanwhile.
const SAMPLE: usize = 16;

/// Counts the samples between `edges`, or adds their weights, into `output`, an element a bin.
///
/// Samples are of one of the types of `Sample`, edges of `f64` (floats: of a value of the samples' type each) or, for
/// integers, of `i64`.
#[pyfunction]
fn histogram(
    py: Python<'_>,
    samples: &Bound<'_, PyAny>,
    edges: &Bound<'_, PyAny>,
    weights: Option<&Bound<'_, PyAny>>,
    output: &Bound<'_, PyAny>,
    asked: usize,
) -> PyResult<()> {
    guarded(move || {
        let (samples, edges) = (Array::prepared(samples)?, Array::prepared(edges)?);
        let weights = weights.map(Array::prepared).transpose()?;
        let output = Array::output(output)?;
        let cost = samples.len.saturating_mul(SAMPLE);
        work(py, cost, |stop| match samples.kind.dtype {
            DType::U8 => of_integers::<u8>(samples, edges, weights, output, asked, stop),
            DType::U16 => of_integers::<u16>(samples, edges, weights, output, asked, stop),
            DType::I32 => of_integers::<i32>(samples, edges, weights, output, asked, stop),
            DType::F32 => of_bins(
                &float_bins::<f32>(edges)?,
                samples,
                weights,
                output,
                asked,
                stop,
            ),
            DType::F64 => of_bins(
                &float_bins::<f64>(edges)?,
                samples,
                weights,
                output,
                asked,
                stop,
            ),
            other => Err(Failure::Internal(format!("samples of {other}"))),
        })
    })
}

fn of_integers<T: Sample<Bound = i64>>(
    samples: Array,
    edges: Array,
    weights: Option<Array>,
    output: Array,
    asked: usize,
    stop: Stop<'_>,
) -> Result<(), Failure> {
    of_bins(
        &integer_bins::<T>(edges)?,
        samples,
        weights,
        output,
        asked,
        stop,
    )
}

/// The bins between edges of `i64`.
pub fn integer_bins<T: Sample<Bound = i64>>(edges: Array) -> Result<Bins<T>, Failure> {
    let edges = edges.slice::<i64>();
    // Even edges of integers need no search: they are the same bins if the edges, rounded up, are.
    let (low, high) = (edges[0], edges[edges.len() - 1]);
    let bins = edges.len() as i128 - 1;
    let width = i128::from(high) - i128::from(low);
    let even = (0..).zip(edges).all(|(k, &edge)| {
        let exact = (k * width + bins - 1).div_euclid(bins);
        i128::from(edge) == i128::from(low) + exact
    });
    let bins = if even {
        Bins::<T>::even(low, high, edges.len() - 1)
    } else {
        Bins::<T>::edges(edges)
    };
    bins.map_err(|error| Failure::Input(error.to_string()))
}

/// The bins between edges of the samples' type.
pub fn float_bins<T: Sample<Bound = T> + Scalar>(edges: Array) -> Result<Bins<T>, Failure> {
    Bins::<T>::edges(edges.slice::<T>()).map_err(|error| Failure::Input(error.to_string()))
}

fn of_bins<T: Sample>(
    bins: &Bins<T>,
    samples: Array,
    weights: Option<Array>,
    output: Array,
    asked: usize,
    stop: Stop<'_>,
) -> Result<(), Failure> {
    let samples = samples.slice::<T>();
    let bin_of = |at: usize| bins.bin_of(samples[at]);
    match weights {
        None => {
            let histogram = Histogram::new(bins).threads(threads(asked));
            let mut totals = vec![0u64; bins.count()];
            for piece in samples.chunks(PIECE) {
                if is_stopped(stop) {
                    return Err(Failure::Stopped);
                }
                let counts = histogram.count(piece);
                let counts = counts.map_err(|error| Failure::Internal(error.to_string()))?;
                for (total, count) in totals.iter_mut().zip(counts) {
                    *total += count;
                }
            }
            write(output, &totals);
            Ok(())
        }
        Some(weights) => weighted(samples.len(), bin_of, weights, output, stop),
    }
}

/// Adds the weight of each of `len` samples to its bin: those of floats exactly, rounded once at the end.
fn weighted(
    len: usize,
    bin_of: impl Fn(usize) -> Option<usize>,
    weights: Array,
    output: Array,
    stop: Stop<'_>,
) -> Result<(), Failure> {
    if weights.len != len {
        return Err(Failure::Internal("weights of another length".into()));
    }
    match weights.kind.dtype {
        DType::F32 => exact::<f32>(len, bin_of, weights, output, stop),
        DType::F64 => exact::<f64>(len, bin_of, weights, output, stop),
        DType::I64 | DType::U64 => {
            let mut totals = vec![0u64; output.len];
            let word = |at: usize| match weights.kind.dtype {
                DType::I64 => weights.slice::<i64>()[at] as u64,
                _ => weights.slice::<u64>()[at],
            };
            in_pieces(len, stop, |at| {
                if let Some(bin) = bin_of(at) {
                    totals[bin] = totals[bin].wrapping_add(word(at));
                }
            })?;
            write(output, &totals);
            Ok(())
        }
        other => Err(Failure::Internal(format!("weights of {other}"))),
    }
}

fn exact<F: Float + Scalar>(
    len: usize,
    bin_of: impl Fn(usize) -> Option<usize>,
    weights: Array,
    output: Array,
    stop: Stop<'_>,
) -> Result<(), Failure> {
    let weights = weights.slice::<F>();
    // None for bins without a sample: an accumulator takes 100 to 600 bytes.
    let mut totals: Vec<Option<Box<Superaccumulator<F>>>> = vec![None; output.len];
    in_pieces(len, stop, |at| {
        if let Some(bin) = bin_of(at) {
            totals[bin].get_or_insert_default().add(weights[at]);
        }
    })?;
    for (bin, total) in totals.iter().enumerate() {
        let value = total.as_ref().map_or(F::ZERO, |total| total.round());
        output.write(bin, value.into());
    }
    Ok(())
}

fn in_pieces(len: usize, stop: Stop<'_>, mut each: impl FnMut(usize)) -> Result<(), Failure> {
    for start in (0..len).step_by(SLOW_PIECE) {
        if is_stopped(stop) {
            return Err(Failure::Stopped);
        }
        (start..len.min(start + SLOW_PIECE)).for_each(&mut each);
    }
    Ok(())
}

fn write(output: Array, totals: &[u64]) {
    for (bin, &total) in totals.iter().enumerate() {
        // Counts and wrapped sums have the same bits, signed or not.
        output.write(bin, Value::I64(total as i64));
    }
}

/// Counts how often each of `0..output.len()` is in `values`, or adds up the weights. All values must be such.
#[pyfunction]
fn bincount(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    weights: Option<&Bound<'_, PyAny>>,
    output: &Bound<'_, PyAny>,
    asked: usize,
) -> PyResult<()> {
    guarded(move || {
        let values = Array::prepared(values)?;
        let weights = weights.map(Array::prepared).transpose()?;
        let output = Array::output(output)?;
        let cost = values.len.saturating_mul(SAMPLE);
        work(py, cost, |stop| match values.kind.dtype {
            DType::I8 => counts::<i8>(values, weights, output, asked, stop),
            DType::I16 => counts::<i16>(values, weights, output, asked, stop),
            DType::I32 => counts::<i32>(values, weights, output, asked, stop),
            DType::I64 => counts::<i64>(values, weights, output, asked, stop),
            DType::U8 => counts::<u8>(values, weights, output, asked, stop),
            DType::U16 => counts::<u16>(values, weights, output, asked, stop),
            DType::U32 => counts::<u32>(values, weights, output, asked, stop),
            DType::U64 => counts::<u64>(values, weights, output, asked, stop),
            other => Err(Failure::Internal(format!("counts of {other}"))),
        })
    })
}

/// Values that pay for a thread: of 10^5, two threads count on a Zen 4 in 60 µs, and one in 98.
const COUNTS_OF_A_THREAD: usize = 1 << 15;

fn counts<T: Scalar + TryInto<usize> + Sync>(
    values: Array,
    weights: Option<Array>,
    output: Array,
    asked: usize,
    stop: Stop<'_>,
) -> Result<(), Failure> {
    let (values, bins) = (values.slice::<T>(), output.len);
    if let Some(weights) = weights {
        let bin_of = |at: usize| values[at].try_into().ok().filter(|&bin| bin < bins);
        return weighted(values.len(), bin_of, weights, output, stop);
    }
    // Each thread has counters of its own, which have to be worth their clearing and adding up.
    let most = values.len() / COUNTS_OF_A_THREAD.max(bins);
    let threads = threads(asked).min(most).max(1);
    let stranger = AtomicBool::new(false);
    let tally = |values: &[T]| {
        // Two tables: equal neighbours do not wait for one another.
        let mut counters = vec![[0u64; 2]; bins];
        let mut strange = false;
        for piece in values.chunks(SLOW_PIECE) {
            if is_stopped(stop) {
                break;
            }
            let mut pairs = piece.chunks_exact(2);
            let mut count = |value: T, table: usize| match value
                .try_into()
                .ok()
                .and_then(|bin| counters.get_mut(bin))
            {
                Some(counter) => counter[table] += 1,
                None => strange = true,
            };
            for pair in &mut pairs {
                count(pair[0], 0);
                count(pair[1], 1);
            }
            pairs.remainder().iter().for_each(|&value| count(value, 0));
        }
        if strange {
            stranger.store(true, Ordering::Relaxed);
        }
        counters
    };
    let part = values.len().div_ceil(threads).max(1);
    let tallies = Mutex::new(Vec::new());
    share(threads, values.len().div_ceil(part), &|number| {
        let counters = tally(&values[number * part..values.len().min((number + 1) * part)]);
        let mut tallies = tallies.lock().unwrap_or_else(PoisonError::into_inner);
        tallies.push(counters);
    });
    let tallies = tallies.into_inner().unwrap_or_else(PoisonError::into_inner);
    if is_stopped(stop) {
        return Err(Failure::Stopped);
    }
    if stranger.load(Ordering::Relaxed) {
        return Err(Failure::Internal("a value without a bin".into()));
    }
    let total = |bin: usize| {
        tallies
            .iter()
            .map(|part| part[bin].iter().sum::<u64>())
            .sum()
    };
    let totals: Vec<u64> = (0..bins).map(total).collect();
    write(output, &totals);
    Ok(())
}

/// Values that are counted at once, without a thread more.
const FEW: usize = 1 << 16;
/// Counters of a second table.
const SECOND: usize = 1 << 9;

/// How often each number is in a few values; `None` of what is not a C-contiguous vector of a few integers that are
/// not negative and small.
#[pyfunction]
fn bincount_of_few(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    least: usize,
) -> PyResult<Option<Py<PyAny>>> {
    guarded(move || {
        let Ok(untyped) = values.cast::<PyUntypedArray>() else {
            return Ok(None);
        };
        let Some(values) = Array::of(untyped).filter(|values| (1..=FEW).contains(&values.len))
        else {
            return Ok(None);
        };
        if untyped.ndim() != 1 {
            return Ok(None);
        }
        match values.kind.dtype {
            DType::I8 => few::<i8>(py, values, least),
            DType::I16 => few::<i16>(py, values, least),
            DType::I32 => few::<i32>(py, values, least),
            DType::I64 => few::<i64>(py, values, least),
            DType::U8 => few::<u8>(py, values, least),
            DType::U16 => few::<u16>(py, values, least),
            DType::U32 => few::<u32>(py, values, least),
            DType::U64 => few::<u64>(py, values, least),
            _ => Ok(None),
        }
    })
}

fn few<T: Scalar + Ord + TryInto<usize>>(
    py: Python<'_>,
    values: Array,
    least: usize,
) -> PyResult<Option<Py<PyAny>>> {
    let values = values.slice::<T>();
    let (smallest, largest) = values
        .iter()
        .fold((values[0], values[0]), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
    let (Ok(_), Ok(largest)) = (smallest.try_into(), largest.try_into()) else {
        return Ok(None);
    };
    let bins = least.max(largest.saturating_add(1));
    if bins > FEW {
        return Ok(None);
    }
    let (counts, output) = empty(py, &[bins], NPY_TYPES::NPY_LONG as i32)?;
    let counters = output.words_mut::<u64>();
    counters.fill(0);
    let count = |counters: &mut [u64], value: T| {
        if let Some(counter) = value.try_into().ok().and_then(|bin| counters.get_mut(bin)) {
            *counter += 1;
        }
    };
    // A second table: equal neighbours do not wait for one another. It has to be worth its clearing and adding up.
    let mut second = [0; SECOND];
    let (pairs, rest) = match 4 * bins <= values.len() && bins <= SECOND {
        true => values.as_chunks::<2>(),
        false => (&[][..], values),
    };
    for &[one, other] in pairs {
        count(counters, one);
        count(&mut second, other);
    }
    rest.iter().for_each(|&value| count(counters, value));
    if !pairs.is_empty() {
        for (counter, &more) in counters.iter_mut().zip(&second) {
            *counter += more;
        }
    }
    Ok(Some(counts))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(histogram, module)?)?;
    module.add_function(wrap_pyfunction!(bincount, module)?)?;
    module.add_function(wrap_pyfunction!(bincount_of_few, module)?)
}
