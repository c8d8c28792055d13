//! What the thread needs of its PE's GPU: copies to and from what the GPU reaches, ended when they return, and somebody
//! who executes the inbox. Tests have memory of the host play it (`route/tests.rs`).
#![allow(unsafe_code)] // Calls into libcuda; launches a kernel of this crate.

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemorytype};

use crate::driver::error::CudaError;
use crate::driver::libcuda::cu;
use crate::driver::stream::{Priority, Stream};
use crate::launch::Launch;
use crate::pe::route::RouteMemory;

/// Elements in memory that the GPU reaches: of `width` bytes each, every `stride` bytes from `address` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) address: u64,
    pub(super) width: usize,
    pub(super) stride: usize,
}

impl Spread {
    /// Bytes side by side.
    pub(super) fn bytes(address: u64) -> Self {
        Self {
            address,
            width: 1,
            stride: 1,
        }
    }

    fn is_dense(&self) -> bool {
        self.width == self.stride
    }
}

pub(super) trait Gpu: Send {
    /// Room for a message, in memory of the host to which copies from the GPU are quick.
    type Message: DerefMut<Target = [u8]> + Send;

    /// Called once.
    fn message(&self, bytes: usize) -> Self::Message;

    /// Stores `bytes` bytes from `from` on as elements of `to`.
    ///
    /// # Safety
    /// So many bytes are at `from`, which nobody changes meanwhile, and the elements have places at `to`.
    unsafe fn write(
        &mut self,
        to: Spread,
        from: NonNull<u8>,
        bytes: usize,
    ) -> Result<(), CudaError>;

    /// Fetches elements from any memory that the GPU reaches, page-locked memory of the host, too.
    ///
    /// # Safety
    /// There are as many elements at `from` as fit `to`.
    unsafe fn read(&mut self, to: &mut [u8], from: Spread) -> Result<(), CudaError>;

    /// Has the inbox executed, unless that is under way already: no thread of a kernel has done it in time.
    fn execute_inbox(&mut self) -> Result<(), CudaError>;
}

/// A GPU. It has streams of its own, so that no kernel holds copies up, and none what executes the inbox.
pub(super) struct CudaGpu {
    copies: Stream,
    inbox: Stream,
    started: bool,
    memory: Arc<RouteMemory>,
}

impl CudaGpu {
    pub(super) fn new(copies: Stream, memory: Arc<RouteMemory>) -> Result<Self, CudaError> {
        Ok(Self {
            inbox: Stream::with_priority(copies.device(), Priority::High)?,
            copies,
            started: false,
            memory,
        })
    }

    /// # Safety
    /// `bytes` bytes, elements of the same width, are at `from` and have places at `to`.
    unsafe fn rows(&self, to: Spread, from: Spread, bytes: usize) -> Result<(), CudaError> {
        let rows = bytes / from.width;
        if rows == 0 {
            return Ok(());
        }
        // A single element's stride means nothing.
        let pitch = |side: Spread| if rows == 1 { side.width } else { side.stride };
        let copy = CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcHost: std::ptr::null(),
            srcDevice: from.address,
            srcArray: std::ptr::null_mut(),
            srcPitch: pitch(from),
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstHost: std::ptr::null_mut(),
            dstDevice: to.address,
            dstArray: std::ptr::null_mut(),
            dstPitch: pitch(to),
            WidthInBytes: from.width,
            Height: rows,
        };
        // SAFETY: by the caller.
        unsafe { cu!(cuMemcpy2DAsync_v2(&copy, self.copies.handle())) }
    }
}

/// The bytes of [`RouteMemory::message`], which the thread alone uses.
pub(super) struct Message {
    at: *mut u8,
    bytes: usize,
    _memory: Arc<RouteMemory>,
}

// SAFETY: owns the use of these bytes.
unsafe impl Send for Message {}

impl Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are there as long as `_memory` lives, and nobody else uses them.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }
}

impl DerefMut for Message {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.bytes) }
    }
}

/// Elements at `address` of the host, side by side.
fn on_host(address: u64, like: Spread) -> Spread {
    Spread {
        address,
        width: like.width,
        stride: like.width,
    }
}

impl Gpu for CudaGpu {
    type Message = Message;

    fn message(&self, bytes: usize) -> Message {
        let message = &self.memory.message;
        assert!(bytes <= message.len());
        Message {
            at: message.address() as *mut u8,
            bytes,
            _memory: Arc::clone(&self.memory),
        }
    }

    unsafe fn write(
        &mut self,
        to: Spread,
        from: NonNull<u8>,
        bytes: usize,
    ) -> Result<(), CudaError> {
        let stream = self.copies.handle();
        // SAFETY: by the caller; `from` outlives the copy, for we wait for it.
        unsafe {
            match to.is_dense() {
                true => cu!(cuMemcpyHtoDAsync_v2(
                    to.address,
                    from.as_ptr().cast(),
                    bytes,
                    stream
                )),
                false => self.rows(to, on_host(from.as_ptr() as u64, to), bytes),
            }
        }?;
        self.copies.synchronize()
    }

    unsafe fn read(&mut self, to: &mut [u8], from: Spread) -> Result<(), CudaError> {
        let (host, bytes) = (to.as_mut_ptr() as u64, to.len());
        let stream = self.copies.handle();
        // SAFETY: by the caller; `to` outlives the copy, for we wait for it.
        unsafe {
            match from.is_dense() {
                true => cu!(cuMemcpyAsync(host, from.address, bytes, stream)),
                false => self.rows(on_host(host, from), from, bytes),
            }
        }?;
        self.copies.synchronize()
    }

    fn execute_inbox(&mut self) -> Result<(), CudaError> {
        if self.started && !self.inbox.is_done()? {
            return Ok(());
        }
        let Some(execute) = self.memory.execute.get() else {
            return Ok(());
        };
        // SAFETY: a kernel of this crate without parameters, prepared when it was loaded.
        let launched = unsafe {
            Launch::new(execute)
                .prepared_before()
                .launch(&self.inbox, ())
        };
        self.started = true;
        launched.map_err(|error| CudaError {
            call: "starting the kernel that executes atomic operations of other hosts",
            code: 0,
            name: "launch".into(),
            message: error.to_string(),
        })
    }
}

/// Memory of the host, locked in its pages as long as this lives, so that the GPU copies from it by itself.
pub(super) struct Locked(NonNull<u8>);

// SAFETY: an address that only the driver is told.
unsafe impl Send for Locked {}
// SAFETY: as above.
unsafe impl Sync for Locked {}

impl Locked {
    /// Locks `bytes` bytes at `at`; `None` where the system does not let us: copies are slower then.
    ///
    /// # Safety
    /// They stay mapped as long as this lives. A context is current, now and when it is dropped.
    pub(super) unsafe fn new(at: NonNull<u8>, bytes: usize) -> Option<Self> {
        let portable = cudarc::driver::sys::CU_MEMHOSTREGISTER_PORTABLE;
        // SAFETY: by the caller.
        let locked = unsafe { cu!(cuMemHostRegister_v2(at.as_ptr().cast(), bytes, portable)) };
        if let Err(error) = &locked {
            tracing::debug!("{bytes} bytes can't be locked for the GPU: {error}");
        }
        locked.is_ok().then_some(Self(at))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: registered by `new`, once. There is nobody to tell of a failure.
        let _ = unsafe { cu!(cuMemHostUnregister(self.0.as_ptr().cast())) };
    }
}
