//! Private device memory, page-locked host memory, and copies between them and slices.
//!
//! Device memory is outside of what Rust's rules on aliasing speak of: the host never has a reference
//! into it, and any bytes are a value of a [`Pod`] type. So copies take buffers by `&`, and two
//! streams that write the same buffer without order leave unspecified values in it, but break
//! nothing. What must be kept alive and untouched while a copy runs is the *host's* memory; the
//! copies here either wait for their end, or belong to a [`CopyScope`] that does.
#![allow(unsafe_code)] // Calls into libcuda; memory it owns.

use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::{Bound, Deref, DerefMut, RangeBounds};
use std::ptr;

use bytemuck::Pod;
use cudarc::driver::sys::{self, CUdeviceptr};

use crate::driver::device::Device;
use crate::driver::error::CudaError;
use crate::driver::libcuda::{check, cu};
use crate::driver::stream::{Event, Stream};

/// Memory of one GPU for `len` elements, private to this process.
///
/// Freed when dropped, which waits for work of the GPU that still uses it.
///
/// ```
/// use crosswarp_cuda::{Buffer, Device, Error, Stream};
/// fn main() -> Result<(), Error> {
///     let Ok(device) = Device::get(0) else { return Ok(()) };
///     let stream = Stream::new(&device)?;
///     let squares = Buffer::from_slice(&stream, &[0.0f32, 1.0, 4.0, 9.0])?;
///     let copy = Buffer::zeroed(&stream, 4)?;
///     stream.copy(copy.range(..3), squares.range(1..))?;
///     assert_eq!(copy.to_vec(&stream)?, [1.0, 4.0, 9.0, 0.0]);
///     Ok(())
/// }
/// ```
pub struct Buffer<T: Pod> {
    pub(crate) address: CUdeviceptr,
    len: usize,
    device: Device,
    elements: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Memory with unspecified contents.
    ///
    /// Errors: [`CudaError::is_out_of_memory`] tells whether there was too little.
    pub fn new(device: &Device, len: usize) -> Result<Self, CudaError> {
        device.bind()?;
        let mut address = 0;
        let bytes = bytes::<T>("cuMemAlloc_v2", len)?.max(1);
        // SAFETY: writes one address; a context is current.
        unsafe { cu!(cuMemAlloc_v2(&mut address, bytes)) }?;
        Ok(Self {
            address,
            len,
            device: *device,
            elements: PhantomData,
        })
    }

    /// Memory filled with zeros before later work of `stream`.
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self, CudaError> {
        let buffer = Self::new(stream.device(), len)?;
        stream.zero(&buffer)?;
        Ok(buffer)
    }

    /// Memory with a copy of `source`; waits for the copy.
    pub fn from_slice(stream: &Stream, source: &[T]) -> Result<Self, CudaError> {
        let buffer = Self::new(stream.device(), source.len())?;
        stream.write(&buffer, source)?;
        Ok(buffer)
    }

    /// Its contents after the work given to `stream` so far; waits for that.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<T>, CudaError> {
        let mut values = vec![T::zeroed(); self.len];
        stream.read(&mut values, self)?;
        Ok(values)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The GPU it is of.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its device address, aligned to at least 256 bytes.
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// A view of some of its elements. Panics if they are out of range, as slices do.
    pub fn range(&self, range: impl RangeBounds<usize>) -> BufferRef<'_, T> {
        BufferRef::from(self).range(range)
    }
}

impl<T: Pod> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: allocated by cuMemAlloc, freed once. cuMemFree waits for the GPU's work.
            let _ = unsafe { cu!(cuMemFree_v2(self.address)) };
        }
    }
}

impl<T: Pod> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Buffer<{}>({} at {:#x})",
            std::any::type_name::<T>(),
            self.len,
            self.address
        )
    }
}

/// A view of consecutive elements of a [`Buffer`].
#[derive(Debug)]
pub struct BufferRef<'a, T: Pod> {
    pub(crate) address: CUdeviceptr,
    len: usize,
    buffer: PhantomData<&'a Buffer<T>>,
}

impl<T: Pod> Clone for BufferRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Pod> Copy for BufferRef<'_, T> {}

