//! Histograms of even bins the short way: of torch's tensors, over a range for which bins have been made before.
//!
//! The edges are NumPy's, which take longer to make than the GPU takes to count; so they are kept, here and on the GPU.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crosswarp::cuda::Buffer;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

use crate::array::Array;
use crate::error::Failure;
use crate::gpu::count::{Count, counter};
use crate::gpu::elements;
use crate::gpu::queue::{OnGpu, lock};
use crate::gpu::tensor::{Tensor, known};
use crate::run::guarded;

/// How many are kept.
const MOST: usize = 16;
/// Bytes of the edges of one that is kept, at most.
const MOST_EDGES: usize = 1 << 20;

static KEPT: Mutex<VecDeque<(Key, Arc<EvenBins>)>> = Mutex::new(VecDeque::new());

/// Bins, the range's bits, the number of the samples' type among torch's, the GPU.
type Key = (usize, [u64; 2], usize, usize);

struct EvenBins {
    count: Arc<dyn Count>,
    /// The edges' bytes on the GPU,
    edges: OnGpu<Buffer<u8>>,
    /// and torch's type of them.
    edges_type: Py<PyAny>,
}

/// The key, of a plain number of bins and a range of plain numbers: NumPy makes other edges of its own numbers.
fn key(tensor: &Tensor<'_>, bins: &Bound<'_, PyAny>, ends: [&Bound<'_, PyAny>; 2]) -> Option<Key> {
    let bins = bins.cast_exact::<PyInt>().ok()?.extract().ok()?;
    let mut bits = [0; 2];
    for (bits, end) in bits.iter_mut().zip(ends) {
        let whole = |end: &Bound<'_, PyInt>| end.extract::<i32>().ok().map(f64::from);
        let end = match end.cast_exact::<PyFloat>() {
            Ok(end) => end.extract().ok()?,
            Err(_) => whole(end.cast_exact::<PyInt>().ok()?)?,
        };
        *bits = end.to_bits();
    }
    Some((bins, bits, tensor.number, tensor.seen.device))
}

/// Counts and edges, or `None` of anything else than a tensor and bins that are kept.
#[pyfunction]
fn histogram_of_tensor(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    bins: &Bound<'_, PyAny>,
    low: &Bound<'_, PyAny>,
    high: &Bound<'_, PyAny>,
) -> PyResult<Option<(Py<PyAny>, Py<PyAny>)>> {
    guarded(move || {
        let Some((torch, tensor)) = known(py, x)? else {
            return Ok(None);
        };
        let Some(key) = key(&tensor, bins, [low, high]) else {
            return Ok(None);
        };
        let found = lock(&KEPT).iter().find(|(of, _)| *of == key).cloned();
        let Some((_, kept)) = found else {
            return Ok(None);
        };
        let (len, device) = (tensor.seen.len(), tensor.seen.device);
        let (counts, output) = torch.empty(py, x, device, &[key.0], torch.indices()?)?;
        let (edges, copy) = torch.empty(py, x, device, &[key.0 + 1], &kept.edges_type)?;
        let (gpu, from) = (tensor.gpu, tensor.seen.address);
        let work = || {
            tensor.place.with(gpu, |stream| {
                // SAFETY: rules 1 and 2: as many edges of the same type.
                let copy = unsafe { elements::<u8>(copy, kept.edges.len()) }?;
                stream.copy(copy, &*kept.edges)?;
                kept.count.count(stream, from, len, output)
            })
        };
        py.detach(work)?;
        Ok(Some((counts.unbind(), edges.unbind())))
    })
}

/// Keeps bins, if they are of a tensor and of plain numbers: `edges` are the result, of torch's `edges_type`; `compared`
/// those that samples are compared with.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Of one call from Python.
fn keep_even_bins(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    bins: &Bound<'_, PyAny>,
    low: &Bound<'_, PyAny>,
    high: &Bound<'_, PyAny>,
    edges: &Bound<'_, PyAny>,
    edges_type: Py<PyAny>,
    compared: &Bound<'_, PyAny>,
) -> PyResult<()> {
    guarded(move || {
        let Some((_, tensor)) = known(py, x)? else {
            return Ok(());
        };
        let edges = Array::prepared(edges)?;
        let Some(key) = key(&tensor, bins, [low, high]).filter(|_| edges.bytes() <= MOST_EDGES)
        else {
            return Ok(());
        };
        let gpu = tensor.gpu;
        let count = counter(
            py,
            gpu,
            tensor.kind.dtype,
            Array::prepared(compared)?,
            false,
        )?;
        let copied = py.detach(|| {
            tensor.place.with(gpu, |stream| {
                let copy = Buffer::new(&gpu.device, edges.bytes())?;
                stream.write(&copy, edges.bytes_of())?;
                Ok(OnGpu::new(gpu.device, copy))
            })
        });
        let edges = match copied {
            // There is a result already; the next call makes its own edges again.
            Err(Failure::Memory(_)) => return Ok(()),
            copied => copied?,
        };
        let made = EvenBins {
            count,
            edges,
            edges_type,
        };
        // What has to go is let go without the lock.
        let old = {
            let mut kept = lock(&KEPT);
            let old = if kept.len() == MOST {
                kept.pop_front()
            } else {
                None
            };
            kept.push_back((key, Arc::new(made)));
            old
        };
        drop(old);
        Ok::<_, PyErr>(())
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(histogram_of_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(keep_even_bins, module)?)
}
