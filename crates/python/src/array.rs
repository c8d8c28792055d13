//! NumPy arrays as slices.
//!
//! 1. An array handed over is kept alive by the caller's reference for as long as the call lasts.
//! 2. Inputs are read while other Python threads may run. As with NumPy's own functions, these must not write into
//!    them meanwhile; what is read then is undefined.
//! 3. Outputs are arrays that the package has just made, or that the caller gave as `out=`; the Python side sees to
//!    it that they share no memory with an input.
#![allow(unsafe_code)] // Reason: memory of NumPy's, described by NumPy's structures.

use bytemuck::Pod;
use crosswarp::prim::{DType, Scalar, Value};
use numpy::npyffi::{self, NPY_TYPES, PY_ARRAY_API, PyArrayObject};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::error::Failure;

/// An element type as NumPy sees it.
#[derive(Clone, Copy, PartialEq)]
pub struct Kind {
    /// What the bytes are.
    pub dtype: DType,
    /// Whether they are NumPy's booleans: bytes that are 0 or 1.
    pub is_bool: bool,
}

/// A C-contiguous, aligned array of native byte order.
#[derive(Clone, Copy)]
pub struct Array {
    pub kind: Kind,
    pub len: usize,
    data: *mut u8,
}

// SAFETY: a pointer and what it leads to, under the rules at the top.
unsafe impl Send for Array {}
// SAFETY: the same.
unsafe impl Sync for Array {}

/// The element type with this number of NumPy's; none if there is no such.
fn kind(number: i32) -> Option<Kind> {
    const TYPES: [(NPY_TYPES, DType); 12] = [
        (NPY_TYPES::NPY_BYTE, DType::I8),
        (NPY_TYPES::NPY_UBYTE, DType::U8),
        (NPY_TYPES::NPY_SHORT, DType::I16),
        (NPY_TYPES::NPY_USHORT, DType::U16),
        (NPY_TYPES::NPY_INT, DType::I32),
        (NPY_TYPES::NPY_UINT, DType::U32),
        (NPY_TYPES::NPY_LONG, DType::I64),
        (NPY_TYPES::NPY_ULONG, DType::U64),
        (NPY_TYPES::NPY_LONGLONG, DType::I64),
        (NPY_TYPES::NPY_ULONGLONG, DType::U64),
        (NPY_TYPES::NPY_FLOAT, DType::F32),
        (NPY_TYPES::NPY_DOUBLE, DType::F64),
    ];
    const { assert!(size_of::<std::ffi::c_long>() == 8) };
    let found = |dtype, is_bool| Some(Kind { dtype, is_bool });
    if number == NPY_TYPES::NPY_BOOL as i32 {
        return found(DType::U8, true);
    }
    if number == NPY_TYPES::NPY_HALF as i32 {
        return found(DType::F16, false);
    }
    let (_, dtype) = TYPES.iter().find(|(name, _)| *name as i32 == number)?;
    found(*dtype, false)
}

impl Array {
    /// The memory of an array, if it is laid out as it must be and of a type that is known. Nothing of what derives from
    /// arrays: there may be more to say, as the mask of a masked array.
    pub fn of(array: &Bound<'_, PyUntypedArray>) -> Option<Array> {
        array.as_any().cast_exact::<PyUntypedArray>().ok()?;
        const LAYOUT: i32 = npyffi::NPY_ARRAY_C_CONTIGUOUS | npyffi::NPY_ARRAY_ALIGNED;
        let object: *mut PyArrayObject = array.as_array_ptr();
        // SAFETY: the object is an array, alive, and the interpreter's lock is held.
        let (fields, descr) = unsafe { (&(*object).fields, &(*(*object).fields.descr).fields) };
        let native = matches!(descr.byteorder as u8, b'=' | b'|');
        if fields.flags & LAYOUT != LAYOUT || !native {
            return None;
        }
        Some(Array {
            kind: kind(descr.type_num)?,
            len: array.len(),
            data: fields.data.cast(),
        })
    }

    /// The memory of an array that the Python side has prepared.
    pub fn prepared(array: &Bound<'_, PyAny>) -> Result<Array, Failure> {
        let found = array.cast::<PyUntypedArray>().ok().and_then(Array::of);
        found.ok_or_else(|| Failure::Internal("an array that was not prepared".into()))
    }

    /// The same, of an array to be written.
    pub fn output(array: &Bound<'_, PyAny>) -> Result<Array, Failure> {
        let output = Array::prepared(array)?;
        let untyped = array.cast::<PyUntypedArray>();
        // SAFETY: an array, as was just seen.
        let writeable = untyped.is_ok_and(|array| unsafe {
            (*array.as_array_ptr()).fields.flags & npyffi::NPY_ARRAY_WRITEABLE != 0
        });
        if writeable {
            Ok(output)
        } else {
            Err(Failure::Input("the output array is read-only".into()))
        }
    }

    /// 16-bit words that hold `bf16`, for which NumPy has no number.
    pub fn as_bf16(mut self) -> Array {
        if self.kind.dtype == DType::U16 {
            self.kind.dtype = DType::Bf16;
        }
        self
    }

    /// Where the elements are.
    pub fn address(&self) -> usize {
        self.data.expose_provenance()
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.len * self.kind.dtype.size()
    }

    /// The elements.
    ///
    /// Panics if they are of another type.
    pub fn slice<T: Scalar>(&self) -> &[T] {
        assert_eq!(T::DTYPE, self.kind.dtype);
        if self.len == 0 {
            return &[];
        }
        // SAFETY: NumPy says there are so many, contiguous and aligned (`of`); rules 1 and 2.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.len) }
    }

