//! Arrays looked at through the functions that their library shows on their type: `DLPackExchangeAPI` of `dlpack.h` 1.3.
//! Nothing is handed over, and no object of Python's is made.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::gpu::dlpack::{DlDevice, DlTensor, DlType, MAJOR};

const NAME: &CStr = c"dlpack_exchange_api";
/// The kind of devices that are GPUs of CUDA.
const CUDA: i32 = 2;

/// The table, with the functions that are not used here as mere pointers.
#[repr(C)]
struct Table {
    major: u32,
    minor: u32,
    previous: *const c_void,
    allocate: *const c_void,
    hand_out: *const c_void,
    take_in: *const c_void,
    look: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut DlTensor) -> c_int>,
    stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

/// A library's functions, for arrays of one type.
pub struct Exchange {
    look: unsafe extern "C" fn(*mut ffi::PyObject, *mut DlTensor) -> c_int,
    stream: unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int,
}

/// An array in a GPU's memory.
pub struct Seen<'a> {
    pub address: usize,
    pub device: usize,
    /// Code and bits of an element.
    pub dtype: (u8, u8),
    pub shape: &'a [i64],
    strides: Option<&'a [i64]>,
}

impl Exchange {
    /// The functions in a type's capsule, if they are those that are known here.
    pub fn of(capsule: &Bound<'_, PyCapsule>) -> Option<Exchange> {
        let table = capsule.pointer_checked(Some(NAME)).ok()?.cast::<Table>();
        // SAFETY: a capsule of this name holds such a table, which lives as long as the library; the version is in its
        // place in all versions.
        let table = unsafe { table.as_ref() };
        if table.major != MAJOR {
            return None;
        }
        Some(Exchange {
            look: table.look?,
            stream: table.stream?,
        })
    }

    /// The array, if it lies on a GPU. `x` is of the type whose functions these are.
    ///
    /// # Safety
    /// The array is not changed, in shape or memory, while the result is in use.
    pub unsafe fn look<'a>(&self, x: &'a Bound<'_, PyAny>) -> Option<Seen<'a>> {
        let mut tensor = DlTensor {
            data: ptr::null_mut(),
            device: DlDevice { kind: 0, id: 0 },
            ndim: 0,
            dtype: DlType {
                code: 0,
                bits: 0,
                lanes: 0,
            },
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        };
        // SAFETY: attached; an array of the functions' type, and room for what is said of it.
        if unsafe { (self.look)(x.as_ptr(), &mut tensor) } != 0 {
            // It has no such description; the exception says why, and the long way will.
            drop(PyErr::take(x.py()));
            return None;
        }
        let numbers = |from: *const i64| {
            let count = usize::try_from(tensor.ndim).unwrap_or(0);
            match (count, from.is_null()) {
                (0, _) => Some(&[][..]),
                (_, true) => None,
                // SAFETY: shape and strides have a number a dimension, in the array itself.
                (count, false) => Some(unsafe { std::slice::from_raw_parts(from, count) }),
            }
        };
        let DlType { code, bits, lanes } = tensor.dtype;
        if tensor.device.kind != CUDA || lanes != 1 {
            return None;
        }
        Some(Seen {
            address: tensor.data as usize + tensor.byte_offset as usize,
            device: usize::try_from(tensor.device.id).ok()?,
            dtype: (code, bits),
            shape: numbers(tensor.shape)?,
            strides: numbers(tensor.strides),
        })
    }

    /// The handle of the stream in whose order the library now works on a GPU.
    pub fn stream(&self, py: Python<'_>, device: usize) -> PyResult<usize> {
        let mut stream = ptr::null_mut();
        // SAFETY: attached; writes one pointer.
        match unsafe { (self.stream)(CUDA, device as i32, &mut stream) } {
            0 => Ok(stream as usize),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

impl Seen<'_> {
    /// The sizes.
    pub fn sizes(&self) -> Vec<usize> {
        self.shape.iter().map(|&size| size as usize).collect()
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.shape.iter().map(|&size| size as usize).product()
    }

    /// Whether the elements lie behind one another in C order.
    pub fn is_contiguous(&self) -> bool {
        let Some(strides) = self.strides else {
            return true;
        };
        let mut step = 1;
        let mut fits = true;
        for (&size, &stride) in self.shape.iter().zip(strides).rev() {
            fits &= size == 1 || stride == step;
            step *= size;
        }
        fits || step == 0
    }
}
