//! Elements in memory that the verbs work on.

use crosswarp::prim::DType;
use pyo3::prelude::*;

use crate::array::Array;
use crate::error::Failure;

/// Elements in memory: an array's, symmetric or not.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub address: usize,
    pub dtype: DType,
    pub len: usize,
}

impl Place {
    pub fn bytes(self) -> usize {
        self.len * self.dtype.size()
    }

    pub fn at<T>(self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.address)
    }
}

/// An array, wherever it is.
pub(super) fn any(array: &Bound<'_, PyAny>) -> Result<Place, Failure> {
    let array = Array::prepared(array)?;
    Ok(Place {
        address: array.address(),
        dtype: array.kind.dtype,
        len: array.len,
    })
}

pub(super) fn equal(left: usize, right: usize, what: &str) -> Result<(), Failure> {
    if left == right {
        return Ok(());
    }
    Err(Failure::Input(format!(
        "{what} has {left} bytes where {right} are needed"
    )))
}