    /// The elements as words of their size.
    ///
    /// Panics if their size is another.
    pub fn words<T: Pod>(&self) -> &[T] {
        assert!(size_of::<T>() == self.kind.dtype.size() && align_of::<T>() <= size_of::<T>());
        if self.len == 0 {
            return &[];
        }
        // SAFETY: as for `slice`; any bits are a `T`, which is aligned as the elements are.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.len) }
    }

    /// The bytes of all elements.
    pub fn bytes_of(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: as for `slice`; any initialised memory is bytes.
        unsafe { std::slice::from_raw_parts(self.data, self.bytes()) }
    }

    /// The bytes of an output, to be written; any are elements, but of booleans, which must get such.
    #[allow(clippy::mut_from_ref)] // As for `words_mut`.
    pub fn bytes_of_mut(&self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as for `words_mut`.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.bytes()) }
    }

    /// The elements of an output as words of their size, to be written.
    ///
    /// Panics if their size is another.
    #[allow(clippy::mut_from_ref)] // Rule 3; one call makes one such slice of an output.
    pub fn words_mut<T: Pod>(&self) -> &mut [T] {
        assert!(size_of::<T>() == self.kind.dtype.size() && align_of::<T>() <= size_of::<T>());
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: as for `words`, and rules 1 and 3: nobody else has this memory.
        unsafe { std::slice::from_raw_parts_mut(self.data.cast(), self.len) }
    }

    /// Writes elements from `at` on.
    ///
    /// Panics if there is no room for them, or if their size is another.
    pub fn write_all<T: Pod>(&self, at: usize, values: &[T]) {
        assert!(size_of::<T>() == self.kind.dtype.size());
        assert!(at <= self.len && values.len() <= self.len - at);
        // SAFETY: inside the array, as was just seen; rules 1 and 3, and each element is written by one thread.
        unsafe {
            let to = self.data.add(at * size_of::<T>());
            std::ptr::copy_nonoverlapping(values.as_ptr().cast(), to, size_of_val(values));
        }
    }

    /// Writes a value's bits as element `at`.
    ///
    /// Panics if there is no such element, or if the value's size is not the elements'.
    pub fn write(&self, at: usize, value: Value) {
        let size = self.kind.dtype.size();
        assert!(at < self.len && value.dtype().size() == size);
        let bits = value.bits().to_ne_bytes();
        const { assert!(cfg!(target_endian = "little")) };
        // SAFETY: inside the array, as was just seen; rules 1 and 3, and each element is written by one thread.
        unsafe { std::ptr::copy_nonoverlapping(bits.as_ptr(), self.data.add(at * size), size) };
    }
}

/// The number of an array's element type.
pub fn type_of(array: &Bound<'_, PyUntypedArray>) -> i32 {
    let object: *mut PyArrayObject = array.as_array_ptr();
    // SAFETY: the object is an array, alive, and the interpreter's lock is held.
    unsafe { (*(*object).fields.descr).fields.type_num }
}

/// A new array, of the element type with this number, that nobody else has; its elements are yet to be written.
pub fn empty(py: Python<'_>, shape: &[usize], number: i32) -> PyResult<(Py<PyAny>, Array)> {
    let mut sizes: Vec<npyffi::npy_intp> = shape.iter().map(|&size| size as _).collect();
    // SAFETY: the interpreter's lock is held; the array takes the description, and copies the sizes.
    let array = unsafe {
        let descr = PY_ARRAY_API.PyArray_DescrFromType(py, number);
        let (ndim, sizes) = (sizes.len() as _, sizes.as_mut_ptr());
        let array = PY_ARRAY_API.PyArray_Empty(py, ndim, sizes, descr, 0);
        Bound::from_owned_ptr_or_err(py, array)?
    };
    let output = Array::output(&array)?;
    Ok((array.unbind(), output))
}

/// A value as a scalar of NumPy's.
pub fn scalar(py: Python<'_>, value: Value, is_bool: bool) -> PyResult<Py<PyAny>> {
    let number = match value {
        _ if is_bool => NPY_TYPES::NPY_BOOL,
        Value::F16(_) => NPY_TYPES::NPY_HALF,
        Value::Bf16(_) => return Err(Failure::Internal("bf16 without a type".into()).into()),
        Value::F32(_) => NPY_TYPES::NPY_FLOAT,
        Value::F64(_) => NPY_TYPES::NPY_DOUBLE,
        Value::I8(_) => NPY_TYPES::NPY_BYTE,
        Value::I16(_) => NPY_TYPES::NPY_SHORT,
        Value::I32(_) => NPY_TYPES::NPY_INT,
        Value::I64(_) => NPY_TYPES::NPY_LONG,
        Value::U8(_) => NPY_TYPES::NPY_UBYTE,
        Value::U16(_) => NPY_TYPES::NPY_USHORT,
        Value::U32(_) => NPY_TYPES::NPY_UINT,
        Value::U64(_) => NPY_TYPES::NPY_ULONG,
    };
    let mut bits = value.bits();
    // SAFETY: the interpreter's lock is held; the description is a new reference, given back below; the scalar copies
    // as many of the little-endian bytes as its type has.
    unsafe {
        let descr = PY_ARRAY_API.PyArray_DescrFromType(py, number as _);
        let data = (&raw mut bits).cast();
        let scalar = PY_ARRAY_API.PyArray_Scalar(py, data, descr, std::ptr::null_mut());
        pyo3::ffi::Py_DECREF(descr.cast());
        Ok(Bound::from_owned_ptr_or_err(py, scalar)?.unbind())
    }
}
