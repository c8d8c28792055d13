//! The native part of the Python package `crosswarp`. Shapes, axes and conversions are settled in Python
//! (`python/crosswarp`), which hands over C-contiguous NumPy arrays; here they are worked on without the interpreter.
//!
//! First `error`, `run` and `array`; then one file, or folder, a group of functions. `gpu` has what works on arrays that
//! lie on a GPU.

mod array;
mod error;
mod gpu;
mod hierarchy;
mod histogram;
mod models;
mod reduce;
mod run;
mod solve;
mod transpose;
mod world;

use std::path::PathBuf;

use crosswarp::shmem::internal::library::set_home;
use pyo3::prelude::*;

/// Nothing in it relies on the interpreter's lock: what is shared is behind locks or atomic, and objects are frozen or
/// guarded by themselves.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Where NVRTC's wheel and the compiled kernels of this one are.
    let prefix: PathBuf = module.py().import("sys")?.getattr("prefix")?.extract()?;
    set_home(prefix);
    reduce::register(module)?;
    histogram::register(module)?;
    transpose::register(module)?;
    solve::register(module)?;
    hierarchy::register(module)?;
    world::register(module)?;
    models::register(module)?;
    gpu::register(module)
}
