//! Histograms and counts on a GPU.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crosswarp::cuda::{BufferRef, Stream};
use crosswarp::prim::cuda::{DeviceHistogram, HistogramWorkspace};
use crosswarp::prim::histogram::{Bins, DeviceSample};
use crosswarp::prim::{DType, Scalar};
use pyo3::prelude::*;

use crate::array::Array;
use crate::error::Failure;
use crate::gpu::elements;
use crate::gpu::queue::{Gpu, OnGpu, Place, lock, prepare};
use crate::gpu::reduce::extremes;
use crate::gpu::tensor::known;
use crate::histogram::{float_bins, integer_bins};
use crate::numbers::element_type;
use crate::run::guarded;

/// Bins for which compiled histograms are kept, and streams for which memory is: loading one takes a millisecond.
const MOST: usize = 16;

/// Counts that fit into memory beside other things, as on the Python side.
const MOST_BINS: usize = 1 << 28;

/// Bytes of the edges of all that are kept; each edge is there three times more, here and on the GPU.
const MOST_EDGES: usize = 16 << 20;

/// Histograms by GPU, type and bins, the last used at the end.
struct Histograms(VecDeque<(Key, Arc<dyn Any + Send + Sync>)>);

static HISTOGRAMS: Mutex<Histograms> = Mutex::new(Histograms(VecDeque::new()));

/// The GPU's number, the samples' type, whether a bin is a value, and the edges' bits.
type Key = (usize, DType, bool, Vec<u64>);

/// One histogram, and memory for it in each stream that has used it.
struct Prepared<T: DeviceSample> {
    histogram: DeviceHistogram<T>,
    workspaces: Mutex<Vec<(u64, Arc<Mutex<HistogramWorkspace>>)>>,
}

/// Counts `len` samples between `edges` (on the host) into `output`, 8 bytes a bin. `values`: edges are two integers, and
/// each from the first up to the second has a bin.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Numbers of one call from Python.
fn device_histogram(
    py: Python<'_>,
    place: Place,
    dtype: usize,
    samples: usize,
    len: usize,
    edges: &Bound<'_, PyAny>,
    values: bool,
    output: usize,
) -> PyResult<()> {
    guarded(move || {
        let gpu = place.gpu()?;
        let edges = Array::prepared(edges)?;
        let count = counter(py, gpu, element_type(dtype)?, edges, values)?;
        let work = || place.with(gpu, |stream| count.count(stream, samples, len, output));
        Ok(py.detach(work)?)
    })
}

/// The histogram of samples of this type.
pub fn counter(
    py: Python<'_>,
    gpu: &'static Gpu,
    dtype: DType,
    edges: Array,
    values: bool,
) -> PyResult<Arc<dyn Count>> {
    match dtype {
        DType::U8 => of_integers::<u8>(py, gpu, edges, values),
        DType::U16 => of_integers::<u16>(py, gpu, edges, values),
        DType::I32 => of_integers::<i32>(py, gpu, edges, values),
        DType::F32 => of_bins(py, gpu, &float_bins::<f32>(edges)?, edges),
        DType::F64 => of_bins(py, gpu, &float_bins::<f64>(edges)?, edges),
        other => Err(Failure::Internal(format!("samples of {other}")).into()),
    }
}

fn of_integers<T: DeviceSample<Bound = i64> + Scalar>(
    py: Python<'_>,
    gpu: &'static Gpu,
    edges: Array,
    values: bool,
) -> PyResult<Arc<dyn Count>> {
    if values {
        let ends = edges.slice::<i64>();
        return of_values::<T>(py, gpu, [ends[0], ends[ends.len() - 1]]);
    }
    of_bins(py, gpu, &integer_bins::<T>(edges)?, edges)
}

/// A bin for each value from the first up to the second.
fn of_values<T: DeviceSample<Bound = i64> + Scalar>(
    py: Python<'_>,
    gpu: &'static Gpu,
    ends: [i64; 2],
) -> PyResult<Arc<dyn Count>> {
    let bins = Bins::<T>::integers(ends[0], ends[1]);
    let bins = bins.map_err(|error| Failure::Input(error.to_string()))?;
    let bits = ends.map(|end| end as u64).to_vec();
    Ok(compiled(
        py,
        gpu,
        &bins,
        (gpu.device.ordinal(), T::DTYPE, true, bits),
    )?)
}

fn of_bins<T: DeviceSample + Scalar>(
    py: Python<'_>,
    gpu: &'static Gpu,
    bins: &Bins<T>,
    edges: Array,
) -> PyResult<Arc<dyn Count>> {
    let bits = match edges.kind.dtype.size() {
        4 => edges
            .words::<u32>()
            .iter()
            .map(|&word| word.into())
            .collect(),
        _ => edges.words::<u64>().to_vec(),
    };
    let key = (gpu.device.ordinal(), T::DTYPE, false, bits);
    Ok(compiled(py, gpu, bins, key)?)
}

/// A histogram of whatever type.
pub trait Count: Send + Sync {
    /// Counts `len` samples into as many counters of 8 bytes as there are bins.
    fn count(
        &self,
        stream: &Stream,
        samples: usize,
        len: usize,
        output: usize,
    ) -> Result<(), Failure>;
}

