//! NVIDIA's CUB, through a library built from `bench/peers/cub.cu`: its device-wide functions are host code
//! that only nvcc compiles, so neither NVRTC nor the headers alone would do.
#![allow(unsafe_code)] // Calls functions of the library.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr;

use crosswarp_cuda::{Buffer, Device, Stream};
use libloading::Library;

use super::super::error::LadderError;

/// The environment's name of the library.
const VARIABLE: &str = "CROSSWARP_CUB";

fn open() -> Result<Library, String> {
    let path = std::env::var_os(VARIABLE).ok_or_else(|| {
        format!("set {VARIABLE} to a library built from bench/peers/cub.cu for this rung")
    })?;
    if !Path::new(&path).is_absolute() {
        return Err(format!(
            "{VARIABLE}={} is a relative path, which depends on the current folder; give an absolute one",
            Path::new(&path).display()
        ));
    }
    // SAFETY: the user names the library, and so vouches for what its initialisation does.
    unsafe { Library::new(&path) }.map_err(|error| error.to_string())
}

fn failed(code: c_int) -> LadderError {
    LadderError::Rung {
        rung: "CUB",
        reason: format!("CUDA runtime error {code}"),
    }
}

fn check(code: c_int) -> Result<(), LadderError> {
    if code == 0 { Ok(()) } else { Err(failed(code)) }
}

/// The scratch memory that a function of CUB asks for: without scratch, `query` writes its size only, and
/// returns the CUDA runtime's error code.
fn scratch(
    device: &Device,
    query: impl FnOnce(*mut c_void, &mut usize) -> c_int,
) -> Result<Buffer<u8>, String> {
    device.bind().map_err(|error| error.to_string())?;
    let mut bytes = 0;
    check(query(ptr::null_mut(), &mut bytes)).map_err(|error| error.to_string())?;
    Buffer::new(device, bytes).map_err(|error| error.to_string())
}

/// Element types of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// f32.
    F32,
    /// f16, added as f32.
    F16,
}

/// `(scratch, its size, input, output, elements, stream)`, as in CUB. The result is the CUDA runtime's error
/// code.
type SumFunction = unsafe extern "C" fn(
    *mut c_void,
    *mut usize,
    *const c_void,
    *mut f32,
    c_int,
    *mut c_void,
) -> c_int;

/// A sum of a fixed number of elements.
pub struct Sum {
    function: SumFunction,
    scratch: Buffer<u8>,
    elements: c_int,
    /// Holds the function.
    _library: Library,
}

impl Sum {
    /// For `elements` elements, at most 2^30; or why not.
    pub fn find(device: &Device, element: Element, elements: u32) -> Result<Self, String> {
        let library = open()?;
        let name: &[u8] = match element {
            Element::F32 => b"cub_sum_f32",
            Element::F16 => b"cub_sum_f16",
        };
        // SAFETY: bench/peers/cub.cu defines it with this type.
        let function = *unsafe { library.get::<SumFunction>(name) }.map_err(|e| e.to_string())?;
        let elements = elements as c_int;
        let null = ptr::null_mut;
        // SAFETY: without scratch it writes the size only.
        let scratch = scratch(device, |scratch, bytes| unsafe {
            function(
                scratch,
                bytes,
                ptr::null(),
                ptr::null_mut(),
                elements,
                null(),
            )
        })?;
        Ok(Self {
            function,
            scratch,
            elements,
            _library: library,
        })
    }

    /// Gives the sum to `stream`.
    ///
    /// # Safety
    /// `x` is the address of the elements, `out` of one f32; both, and this, live until it has run.
    pub unsafe fn launch(&self, stream: &Stream, x: u64, out: u64) -> Result<(), LadderError> {
        stream.device().bind()?;
        let mut bytes = self.scratch.len();
        // SAFETY: the scratch has as many bytes as it asked for; the rest is the caller's promise.
        check(unsafe {
            (self.function)(
                self.scratch.address() as *mut c_void,
                &mut bytes,
                x as *const c_void,
                out as *mut f32,
                self.elements,
                stream.handle().cast(),
            )
        })
    }
}

/// `(scratch, its size, samples, counts, bins, samples' number, stream)`.
type HistogramFunction = unsafe extern "C" fn(
    *mut c_void,
    *mut usize,
    *const c_int,
    *mut c_int,
    c_int,
    c_int,
    *mut c_void,
) -> c_int;

/// A histogram of a fixed number of samples and bins.
pub struct Histogram {
    function: HistogramFunction,
    scratch: Buffer<u8>,
    samples: c_int,
    bins: c_int,
    /// Holds the function.
    _library: Library,
}

impl Histogram {
    /// For `samples` samples, at most 2^30, in `bins` bins; or why not.
    pub fn find(device: &Device, samples: u32, bins: u32) -> Result<Self, String> {
        let library = open()?;
        // SAFETY: bench/peers/cub.cu defines it with this type.
        let function = *unsafe { library.get::<HistogramFunction>(b"cub_histogram") }
            .map_err(|error| error.to_string())?;
        let (samples, bins) = (samples as c_int, bins as c_int);
        let null = ptr::null_mut;
        // SAFETY: without scratch it writes the size only.
        let scratch = scratch(device, |scratch, bytes| unsafe {
            let (x, counts) = (ptr::null(), ptr::null_mut());
            function(scratch, bytes, x, counts, bins, samples, null())
        })?;
        Ok(Self {
            function,
            scratch,
            samples,
            bins,
            _library: library,
        })
    }

    /// Gives the histogram to `stream`.
    ///
    /// # Safety
    /// `x` is the address of the samples, `counts` of a 32-bit number a bin; both, and this, live until it
    /// has run.
    pub unsafe fn launch(&self, stream: &Stream, x: u64, counts: u64) -> Result<(), LadderError> {
        stream.device().bind()?;
        let mut bytes = self.scratch.len();
        // SAFETY: the scratch has as many bytes as it asked for; the rest is the caller's promise.
        check(unsafe {
            (self.function)(
                self.scratch.address() as *mut c_void,
                &mut bytes,
                x as *const c_int,
                counts as *mut c_int,
                self.bins,
                self.samples,
                stream.handle().cast(),
            )
        })
    }
}
