//! NVIDIA's cuBLAS, if it is found as every library is.
#![allow(unsafe_code)] // Calls functions of the library.

use std::ffi::{c_int, c_void};
use std::ptr;

use crosswarp_cuda::{Buffer, Sought, Stream, find_library};

use super::super::error::LadderError;

const SOUGHT: Sought = Sought {
    variable: "CROSSWARP_CUBLAS",
    names: &["libcublas.so.13", "libcublas.so"],
    older: &["libcublas.so.12"],
    wheel: "cublas",
};
/// What NVIDIA recommends as workspace on recent GPUs, bytes; given once, so that captured calls
/// allocate nothing.
const WORKSPACE: usize = 32 << 20;

const OP_N: c_int = 0;
const OP_T: c_int = 1;

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
type SetWorkspace = unsafe extern "C" fn(Handle, *mut c_void, usize) -> c_int;
/// `cublasSgemm_v2` and `cublasSgeam` as its documentation has them.
type Sgemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    *const f32,
    *mut f32,
    c_int,
) -> c_int;
type Sgeam = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *mut f32,
    c_int,
) -> c_int;

/// A handle of cuBLAS, bound to one stream.
pub struct Cublas {
    handle: Handle,
    destroy: Destroy,
    sgemm: Sgemm,
    sgeam: Sgeam,
    /// The stream and the workspace that the handle uses.
    stream: Stream,
    _workspace: Buffer<u8>,
}

impl Drop for Cublas {
    fn drop(&mut self) {
        if self.stream.device().bind().is_ok() {
            // SAFETY: created by `find`, destroyed once.
            let _ = unsafe { (self.destroy)(self.handle) };
        }
    }
}

fn check(code: c_int) -> Result<(), LadderError> {
    if code == 0 {
        return Ok(());
    }
    Err(LadderError::Rung {
        rung: "cuBLAS",
        reason: format!("status {code}"),
    })
}

impl Cublas {
    /// A handle for `stream`; or why not.
    pub fn find(stream: &Stream) -> Result<Self, String> {
        let library = find_library(&SOUGHT)?;
        macro_rules! symbol {
            ($type:ty, $name:literal) => {
                // SAFETY: the type is that of cuBLAS's documentation.
                *unsafe { library.get::<$type>($name) }.map_err(|error| error.to_string())?
            };
        }
        let (create, destroy) = (
            symbol!(Create, b"cublasCreate_v2"),
            symbol!(Destroy, b"cublasDestroy_v2"),
        );
        let set_stream = symbol!(SetStream, b"cublasSetStream_v2");
        let set_workspace = symbol!(SetWorkspace, b"cublasSetWorkspace_v2");
        let (sgemm, sgeam) = (
            symbol!(Sgemm, b"cublasSgemm_v2"),
            symbol!(Sgeam, b"cublasSgeam"),
        );
        let text = |error: LadderError| error.to_string();
        let workspace =
            Buffer::new(stream.device(), WORKSPACE).map_err(|error| error.to_string())?;
        let mut handle = ptr::null_mut();
        stream.device().bind().map_err(|error| error.to_string())?;
        // SAFETY: writes one handle; the stream's GPU is current.
        check(unsafe { create(&mut handle) }).map_err(text)?;
        let cublas = Self {
            handle,
            destroy,
            sgemm,
            sgeam,
            stream: stream.clone(),
            _workspace: workspace,
        };
        // SAFETY: handle and stream are alive, the workspace has that many bytes; all are kept.
        unsafe {
            check(set_stream(handle, stream.handle().cast())).map_err(text)?;
            let address = cublas._workspace.address() as *mut c_void;
            check(set_workspace(handle, address, WORKSPACE)).map_err(text)?;
        }
        Ok(cublas)
    }

    /// c = a · b, all n × n, row by row.
    ///
    /// # Safety
    /// Three addresses of n × n f32, which, and this, live until it has run.
    pub unsafe fn product(&self, a: u64, b: u64, c: u64, n: usize) -> Result<(), LadderError> {
        let n = n as c_int;
        let (one, zero) = (1.0f32, 0.0f32);
        self.stream.device().bind()?;
        // Column by column, what is row by row is transposed: cᵀ = bᵀ · aᵀ.
        // SAFETY: the factors are read before it returns (the pointer mode is that of the host, the
        // default); the rest is the caller's promise.
        check(unsafe {
            (self.sgemm)(
                self.handle,
                OP_N,
                OP_N,
                n,
                n,
                n,
                &one,
                b as *const f32,
                n,
                a as *const f32,
                n,
                &zero,
                c as *mut f32,
                n,
            )
        })
    }

    /// `to` becomes the transpose of `from`, both n × n.
    ///
    /// # Safety
    /// Two addresses of n × n f32, which, and this, live until it has run.
    pub unsafe fn transpose(&self, to: u64, from: u64, n: usize) -> Result<(), LadderError> {
        let n = n as c_int;
        let (one, zero) = (1.0f32, 0.0f32);
        self.stream.device().bind()?;
        // SAFETY: as in `product`; a factor of zero leaves the second matrix unread.
        check(unsafe {
            (self.sgeam)(
                self.handle,
                OP_T,
                OP_N,
                n,
                n,
                &one,
                from as *const f32,
                n,
                &zero,
                from as *const f32,
                n,
                to as *mut f32,
                n,
            )
        })
    }
}
