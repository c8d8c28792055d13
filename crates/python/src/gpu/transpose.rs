//! Transpositions on a GPU.

use std::sync::Arc;

use crosswarp::cuda::{Pod, Stream};
use crosswarp::prim::{DeviceTransposeError, DeviceTransposer, Layout, TransposeError};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::gpu::elements;
use crate::gpu::queue::{Gpu, Place, lock, prepare};
use crate::run::guarded;

impl From<DeviceTransposeError> for Failure {
    fn from(error: DeviceTransposeError) -> Failure {
        let text = error.to_string();
        match error {
            DeviceTransposeError::Transpose(TransposeError::Overlap) => {
                Failure::Input("out shares memory with the array that is transposed".into())
            }
            DeviceTransposeError::Cuda(error) => error.into(),
            DeviceTransposeError::Launch(error) => error.into(),
            DeviceTransposeError::Load(error) => (*error).into(),
            _ => Failure::Input(text),
        }
    }
}

/// Writes the transposes of matrices of `shape` (how many, rows, columns), whose elements have `size` bytes.
#[pyfunction]
fn device_transpose(
    py: Python<'_>,
    place: Place,
    size: usize,
    input: usize,
    output: usize,
    shape: [usize; 3],
) -> PyResult<()> {
    guarded(move || enqueue(py, place.gpu()?, place, size, [input, output], shape))
}

/// Gives a transposition of the first address's matrices into the second's to the stream.
pub fn enqueue(
    py: Python<'_>,
    gpu: &'static Gpu,
    place: Place,
    size: usize,
    [input, output]: [usize; 2],
    shape: [usize; 3],
) -> PyResult<()> {
    let transposer = compiled(py, gpu, size)?;
    let work = || {
        place.with(gpu, |stream| match size {
            1 => of_words::<u8>(&transposer, stream, input, output, shape),
            2 => of_words::<u16>(&transposer, stream, input, output, shape),
            4 => of_words::<u32>(&transposer, stream, input, output, shape),
            _ => of_words::<u64>(&transposer, stream, input, output, shape),
        })
    };
    Ok(py.detach(work)?)
}

/// The one for elements of `size` bytes: 1, 2, 4 or, of other numbers, 8.
fn compiled(py: Python<'_>, gpu: &'static Gpu, size: usize) -> PyResult<Arc<DeviceTransposer>> {
    let place = match size {
        1 => 0,
        2 => 1,
        4 => 2,
        _ => 3,
    };
    let kept = &gpu.transposers[place];
    if let Some(found) = lock(kept).clone() {
        return Ok(found);
    }
    let made = prepare(py, move || {
        Ok(Arc::new(DeviceTransposer::of_size(
            &gpu.device,
            1 << place,
        )?))
    })?;
    Ok(lock(kept).get_or_insert(made).clone())
}

fn of_words<T: Pod>(
    transposer: &DeviceTransposer,
    stream: &Stream,
    input: usize,
    output: usize,
    [batch, rows, columns]: [usize; 3],
) -> Result<(), Failure> {
    let from = Layout::new(rows, columns).with_batch(batch);
    let len = batch * rows * columns;
    // SAFETY: rules 1 and 2.
    let (input, output) = unsafe { (elements::<T>(input, len)?, elements::<T>(output, len)?) };
    Ok(transposer.transpose(stream, input, &from, output, &from.transposed())?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(device_transpose, module)?)
}
