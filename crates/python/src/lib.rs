//! The native part of the Python package `crosswarp`. Shapes, axes and conversions are settled in Python
//! (`python/crosswarp`), which hands over C-contiguous NumPy arrays; here they are worked on without the interpreter.
//!
//! First `error`, `run` and `array`; then one file a group of functions, and of `reduce` the loops along axes: `sums`,
//! `extrema`, `integers`.

mod array;
mod error;
mod extrema;
mod hierarchy;
mod histogram;
mod integers;
mod models;
mod reduce;
mod run;
mod solve;
mod sums;
mod transpose;
mod world;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    reduce::register(module)?;
    histogram::register(module)?;
    transpose::register(module)?;
    solve::register(module)?;
    hierarchy::register(module)?;
    world::register(module)?;
    models::register(module)
}
