//! Arrays in a GPU's memory, which other libraries own: worked on where they lie.
//!
//! 1. The Python side (`python/crosswarp/_device.py`) has asked the array's library for address, length, type, device
//!    and stream. As with NumPy's arrays that is taken for true: so many elements of that GPU's memory, C-contiguous and
//!    aligned, alive for as long as the call lasts.
//! 2. Work goes to the library's own stream, in whose order the library frees and reuses memory, and the call returns at
//!    once. Of a library that names no stream, or does not say how it frees, the call waits for the end of its work.
//! 3. A call leaves the thread's current context as it was: other libraries rely on theirs.
//! 4. Nothing here is used in a process that was forked from one that used it: the driver does not work there, and
//!    another thread may have held a lock.
#![allow(unsafe_code)] // Reason: memory, streams and capsules of other libraries.

mod count;
mod dlpack;
mod even_bins;
mod exchange;
mod kernel;
mod queue;
mod reduce;
pub mod solve;
pub mod tensor;
mod transpose;

use crosswarp::cuda::{BufferRef, Error, Pod};
use pyo3::prelude::*;

use crate::error::Failure;
use crate::run::guarded;

/// Elements in a GPU's memory.
///
/// # Safety
/// Rule 1, and rule 2 for as long as they are used.
unsafe fn elements<'a, T: Pod>(address: usize, len: usize) -> Result<BufferRef<'a, T>, Failure> {
    if !address.is_multiple_of(align_of::<T>()) {
        return Err(Failure::Input(format!(
            "the array begins at {address:#x}, which is not aligned to its elements"
        )));
    }
    // SAFETY: the caller's promise; the alignment was just seen.
    Ok(unsafe { BufferRef::from_raw(address as u64, len) })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let text = error.to_string();
        match error {
            Error::Cuda(error) if error.is_out_of_memory() => Failure::Memory(text),
            Error::Compile(crosswarp::cuda::CompileError::Source(_)) => Failure::Input(text),
            _ => Failure::Gpu(text),
        }
    }
}

macro_rules! by_way_of_error {
    ($($type:ident),*) => {$(
        impl From<crosswarp::cuda::$type> for Failure {
            fn from(error: crosswarp::cuda::$type) -> Failure {
                Error::from(error).into()
            }
        }
    )*};
}
by_way_of_error!(
    DriverError,
    CudaError,
    CompileError,
    ModuleError,
    LaunchError
);

/// How many GPUs the driver shows.
#[pyfunction]
fn device_count() -> Result<usize, Failure> {
    guarded(move || {
        queue::check_fork()?;
        Ok(crosswarp::cuda::Device::count()?)
    })
}

/// Refuses in a process that was forked from one that used a GPU, before a library of arrays is asked there.
#[pyfunction]
fn check_fork() -> Result<(), Failure> {
    guarded(queue::check_fork)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(device_count, module)?)?;
    module.add_function(wrap_pyfunction!(check_fork, module)?)?;
    queue::register(module)?;
    dlpack::register(module)?;
    reduce::register(module)?;
    tensor::register(module)?;
    count::register(module)?;
    even_bins::register(module)?;
    transpose::register(module)?;
    solve::register(module)?;
    kernel::register(module)
}
