//! Worlds: a PE's handle, symmetric memory as NumPy arrays, and the verbs over it.
//!
//! Here are the handle and what lives as long as it does. `verb` is how a PE waits and copies, `place` what it works on;
//! `atomic` and `collective` are what is done there, `team` and `pe` have it for Python; `threads` makes worlds of threads.
//!
//! Rules of the handle, whose `pe` is a plain pointer:
//! 1. What it leads to lives as long as the handle: the handle owns it, or, in a world of threads, the thread that
//!    has it does not end before the handle is dropped.
//! 2. Arrays of symmetric memory hold the handle (`Block`), so the memory is mapped while there is one.
//! 3. Other PEs may change symmetric memory at any time. Arrays of it are for NumPy as memory that another thread
//!    writes: what a race leaves is unspecified, and Rust code here never makes a slice of it.
#![allow(unsafe_code)] // Reason: memory that Python holds on to, and the verbs by address.

mod atomic;
mod collective;
mod pe;
mod place;
mod team;
mod threads;
mod verb;

use std::sync::mpsc::Sender;

use crosswarp::Pe;
use crosswarp::shmem::internal::address_of_host;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::Failure;
use crate::run::guarded;
use place::{Place, any};

/// What keeps a PE alive.
enum Keeper {
    /// A process's PE.
    Own(#[allow(dead_code)] Box<Pe>),
    /// The end of a channel at whose other end the PE's thread waits.
    Thread(#[allow(dead_code)] Sender<()>),
}

/// A PE of a world.
#[pyclass(frozen, module = "crosswarp._native")]
struct Handle {
    pe: *const Pe,
    /// The process that joined; a fork of it is no PE.
    pid: u32,
    _keeper: Keeper,
}

// SAFETY: a `Pe` may be used from any thread, and the keepers may be dropped on any.
unsafe impl Send for Handle {}
// SAFETY: the same.
unsafe impl Sync for Handle {}

/// Symmetric memory, for NumPy, which keeps it as the base of arrays.
#[pyclass(frozen, module = "crosswarp._native")]
struct Block {
    address: usize,
    bytes: usize,
    _handle: Py<Handle>,
}

#[pymethods]
impl Block {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(move || {
            let interface = PyDict::new(py);
            interface.set_item("data", (self.address, false))?;
            interface.set_item("shape", (self.bytes,))?;
            interface.set_item("typestr", "|u1")?;
            interface.set_item("version", 3)?;
            Ok(interface)
        })
    }
}

impl Handle {
    fn pe(&self) -> Result<&Pe, Failure> {
        if std::process::id() != self.pid {
            return Err(Failure::World(
                "this process was forked from a PE and is none itself".into(),
            ));
        }
        // SAFETY: rule 1.
        Ok(unsafe { &*self.pe })
    }

    fn other(&self, pe: usize) -> Result<&Pe, Failure> {
        let me = self.pe()?;
        if pe < me.n_pes() {
            return Ok(me);
        }
        Err(Failure::Input(format!(
            "there is no PE {pe} in a world of {}",
            me.n_pes()
        )))
    }

    /// An array in this PE's symmetric memory.
    fn symmetric(&self, array: &Bound<'_, PyAny>) -> Result<Place, Failure> {
        let place = any(array)?;
        if place.len == 0 || self.pe()?.raw().contains(place.at::<u8>(), place.bytes()) {
            return Ok(place);
        }
        Err(Failure::Input(
            "the array is not in symmetric memory: arrays from empty and zeros of a PE are, and their slices".into(),
        ))
    }

    /// One number in this PE's symmetric memory.
    fn word(&self, array: &Bound<'_, PyAny>) -> Result<Place, Failure> {
        let place = self.symmetric(array)?;
        if place.len == 1 {
            return Ok(place);
        }
        Err(Failure::Input(format!(
            "one element is needed, not {}: a[3:4] is one",
            place.len
        )))
    }
}

/// Joins the world that a launcher made, or makes one of one PE.
#[pyfunction]
fn init(py: Python<'_>) -> PyResult<Handle> {
    guarded(move || {
        let join = || crosswarp::init().map_err(|error| Failure::World(error.to_string()));
        let pe = py.detach(|| guarded(join))?;
        let pe = Box::new(pe);
        Ok(Handle {
            pe: &raw const *pe,
            pid: std::process::id(),
            _keeper: Keeper::Own(pe),
        })
    })
}

/// The address of this host that other hosts reach.
#[pyfunction]
fn address_of_this_host() -> Result<String, Failure> {
    guarded(|| {
        let address = address_of_host().map_err(|error| Failure::World(error.to_string()))?;
        Ok(address.to_string())
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Handle>()?;
    module.add_class::<team::Part>()?;
    module.add_class::<Block>()?;
    module.add_function(wrap_pyfunction!(init, module)?)?;
    module.add_function(wrap_pyfunction!(address_of_this_host, module)?)?;
    threads::register(module)
}
