//! Copies between memory of the host and what this PE's GPU reaches, ended when they return.
#![allow(unsafe_code)] // Calls into libcuda.

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUmemorytype};

use crate::driver::error::CudaError;
use crate::driver::libcuda::cu;
use crate::driver::stream::Stream;

/// Elements in memory that the GPU reaches: of `width` bytes each, every `stride` bytes from `address` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) address: u64,
    pub(super) width: usize,
    pub(super) stride: usize,
}

/// A stream of copies of its own, so that no kernel holds them up.
pub(super) struct Copies(Stream);

impl Copies {
    pub(super) fn new(stream: Stream) -> Self {
        Self(stream)
    }

    /// # Safety
    /// So many bytes are at `to`.
    pub(super) unsafe fn write(&self, to: u64, from: &[u8]) -> Result<(), CudaError> {
        // SAFETY: by the caller; `from` outlives the copy, for we wait for it.
        unsafe {
            cu!(cuMemcpyHtoDAsync_v2(
                to,
                from.as_ptr().cast(),
                from.len(),
                self.0.handle()
            ))
        }?;
        self.0.synchronize()
    }

    /// From any memory that the GPU reaches, page-locked memory of the host, too.
    ///
    /// # Safety
    /// So many bytes are at `from`.
    pub(super) unsafe fn read(&self, to: &mut [u8], from: u64) -> Result<(), CudaError> {
        // SAFETY: by the caller; `to` outlives the copy, for we wait for it.
        unsafe {
            cu!(cuMemcpyAsync(
                to.as_mut_ptr() as u64,
                from,
                to.len(),
                self.0.handle()
            ))
        }?;
        self.0.synchronize()
    }

    /// # Safety
    /// The elements of `from` have places at `to`.
    pub(super) unsafe fn spread(&self, to: Spread, from: &[u8]) -> Result<(), CudaError> {
        let host = Spread {
            address: from.as_ptr() as u64,
            width: to.width,
            stride: to.width,
        };
        // SAFETY: by the caller, and as in `write`.
        unsafe { self.rows(to, host, from.len()) }
    }

    /// # Safety
    /// There are as many elements at `from` as fit `to`.
    pub(super) unsafe fn collect(&self, to: &mut [u8], from: Spread) -> Result<(), CudaError> {
        let host = Spread {
            address: to.as_mut_ptr() as u64,
            width: from.width,
            stride: from.width,
        };
        // SAFETY: by the caller, and as in `read`.
        unsafe { self.rows(host, from, to.len()) }
    }

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
        unsafe { cu!(cuMemcpy2DAsync_v2(&copy, self.0.handle())) }?;
        self.0.synchronize()
    }
}
