//! DLPack: arrays handed from one library to another in a capsule. The structures are those of `dlpack.h` 1.0, and before
//! it; who takes a capsule renames it, and calls its deleter once.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Failure;
use crate::run::guarded;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct DlDevice {
    pub kind: i32,
    pub id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct DlType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

#[repr(C)]
pub struct DlTensor {
    pub data: *mut c_void,
    pub device: DlDevice,
    pub ndim: i32,
    pub dtype: DlType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

const READ_ONLY: u64 = 1;
const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const NAME_VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
/// The version whose structures these are.
pub const MAJOR: u32 = 1;

enum Owned {
    Managed(NonNull<Managed>),
    Versioned(NonNull<Versioned>),
}

/// An array taken out of a capsule. Its memory is there for as long as this object is.
#[pyclass(frozen, module = "crosswarp._native")]
struct Imported {
    owned: Owned,
}

// SAFETY: it is only read, and a deleter may be called by any thread that holds the interpreter's lock, as Python's
// destructors do.
unsafe impl Send for Imported {}
// SAFETY: the same.
unsafe impl Sync for Imported {}

#[pymethods]
impl Imported {
    #[new]
    fn new(capsule: &Bound<'_, PyCapsule>) -> PyResult<Imported> {
        guarded(move || {
            let take = |name: &CStr, used: &CStr| {
                // SAFETY: a capsule, and the interpreter's lock is held; the pointer of one that has the name is that of its
                // structure, and it is ours once it is renamed.
                unsafe {
                    let object = capsule.as_ptr();
                    if ffi::PyCapsule_IsValid(object, name.as_ptr()) == 0 {
                        return None;
                    }
                    let pointer = NonNull::new(ffi::PyCapsule_GetPointer(object, name.as_ptr()))?;
                    (ffi::PyCapsule_SetName(object, used.as_ptr()) == 0).then_some(pointer)
                }
            };
            let owned = if let Some(pointer) = take(NAME_VERSIONED, USED_VERSIONED) {
                Owned::Versioned(pointer.cast())
            } else if let Some(pointer) = take(NAME, USED) {
                Owned::Managed(pointer.cast())
            } else {
                let text = "a capsule that holds no DLPack array, or one that has been taken";
                return Err(Failure::Type(text.into()).into());
            };
            let imported = Imported { owned };
            if let Owned::Versioned(pointer) = &imported.owned {
                // SAFETY: it is ours; version and deleter are in their places in all versions.
                let major = unsafe { pointer.as_ref() }.major;
                if major != MAJOR {
                    let text =
                        format!("an array by version {major} of DLPack; version {MAJOR} is known");
                    return Err(Failure::Type(text).into());
                }
            }
            Ok(imported)
        })
    }

    /// Where the first element is.
    #[getter]
    fn address(&self) -> PyResult<usize> {
        guarded(|| {
            let tensor = self.tensor();
            Ok(tensor.data as usize + tensor.byte_offset as usize)
        })
    }

    #[getter]
    fn shape(&self) -> PyResult<Vec<i64>> {
        guarded(|| Ok(self.numbers(self.tensor().shape).unwrap_or_default()))
    }

    /// In elements; `None` of a C-contiguous array.
    #[getter]
    fn strides(&self) -> PyResult<Option<Vec<i64>>> {
        guarded(|| Ok(self.numbers(self.tensor().strides)))
    }

    /// Code, bits and lanes of the elements' type.
    #[getter]
    fn dtype(&self) -> PyResult<(u8, u8, u16)> {
        guarded(|| {
            let DlType { code, bits, lanes } = self.tensor().dtype;
            Ok((code, bits, lanes))
        })
    }

    /// Kind and number.
    #[getter]
    fn device(&self) -> PyResult<(i32, i32)> {
        guarded(|| {
            let DlDevice { kind, id } = self.tensor().device;
            Ok((kind, id))
        })
    }

    /// Whether the memory must not be written. Before version 1 DLPack cannot say so, and libraries whose arrays never
    /// change handed theirs out like any other: then it counts as read-only, as it does for NumPy.
    #[getter]
    fn read_only(&self) -> PyResult<bool> {
        guarded(|| match &self.owned {
            Owned::Managed(_) => Ok(true),
            // SAFETY: alive as long as this object.
            Owned::Versioned(pointer) => Ok(unsafe { pointer.as_ref() }.flags & READ_ONLY != 0),
        })
    }
}

impl Imported {
    fn tensor(&self) -> &DlTensor {
        // SAFETY: alive as long as this object.
        unsafe {
            match &self.owned {
                Owned::Managed(pointer) => &pointer.as_ref().tensor,
                Owned::Versioned(pointer) => &pointer.as_ref().tensor,
            }
        }
    }

    fn numbers(&self, from: *const i64) -> Option<Vec<i64>> {
        let count = usize::try_from(self.tensor().ndim).unwrap_or(0);
        if from.is_null() {
            return None;
        }
        // SAFETY: shape and strides have a number a dimension.
        Some(unsafe { std::slice::from_raw_parts(from, count) }.to_vec())
    }
}

impl Drop for Imported {
    fn drop(&mut self) {
        // SAFETY: ours, and given back once.
        unsafe {
            match &self.owned {
                Owned::Managed(pointer) => {
                    if let Some(deleter) = pointer.as_ref().deleter {
                        deleter(pointer.as_ptr());
                    }
                }
                Owned::Versioned(pointer) => {
                    if let Some(deleter) = pointer.as_ref().deleter {
                        deleter(pointer.as_ptr());
                    }
                }
            }
        }
    }
}

/// What an array that is handed out needs.
struct Exported {
    sizes: Vec<i64>,
    /// What keeps the memory.
    _owner: Py<PyAny>,
}

/// A capsule of a C-contiguous array at `address`, whose memory `owner` keeps.
#[pyfunction]
fn dlpack_capsule(
    py: Python<'_>,
    owner: Py<PyAny>,
    address: usize,
    shape: Vec<i64>,
    dtype: (u8, u8),
    device: (i32, i32),
    versioned: bool,
) -> PyResult<Py<PyAny>> {
    guarded(move || {
        let ndim = shape.len() as i32;
        // Of no elements strides may be anything.
        let mut sizes = shape;
        let strides: Vec<i64> = (0..sizes.len())
            .map(|k| sizes[k + 1..].iter().product())
            .collect();
        let count = sizes.len();
        sizes.extend(strides);
        let mut context = Box::new(Exported {
            sizes,
            _owner: owner,
        });
        let numbers = context.sizes.as_mut_ptr();
        let tensor = DlTensor {
            data: std::ptr::with_exposed_provenance_mut(address),
            device: DlDevice {
                kind: device.0,
                id: device.1,
            },
            ndim,
            dtype: DlType {
                code: dtype.0,
                bits: dtype.1,
                lanes: 1,
            },
            shape: numbers,
            strides: numbers.wrapping_add(count),
            byte_offset: 0,
        };
        let context: *mut c_void = Box::into_raw(context).cast();
        let (pointer, name): (*mut c_void, _) = if versioned {
            let all = Versioned {
                major: MAJOR,
                minor: 0,
                context,
                deleter: Some(delete_versioned),
                flags: 0,
                tensor,
            };
            (Box::into_raw(Box::new(all)).cast(), NAME_VERSIONED)
        } else {
            let all = Managed {
                tensor,
                context,
                deleter: Some(delete_managed),
            };
            (Box::into_raw(Box::new(all)).cast(), NAME)
        };
        // SAFETY: the interpreter's lock is held; the name lives for ever; the destructor gives back what nobody has taken.
        let capsule = unsafe {
            let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(destroy));
            Bound::from_owned_ptr_or_err(py, capsule)
        };
        Ok(capsule?.unbind())
    })
}

/// Lets an exported array's owner go. Any thread may call, at any time.
unsafe fn delete_context(context: *mut c_void) {
    // SAFETY: made by `dlpack_capsule`, given back once.
    let context = unsafe { Box::from_raw(context.cast::<Exported>()) };
    let mut context = Some(context);
    let done = Python::try_attach(|_| drop(context.take()));
    if done.is_none() {
        // The interpreter is gone: what it would free is, too.
        std::mem::forget(context);
    }
}

unsafe extern "C" fn delete_managed(managed: *mut Managed) {
    // SAFETY: made by `dlpack_capsule`, given back once.
    unsafe { delete_context(Box::from_raw(managed).context) }
}

unsafe extern "C" fn delete_versioned(managed: *mut Versioned) {
    // SAFETY: the same.
    unsafe { delete_context(Box::from_raw(managed).context) }
}

/// The destructor of a capsule: one that keeps its name has not been taken.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter, with its lock, for a capsule of `dlpack_capsule`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) != 0 {
            delete_managed(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, NAME_VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, NAME_VERSIONED.as_ptr()).cast());
        }
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Imported>()?;
    module.add_function(wrap_pyfunction!(dlpack_capsule, module)?)
}