impl<'a, T: Pod> From<&'a Buffer<T>> for BufferRef<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        Self {
            address: buffer.address,
            len: buffer.len,
            buffer: PhantomData,
        }
    }
}

impl<'a, T: Pod> BufferRef<'a, T> {
    /// A view of `len` elements of memory that another library has made.
    ///
    /// # Safety
    /// From `address` on, which is aligned for `T`, there are so many elements of device memory, or of memory that the
    /// GPUs which it is used with reach by this address. Freeing it waits for work that was given to a GPU in `'a`, or
    /// comes after that work in its stream.
    pub unsafe fn from_raw(address: CUdeviceptr, len: usize) -> Self {
        Self {
            address,
            len,
            buffer: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device address of its first element.
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// A view of some of its elements. Panics if they are out of range, as slices do.
    pub fn range(self, range: impl RangeBounds<usize>) -> Self {
        let (start, end) = limits(range, self.len);
        Self {
            address: self.address + (start * size_of::<T>()) as CUdeviceptr,
            len: end - start,
            ..self
        }
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

pub(crate) fn limits(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&before) => before.checked_add(1).expect("range start overflows"),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1).expect("range end overflows"),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    assert!(
        start <= end && end <= len,
        "range {start}..{end} is out of range for {len} elements"
    );
    (start, end)
}

/// The size of `len` elements; as the error of the call it was meant for if there is no such size.
fn bytes<T>(call: &'static str, len: usize) -> Result<usize, CudaError> {
    let bytes = len.checked_mul(size_of::<T>());
    bytes.map_or_else(
        || Err(check(call, sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY).unwrap_err()),
        Ok,
    )
}

pub(crate) fn same_length(dest: usize, source: usize) {
    assert!(dest == source, "copy of {source} elements to {dest}");
}

/// Copies. Each panics if the two sides differ in length, as slices do.
impl Stream {
    /// Copies `source` to the GPU after the work given so far; waits for the end.
    ///
    /// Errors: while the stream is captured into a graph, since the graph could run again when
    /// `source` is gone.
    pub fn write<'a, T: Pod>(
        &self,
        dest: impl Into<BufferRef<'a, T>>,
        source: &[T],
    ) -> Result<(), CudaError> {
        let dest = dest.into();
        same_length(dest.len, source.len());
        // The lock keeps the stream from joining a capture between the check and the end.
        let _running = self.capture_lock();
        self.refuse_capture("cuMemcpyHtoDAsync_v2")?;
        // SAFETY: both sides have `bytes` bytes; `source` is borrowed until the copy has ended: the
        // stream is not captured, so it has when cuStreamSynchronize returns, or the context is
        // broken and runs nothing any more.
        unsafe {
            cu!(cuMemcpyHtoDAsync_v2(
                dest.address,
                source.as_ptr().cast(),
                dest.bytes(),
                self.handle()
            ))?;
            cu!(cuStreamSynchronize(self.handle()))
        }
    }

    /// Copies from the GPU to `dest` after the work given so far; waits for the end.
    ///
    /// Errors: as [`write`](Self::write).
    pub fn read<'a, T: Pod>(
        &self,
        dest: &mut [T],
        source: impl Into<BufferRef<'a, T>>,
    ) -> Result<(), CudaError> {
        let source = source.into();
        same_length(dest.len(), source.len);
        let _running = self.capture_lock();
        self.refuse_capture("cuMemcpyDtoHAsync_v2")?;
        // SAFETY: as in `write`; `dest` is borrowed exclusively, and any bytes are a T.
        unsafe {
            cu!(cuMemcpyDtoHAsync_v2(
                dest.as_mut_ptr().cast(),
                source.address,
                source.bytes(),
                self.handle()
            ))?;
            cu!(cuStreamSynchronize(self.handle()))
        }
    }

    /// Copies between buffers, in order with the stream's other work. Buffers of two GPUs must be
    /// peers, or the copy goes through host memory.
    pub fn copy<'a, 'b, T: Pod>(
        &self,
        dest: impl Into<BufferRef<'a, T>>,
        source: impl Into<BufferRef<'b, T>>,
    ) -> Result<(), CudaError> {
        let (dest, source) = (dest.into(), source.into());
        same_length(dest.len, source.len);
        self.device().bind()?;
        // SAFETY: both are device memory of that many bytes, which outlives the copy: freeing it
        // waits for the GPU's work.
        unsafe {
            cu!(cuMemcpyDtoDAsync_v2(
                dest.address,
                source.address,
                dest.bytes(),
                self.handle()
            ))
        }
    }

