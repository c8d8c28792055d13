//! The CUDA driver library: opened once, its version checked once, its failures turned into values.
#![allow(unsafe_code)] // Calls into libcuda.

use std::ffi::CStr;
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys;

use crate::driver::error::{CudaError, DriverError};

/// The lowest driver version with every function this crate calls: CUDA 13.0.
const NEEDED: i32 = 13000;

/// Calls a driver function and turns its result into a `Result<(), CudaError>`.
///
/// The call is unsafe; the block around it argues why it is sound.
macro_rules! cu {
    ($function:ident($($argument:expr),* $(,)?)) => {
        $crate::driver::libcuda::check(stringify!($function), cudarc::driver::sys::$function($($argument),*))
    };
}
pub(crate) use cu;

/// Opens and initialises the driver on the first call; returns its CUDA version
/// (1000 × major + 10 × minor), the same answer on every call.
///
/// Everything else in this crate that calls the driver comes after a successful `version`: the
/// bindings panic when the library or a function is missing, and a driver of [`NEEDED`] or newer has
/// all functions of that version.
pub(crate) fn version() -> Result<i32, DriverError> {
    static DRIVER: OnceLock<Result<i32, DriverError>> = OnceLock::new();
    DRIVER.get_or_init(start).clone()
}

fn start() -> Result<i32, DriverError> {
    // SAFETY: opens libcuda, whose initialisers are written to be run by dlopen in any thread.
    if !unsafe { sys::is_culib_present() } {
        return Err(DriverError::NoLibrary);
    }
    // SAFETY: as above; the library was there a moment ago.
    let library = unsafe { sys::culib() };
    for symbol in [
        "cuInit",
        "cuDriverGetVersion",
        "cuGetErrorName",
        "cuGetErrorString",
    ] {
        // SAFETY: only the presence of the symbol is asked, nothing is called through it.
        if unsafe { library.get::<*const ()>(symbol.as_bytes()) }.is_err() {
            return Err(DriverError::MissingSymbol { symbol });
        }
    }
    let mut found = 0;
    // SAFETY: writes one integer; allowed before cuInit.
    unsafe { cu!(cuDriverGetVersion(&mut found)) }?;
    if found < NEEDED {
        return Err(DriverError::TooOld {
            found,
            needed: NEEDED,
        });
    }
    // SAFETY: no arguments but the flags, which must be 0.
    match unsafe { cu!(cuInit(0)) } {
        Ok(()) => Ok(found),
        Err(error) if error.code == sys::CUresult::CUDA_ERROR_NO_DEVICE as i32 => {
            Err(DriverError::NoDevice {
                visible: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// `Ok` for success, else the error with the driver's name and text for it.
pub(crate) fn check(call: &'static str, result: sys::CUresult) -> Result<(), CudaError> {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(failure(call, result))
}

#[cold]
fn failure(call: &'static str, result: sys::CUresult) -> CudaError {
    let text = |get: unsafe fn(sys::CUresult, *mut *const std::ffi::c_char) -> sys::CUresult| {
        let mut text = ptr::null();
        // SAFETY: `get` is cuGetErrorName or cuGetErrorString: it stores a pointer to a static
        // string, or null for a code it does not know.
        unsafe {
            let _ = get(result, &mut text);
            if text.is_null() {
                "unknown".into()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        }
    };
    CudaError {
        call,
        code: result as i32,
        name: text(sys::cuGetErrorName),
        message: text(sys::cuGetErrorString),
    }
}
