//! The native part of the Python package `crosswarp`. Shapes, axes and conversions are settled in Python
//! (`python/crosswarp`), which hands over C-contiguous NumPy arrays; here they are worked on without the interpreter.
//!
//! First `error`, `run`, `array` and `numbers`; then one file, or folder, a group of functions. `gpu` has what works on
//! arrays that lie on a GPU.

mod array;
mod error;
mod gpu;
mod hierarchy;
mod histogram;
mod models;
mod numbers;
mod reduce;
mod run;
mod solve;
mod transpose;
mod world;

use std::path::PathBuf;

use crosswarp::prim::internal::rest;
use crosswarp::shmem::internal::library::set_home;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use run::guarded;

/// Ends the threads that wait for work. Called before a fork, so that Python does not warn of threads that the child would
/// not have.
#[pyfunction]
fn end_idle_threads(py: Python<'_>) -> PyResult<()> {
    guarded(|| {
        py.detach(rest);
        Ok(())
    })
}

/// Nothing in it relies on the interpreter's lock: what is shared is behind locks or atomic, and objects are frozen or
/// guarded by themselves.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Where NVRTC's wheel and the compiled kernels of this one are.
    let prefix: PathBuf = module.py().import("sys")?.getattr("prefix")?.extract()?;
    set_home(prefix);
    let before = wrap_pyfunction!(end_idle_threads, module)?;
    let at_fork = PyDict::new(module.py());
    at_fork.set_item("before", before)?;
    let os = module.py().import("os")?;
    os.call_method("register_at_fork", (), Some(&at_fork))?;
    reduce::register(module)?;
    histogram::register(module)?;
    transpose::register(module)?;
    solve::register(module)?;
    hierarchy::register(module)?;
    world::register(module)?;
    models::register(module)?;
    gpu::register(module)
}