    /// Fills with zero bytes, in order with the stream's other work.
    pub fn zero<'a, T: Pod>(&self, dest: impl Into<BufferRef<'a, T>>) -> Result<(), CudaError> {
        let dest = dest.into();
        self.device().bind()?;
        let _turn = self.turn();
        // SAFETY: device memory of that many bytes; any bytes are a T.
        unsafe {
            cu!(cuMemsetD8Async(
                dest.address,
                0,
                dest.bytes(),
                self.handle()
            ))
        }
    }

    /// Fills `bytes` bytes at `address` with zeros and waits for the end.
    ///
    /// # Safety
    /// It is device memory of that many bytes, alive until then.
    pub(crate) unsafe fn zero_at(
        &self,
        address: CUdeviceptr,
        bytes: usize,
    ) -> Result<(), CudaError> {
        self.device().bind()?;
        // SAFETY: the caller's promise.
        unsafe { cu!(cuMemsetD8Async(address, 0, bytes, self.handle())) }?;
        self.synchronize()
    }

    /// Runs `work`, in which copies between host and GPU go on beside the host's own work, and waits
    /// for their end.
    ///
    /// Copies from and to page-locked memory ([`PinnedBuffer`]) return at once; the driver stages
    /// those of other memory, which may make the caller wait.
    ///
    /// ```
    /// use crosswarp_cuda::{Buffer, Device, Error, PinnedBuffer, Stream};
    /// fn main() -> Result<(), Error> {
    ///     let Ok(device) = Device::get(0) else { return Ok(()) };
    ///     let stream = Stream::new(&device)?;
    ///     let buffer = Buffer::new(&device, 1000)?;
    ///     let mut input = PinnedBuffer::zeroed(&device, 1000)?;
    ///     input.fill(7u32);
    ///     let mut output = PinnedBuffer::zeroed(&device, 1000)?;
    ///     stream.scope(|copies| {
    ///         copies.write(&buffer, &input)?;
    ///         copies.read(&mut output, &buffer)
    ///         // ... the host is free for something else ...
    ///     })?;
    ///     assert_eq!(output[..], input[..]);
    ///     Ok(())
    /// }
    /// ```
    pub fn scope<'env, R, E: From<CudaError>>(
        &self,
        work: impl FnOnce(&CopyScope<'_, 'env>) -> Result<R, E>,
    ) -> Result<R, E> {
        let last = Event::without_timing(self.device())?;
        let scope = CopyScope {
            stream: self,
            last,
            host_memory: PhantomData,
        };
        let result = work(&scope);
        // On a panic the same wait is made by the drop.
        scope.last.synchronize()?;
        result
    }

    fn refuse_capture(&self, call: &'static str) -> Result<(), CudaError> {
        if self.is_capturing()? {
            check(call, sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
        } else {
            Ok(())
        }
    }
}

/// Copies between host and GPU that end before [`Stream::scope`] returns.
pub struct CopyScope<'stream, 'env> {
    stream: &'stream Stream,
    /// Marks the end of the latest copy.
    last: Event,
    /// Invariant: were `'env` allowed to shrink, memory local to the scope's closure could be
    /// borrowed.
    host_memory: PhantomData<Cell<&'env ()>>,
}

impl Drop for CopyScope<'_, '_> {
    fn drop(&mut self) {
        let _ = self.last.synchronize();
    }
}