impl<T: DeviceSample + Scalar> Count for OnGpu<Prepared<T>> {
    fn count(
        &self,
        stream: &Stream,
        samples: usize,
        len: usize,
        output: usize,
    ) -> Result<(), Failure> {
        // SAFETY: rules 1 and 2: an 8-byte counter a bin.
        let (samples, totals): (BufferRef<'_, T>, _) = unsafe {
            (
                elements(samples, len)?,
                elements::<u64>(output, self.histogram.bins().count())?,
            )
        };
        stream.zero(totals)?;
        // Its launches hand values on to each other: no other thread's come between.
        let workspace = self.workspace(stream)?;
        let workspace = lock(&workspace);
        let added = self
            .histogram
            .add_counts(stream, samples, totals, &workspace);
        Ok(added?)
    }
}

fn compiled<T: DeviceSample + Scalar>(
    py: Python<'_>,
    gpu: &'static Gpu,
    bins: &Bins<T>,
    key: Key,
) -> PyResult<Arc<OnGpu<Prepared<T>>>> {
    let found = lock(&HISTOGRAMS).find(&key);
    if let Some(found) = found.and_then(|found| found.downcast::<OnGpu<Prepared<T>>>().ok()) {
        return Ok(found);
    }
    let bins = bins.clone();
    let made = prepare(py, move || {
        let stream = Stream::new(&gpu.device)?;
        let prepared = Prepared {
            histogram: DeviceHistogram::new(&stream, &bins)?,
            workspaces: Mutex::default(),
        };
        Ok(Arc::new(OnGpu::new(gpu.device, prepared)))
    })?;
    // What has to go is let go without the cache's lock; by its last user, if another thread is at it.
    let old = lock(&HISTOGRAMS).insert(key, made.clone());
    drop(old);
    Ok(made)
}

impl Histograms {
    fn find(&mut self, key: &Key) -> Option<Arc<dyn Any + Send + Sync>> {
        let at = self.0.iter().rposition(|(of, _)| of == key)?;
        let found = self.0.remove(at)?;
        let result = found.1.clone();
        self.0.push_back(found);
        Some(result)
    }

    /// Keeps it, if it is not too large, and returns what has to go.
    fn insert(
        &mut self,
        key: Key,
        made: Arc<dyn Any + Send + Sync>,
    ) -> Vec<(Key, Arc<dyn Any + Send + Sync>)> {
        let bytes = |key: &Key| size_of_val(&key.3[..]);
        if bytes(&key) > MOST_EDGES {
            return Vec::new();
        }
        self.0.push_back((key, made));
        let mut total: usize = self.0.iter().map(|(key, _)| bytes(key)).sum();
        let mut old = Vec::new();
        while self.0.len() > MOST || total > MOST_EDGES {
            let Some(gone) = self.0.pop_front() else {
                break;
            };
            total -= bytes(&gone.0);
            old.push(gone);
        }
        old
    }
}

impl<T: DeviceSample> Prepared<T> {
    fn workspace(&self, stream: &Stream) -> Result<Arc<Mutex<HistogramWorkspace>>, Failure> {
        let id = stream.id()?;
        let mut all = lock(&self.workspaces);
        if let Some((_, found)) = all.iter().find(|(of, _)| *of == id) {
            return Ok(found.clone());
        }
        let made = Arc::new(Mutex::new(self.histogram.workspace()?));
        if all.len() == MOST {
            all.remove(0);
        }
        all.push((id, made.clone()));
        Ok(made)
    }
}

/// How often each number from 0 on is in a vector, a torch's tensor of integers, with `least` counts at least; `None` of
/// anything else, of no elements, and where the counts are too many or a number is negative.
#[pyfunction]
fn bincount_of_tensor(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    least: usize,
) -> PyResult<Option<Py<PyAny>>> {
    guarded(move || {
        let Some((torch, tensor)) = known(py, x)? else {
            return Ok(None);
        };
        let (seen, dtype) = (&tensor.seen, tensor.kind.dtype);
        let (gpu, place, len) = (tensor.gpu, tensor.place, seen.len());
        if seen.shape.len() != 1 || len == 0 || dtype.is_float() {
            return Ok(None);
        }
        let (low, high) = extremes(py, gpu, place, dtype, (seen.address, len))?;
        // Bits of a signed type have their sign at the top of the type's own width.
        let sign = 1u64 << (8 * dtype.size() - 1);
        let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
        if signed && (low & sign != 0) || high >= MOST_BINS as u64 {
            return Ok(None);
        }
        let bins = least.max(high as usize + 1);
        if bins > MOST_BINS {
            return Ok(None);
        }
        let (counts, output) = torch.empty(py, x, seen.device, &[bins], torch.indices()?)?;
        let ends = [0, bins as i64];
        let (count, samples, _cast) = match dtype {
            DType::U8 => (of_values::<u8>(py, gpu, ends)?, seen.address, None),
            DType::U16 => (of_values::<u16>(py, gpu, ends)?, seen.address, None),
            DType::I32 => (of_values::<i32>(py, gpu, ends)?, seen.address, None),
            _ => {
                let (cast, address) = torch.as_int32(py, x)?;
                (of_values::<i32>(py, gpu, ends)?, address, Some(cast))
            }
        };
        let work = || place.with(gpu, |stream| count.count(stream, samples, len, output));
        py.detach(work)?;
        Ok(Some(counts.unbind()))
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(device_histogram, module)?)?;
    module.add_function(wrap_pyfunction!(bincount_of_tensor, module)?)
}
