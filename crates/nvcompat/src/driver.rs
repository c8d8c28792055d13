//! The few functions of the driver that are called here by address.
#![allow(unsafe_code)] // Calls into libcuda.

use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

/// A call that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{call} failed: {message}")]
pub(crate) struct DriverFailure {
    call: &'static str,
    message: String,
}

pub(crate) fn check(call: &'static str, result: CUresult) -> Result<(), DriverFailure> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text = ptr::null();
    // SAFETY: stores a pointer to a static string, or null.
    let message = unsafe {
        let _ = sys::cuGetErrorString(result, &mut text);
        match text.is_null() {
            true => format!("error {}", result as i32),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    };
    Err(DriverFailure { call, message })
}

/// Calls a function of the driver by name.
macro_rules! cu {
    ($function:ident($($argument:expr),* $(,)?)) => {
        $crate::driver::check(stringify!($function), ::cudarc::driver::sys::$function($($argument),*))
    };
}
pub(crate) use cu;

/// The context that is the calling thread's, given back to it at the end: a program's current device stays what it was.
/// Only where the driver is known to be there.
pub(crate) struct ContextGuard(sys::CUcontext);

impl ContextGuard {
    pub(crate) fn keep() -> Self {
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle.
        let _ = unsafe { sys::cuCtxGetCurrent(&mut context) };
        Self(context)
    }

    /// The number of the device that is current, if any is.
    pub(crate) fn device() -> Option<usize> {
        let (mut context, mut device) = (ptr::null_mut(), 0);
        // SAFETY: writes a handle and, where a context is current, a number.
        unsafe {
            cu!(cuCtxGetCurrent(&mut context)).ok()?;
            if context.is_null() {
                return None;
            }
            cu!(cuCtxGetDevice(&mut device)).ok()?;
        }
        usize::try_from(device).ok()
    }
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        // A thread without a context keeps the one that was made current: the CUDA runtime would choose it, too.
        if !self.0.is_null() {
            // SAFETY: it was current before.
            let _ = unsafe { sys::cuCtxSetCurrent(self.0) };
        }
    }
}

/// Whether the driver, which has been initialised, loads the kernels of a module with it, and not each when it is first
/// launched.
pub(crate) fn loads_kernels_at_once() -> bool {
    let mut mode = sys::CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING;
    // SAFETY: writes one value.
    let asked = unsafe { cu!(cuModuleGetLoadingMode(&mut mode)) };
    asked.is_err() || mode != sys::CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING
}

/// Copies `bytes` in stream order; either side may be memory of a host or a device.
///
/// # Safety
/// Both are so long, and live until the copy has ended; the stream is one of the current context.
pub(crate) unsafe fn copy(
    to: u64,
    from: u64,
    bytes: usize,
    stream: sys::CUstream,
) -> Result<(), DriverFailure> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: by the caller.
    unsafe { cu!(cuMemcpyAsync(to, from, bytes, stream)) }
}

/// Copies host memory to a device; done when the call returns. Behind the work of `stream` alone: in the default stream
/// it would wait for kernels of the program, and these may wait for other PEs.
///
/// # Safety
/// `to` is that many bytes of the current context's device memory, and `stream` one of its streams.
pub(crate) unsafe fn write(
    to: u64,
    from: &[u8],
    stream: sys::CUstream,
) -> Result<(), DriverFailure> {
    // SAFETY: by the caller; the copy has ended before `from` does.
    unsafe {
        let given = cu!(cuMemcpyHtoDAsync_v2(
            to,
            from.as_ptr().cast(),
            from.len(),
            stream
        ));
        given.and(cu!(cuStreamSynchronize(stream)))
    }
}

/// Copies device memory to the host, in the same way.
///
/// # Safety
/// `from` is that many bytes of the current context's device memory, and `stream` one of its streams.
pub(crate) unsafe fn read(
    to: &mut [u8],
    from: u64,
    stream: sys::CUstream,
) -> Result<(), DriverFailure> {
    // SAFETY: by the caller; the copy has ended before `to` does.
    unsafe {
        let given = cu!(cuMemcpyDtoHAsync_v2(
            to.as_mut_ptr().cast(),
            from,
            to.len(),
            stream
        ));
        given.and(cu!(cuStreamSynchronize(stream)))
    }
}

/// Whether `stream` neither is one of the default streams nor waits for them.
///
/// # Safety
/// It is a stream of the current context, or a handle of a default one.
pub(crate) unsafe fn stands_alone(stream: sys::CUstream) -> Result<bool, DriverFailure> {
    // The handles of the default streams: null, and two numbers.
    if stream.addr() <= 2 {
        return Ok(false);
    }
    let mut flags = 0;
    // SAFETY: writes one number; the stream is the caller's.
    unsafe { cu!(cuStreamGetFlags(stream, &mut flags)) }?;
    Ok(flags & sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32 != 0)
}

/// Address and size of a variable of a module.
///
/// # Safety
/// `module` is one of the current context.
pub(crate) unsafe fn variable_of_module(
    module: *mut c_void,
    name: &CStr,
) -> Result<(u64, usize), DriverFailure> {
    let (mut at, mut bytes) = (0, 0);
    // SAFETY: writes two numbers; the module is the caller's.
    unsafe {
        cu!(cuModuleGetGlobal_v2(
            &mut at,
            &mut bytes,
            module.cast(),
            name.as_ptr()
        ))
    }?;
    Ok((at, bytes))
}

/// Address and size of a variable of a library.
///
/// # Safety
/// `library` is one that the driver has loaded; a context is current.
pub(crate) unsafe fn variable_of_library(
    library: *mut c_void,
    name: &CStr,
) -> Result<(u64, usize), DriverFailure> {
    let (mut at, mut bytes) = (0, 0);
    // SAFETY: writes two numbers; the library is the caller's.
    unsafe {
        cu!(cuLibraryGetGlobal(
            &mut at,
            &mut bytes,
            library.cast(),
            name.as_ptr()
        ))
    }?;
    Ok((at, bytes))
}

/// Whether the driver knows the `bytes` bytes (not 0) at `address`, by the first and the last of them.
pub(crate) fn are_known(address: u64, bytes: usize) -> bool {
    let last = address.checked_add(bytes as u64 - 1);
    is_known(address) && last.is_some_and(is_known)
}

/// Whether the driver knows the memory at `address`: its own, or the host's that was locked in its pages for it.
fn is_known(address: u64) -> bool {
    let mut kind = 0u32;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    // SAFETY: writes one number of this size.
    unsafe {
        cu!(cuPointerGetAttribute(
            (&raw mut kind).cast(),
            attribute,
            address
        ))
    }
    .is_ok()
}

/// The function `name` of the program or of a library that it has loaded.
pub(crate) fn of_program(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a name up, nothing is called.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A C integer that is not negative.
pub(crate) fn number(value: c_int) -> Option<usize> {
    usize::try_from(value).ok()
}