impl<'env> CopyScope<'_, 'env> {
    /// The scope's stream.
    pub fn stream(&self) -> &Stream {
        self.stream
    }

    /// Copies `source` to the GPU, in order with the stream's other work.
    ///
    /// Errors: as [`Stream::write`].
    pub fn write<T: Pod>(
        &self,
        dest: impl Into<BufferRef<'env, T>>,
        source: &'env [T],
    ) -> Result<(), CudaError> {
        let dest = dest.into();
        same_length(dest.len, source.len());
        let _running = self.stream.capture_lock();
        self.stream.refuse_capture("cuMemcpyHtoDAsync_v2")?;
        // SAFETY: both sides have `bytes` bytes. `source` stays borrowed for `'env`, which outlasts
        // the scope; the scope ends with a wait for the event recorded here, whatever happens in
        // between. Under the lock the stream is not captured, so copy and record really run. If
        // recording fails, the context is broken and runs nothing any more.
        unsafe {
            cu!(cuMemcpyHtoDAsync_v2(
                dest.address,
                source.as_ptr().cast(),
                dest.bytes(),
                self.stream.handle()
            ))
        }?;
        self.stream.record(&self.last)
    }

    /// Copies from the GPU to `dest`, in order with the stream's other work. `dest` can be used again
    /// after the scope.
    ///
    /// Errors: as [`Stream::write`].
    pub fn read<T: Pod>(
        &self,
        dest: &'env mut [T],
        source: impl Into<BufferRef<'env, T>>,
    ) -> Result<(), CudaError> {
        let source = source.into();
        same_length(dest.len(), source.len);
        let _running = self.stream.capture_lock();
        self.stream.refuse_capture("cuMemcpyDtoHAsync_v2")?;
        // SAFETY: as in `write`; `dest` is borrowed exclusively, and any bytes are a T.
        unsafe {
            cu!(cuMemcpyDtoHAsync_v2(
                dest.as_mut_ptr().cast(),
                source.address,
                source.bytes(),
                self.stream.handle()
            ))
        }?;
        self.stream.record(&self.last)
    }
}

/// Page-locked host memory: copies from and to it are fast and run beside the host, and kernels can
/// reach it by its address, which is the same on the GPU.
///
/// Page-locked memory is scarce; take it for staging, not for everything.
pub struct PinnedBuffer<T: Pod> {
    pointer: *mut T,
    len: usize,
    device: Device,
}

// SAFETY: owns its memory, like a Box<[T]>.
unsafe impl<T: Pod + Send> Send for PinnedBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Pod + Sync> Sync for PinnedBuffer<T> {}

impl<T: Pod> PinnedBuffer<T> {
    /// Memory filled with zeros. Every GPU can reach it, not only `device`.
    pub fn zeroed(device: &Device, len: usize) -> Result<Self, CudaError> {
        device.bind()?;
        let mut memory: *mut c_void = ptr::null_mut();
        let bytes = bytes::<T>("cuMemHostAlloc", len)?.max(1);
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: writes one pointer, to `bytes` bytes of memory, which is page-aligned and so
        // aligned for any T; they are then initialised.
        unsafe {
            cu!(cuMemHostAlloc(&mut memory, bytes, flags))?;
            ptr::write_bytes(memory.cast::<u8>(), 0, bytes);
        }
        Ok(Self {
            pointer: memory.cast(),
            len,
            device: *device,
        })
    }

    /// Its address, on the host and on every GPU.
    pub fn address(&self) -> CUdeviceptr {
        self.pointer as CUdeviceptr
    }

    pub(crate) fn parameter(&self) -> *const c_void {
        (&raw const self.pointer).cast()
    }
}

impl<T: Pod> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised elements, owned by `self`.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }
    }
}

impl<T: Pod> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.len) }
    }
}

impl<T: Pod> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: allocated by cuMemHostAlloc, freed once.
            let _ = unsafe { cu!(cuMemFreeHost(self.pointer.cast())) };
        }
    }
}

impl<T: Pod> std::fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "PinnedBuffer<{}>({})",
            std::any::type_name::<T>(),
            self.len
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_checked_and_add_up() {
        let whole = BufferRef::<u32> {
            address: 0x1000,
            len: 10,
            buffer: PhantomData,
        };
        let part = whole.range(2..).range(1..=3);
        assert_eq!(
            (part.address(), part.len(), part.bytes()),
            (0x1000 + 12, 3, 12)
        );
        assert!(whole.range(10..10).is_empty());
        for (start, end) in [(11, 11), (0, 11), (5, 4)] {
            assert!(
                std::panic::catch_unwind(|| whole.range(start..end)).is_err(),
                "{start}..{end}"
            );
        }
    }
}
