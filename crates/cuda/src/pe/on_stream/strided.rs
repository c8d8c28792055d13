//! Strided copies to and from the symmetric heap, by a kernel.
//!
//! The driver's 2-D copies would do as well, a row per element, but take 0.34 µs an element and more from
//! and to the host; the kernel moves a million elements while they move a hundred thousand
//! (bench/results/README.md, bench/schemes/strided.cu).
#![allow(unsafe_code)] // Launches a kernel of this crate.

use std::sync::PoisonError;

use bytemuck::Pod;

use crate::driver::memory::PinnedBuffer;
use crate::driver::stream::Stream;
use crate::pe::error::DeviceWorldError;
use crate::pe::on_stream::routed::Way;
use crate::pe::view::{DeviceMemory, DeviceSymRef};
use crate::pe::world::DeviceWorld;

/// Host memory that strided copies from and to the host go through, bytes.
const STAGING: usize = 4 << 20;

/// Panics if `n` elements `stride` apart are more than `len`.
fn spans(len: usize, stride: usize, n: usize) {
    assert!(stride > 0, "a stride of 0");
    assert!(
        n == 0 || (n - 1).checked_mul(stride).is_some_and(|last| last < len),
        "{n} elements {stride} apart do not fit {len}"
    );
}

/// The kernel for elements of `size` bytes, and its units per element. Elements lie at multiples of
/// their size from places aligned to 256, so what divides the size divides their addresses.
fn unit(size: usize) -> (usize, usize) {
    let kernel = size.trailing_zeros().min(4) as usize;
    (kernel, size >> kernel)
}

/// Strided copies: every n-th element. `_on_stream` runs in stream order, see
/// [the verbs in stream order](Self#verbs-in-stream-order); the other two have ended when they return.
///
/// # Panics
/// A stride is 0, an index falls outside, or `pe` does not exist.
#[allow(clippy::too_many_arguments)] // those of the operation
impl DeviceWorld<'_> {
    /// Strided put: `dest[i * dest_stride] = source[i * source_stride]` for `i` in `0..n`, `dest` on `pe`.
    pub fn iput_on_stream<'a, 'b, T: Pod>(
        &self,
        stream: &Stream,
        dest: impl Into<DeviceSymRef<'a, T>>,
        dest_stride: usize,
        source: impl Into<DeviceMemory<'b, T>>,
        source_stride: usize,
        n: usize,
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let (dest, source) = (dest.into(), source.into());
        spans(dest.len(), dest_stride, n);
        spans(source.len(), source_stride, n);
        let bytes = |stride: usize| stride * size_of::<T>();
        if !self.is_mapped(pe) {
            let local = (source.address(self.heap()), bytes(source_stride));
            let remote = (dest.place(self.heap()), bytes(dest_stride));
            // SAFETY: as below.
            return unsafe {
                self.routed_strided(stream, Way::Put, local, remote, (n, size_of::<T>()), pe)
            };
        }
        let to = (dest.address(self.heap(), pe), dest_stride);
        // SAFETY: `n` elements so far apart are in the two views.
        unsafe {
            self.copy_strided::<T>(stream, to, (source.address(self.heap()), source_stride), n)
        }
    }

    /// Strided get: `dest[i * dest_stride] = source[i * source_stride]` for `i` in `0..n`, `source` on `pe`.
    pub fn iget_on_stream<'a, 'b, T: Pod>(
        &self,
        stream: &Stream,
        dest: impl Into<DeviceMemory<'a, T>>,
        dest_stride: usize,
        source: impl Into<DeviceSymRef<'b, T>>,
        source_stride: usize,
        n: usize,
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let (dest, source) = (dest.into(), source.into());
        spans(dest.len(), dest_stride, n);
        spans(source.len(), source_stride, n);
        let bytes = |stride: usize| stride * size_of::<T>();
        if !self.is_mapped(pe) {
            let local = (dest.address(self.heap()), bytes(dest_stride));
            let remote = (source.place(self.heap()), bytes(source_stride));
            // SAFETY: as below.
            return unsafe {
                self.routed_strided(stream, Way::Get, local, remote, (n, size_of::<T>()), pe)
            };
        }
        let from = (source.address(self.heap(), pe), source_stride);
        // SAFETY: as in `iput_on_stream`.
        unsafe { self.copy_strided::<T>(stream, (dest.address(self.heap()), dest_stride), from, n) }
    }

    /// [`iput_on_stream`](Self::iput_on_stream) from the host, after the stream's earlier work.
    pub fn iput<'a, T: Pod>(
        &self,
        stream: &Stream,
        dest: impl Into<DeviceSymRef<'a, T>>,
        dest_stride: usize,
        source: &[T],
        source_stride: usize,
        n: usize,
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let dest = dest.into();
        spans(dest.len(), dest_stride, n);
        spans(source.len(), source_stride, n);
        let to = dest.address(self.heap(), pe);
        self.through_staging::<T>(stream, n, |staging, first, n| {
            for (staged, element) in staging
                .chunks_exact_mut(size_of::<T>())
                .zip(source.iter().step_by(source_stride).skip(first).take(n))
            {
                staged.copy_from_slice(bytemuck::bytes_of(element));
            }
            let at = to + (first * dest_stride * size_of::<T>()) as u64;
            if !self.is_mapped(pe) {
                let (width, local) = (size_of::<T>(), staging.address());
                let at = dest.place(self.heap()) + first * dest_stride * width;
                let remote = (at, dest_stride * width);
                // SAFETY: as below.
                unsafe {
                    self.routed_strided(stream, Way::Put, (local, width), remote, (n, width), pe)?;
                }
                self.quiet_on_stream(stream)?;
                return Ok(stream.synchronize()?);
            }
            // SAFETY: `n` elements of `dest` so far apart, and page-locked memory, which stays as it is
            // until the kernel has ended.
            unsafe {
                self.copy_strided::<T>(stream, (at, dest_stride), (staging.address(), 1), n)?;
            }
            Ok(stream.synchronize()?)
        })
    }

    /// [`iget_on_stream`](Self::iget_on_stream) to the host, after the stream's earlier work.
    pub fn iget<'a, T: Pod>(
        &self,
        stream: &Stream,
        dest: &mut [T],
        dest_stride: usize,
        source: impl Into<DeviceSymRef<'a, T>>,
        source_stride: usize,
        n: usize,
        pe: usize,
    ) -> Result<(), DeviceWorldError> {
        let source = source.into();
        spans(dest.len(), dest_stride, n);
        spans(source.len(), source_stride, n);
        let from = source.address(self.heap(), pe);
        self.through_staging::<T>(stream, n, |staging, first, n| {
            let at = from + (first * source_stride * size_of::<T>()) as u64;
            // SAFETY: as in `iput`; nobody reads the page-locked memory before the kernel has ended.
            unsafe {
                if self.is_mapped(pe) {
                    self.copy_strided::<T>(stream, (staging.address(), 1), (at, source_stride), n)?;
                } else {
                    let (width, local) = (size_of::<T>(), staging.address());
                    let at = source.place(self.heap()) + first * source_stride * width;
                    let remote = (at, source_stride * width);
                    self.routed_strided(stream, Way::Get, (local, width), remote, (n, width), pe)?;
                }
            }
            stream.synchronize()?;
            for (staged, element) in staging
                .chunks_exact(size_of::<T>())
                .take(n)
                .zip(dest.iter_mut().step_by(dest_stride).skip(first))
            {
                bytemuck::bytes_of_mut(element).copy_from_slice(staged);
            }
            Ok(())
        })
    }

    /// `part(staging, first, n)` for all of `count` elements, as many at a time as fit.
    pub(crate) fn through_staging<T: Pod>(
        &self,
        stream: &Stream,
        count: usize,
        mut part: impl FnMut(&mut PinnedBuffer<u8>, usize, usize) -> Result<(), DeviceWorldError>,
    ) -> Result<(), DeviceWorldError> {
        if count == 0 || size_of::<T>() == 0 {
            return Ok(());
        }
        // What is before it in the stream may not end; the copy itself does.
        self.settle(stream)?;
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = STAGING.max(size_of::<T>());
        if staging.as_ref().is_none_or(|staging| staging.len() < bytes) {
            *staging = Some(PinnedBuffer::zeroed(&self.device(), bytes)?);
        }
        let staging = staging.as_mut().expect("made above");
        let at_once = staging.len() / size_of::<T>();
        for first in (0..count).step_by(at_once) {
            part(staging, first, at_once.min(count - first))?;
        }
        Ok(())
    }

    /// # Safety
    /// `n` elements at each address, so many elements apart, are memory that the GPU reaches, until the
    /// copy has ended; aligned as [`unit`] wants it.
    unsafe fn copy_strided<T: Pod>(
        &self,
        stream: &Stream,
        (to, to_stride): (u64, usize),
        (from, from_stride): (u64, usize),
        n: usize,
    ) -> Result<(), DeviceWorldError> {
        if n == 0 || size_of::<T>() == 0 {
            return Ok(());
        }
        let (kernel, units) = unit(size_of::<T>());
        let kernels = self.kernels();
        // The stride of a single element means nothing and may be any.
        let args = (
            to,
            to_stride.wrapping_mul(units) as u64,
            from,
            from_stride.wrapping_mul(units) as u64,
            n as u64,
            units as u64,
        );
        // Only for the number of blocks.
        let parts = n.saturating_mul(units);
        // SAFETY: the parameters are (T*, u64, const T*, u64, u64, u64); the memory is the caller's
        // promise.
        unsafe { kernels.copy_strided(stream, kernel, parts, args) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_count_from_the_first() {
        spans(0, 1, 0);
        spans(4, 3, 2);
        for (len, stride, n) in [(3, 3, 2), (0, 1, 1), (9, 0, 1), (9, usize::MAX, 3)] {
            let fits = std::panic::catch_unwind(|| spans(len, stride, n));
            assert!(fits.is_err(), "{n} of {len} by {stride}");
        }
    }

    #[test]
    fn units_divide_the_element() {
        let units = [1, 2, 4, 6, 8, 12, 16, 24, 48].map(unit);
        assert_eq!(
            units,
            [
                (0, 1),
                (1, 1),
                (2, 1),
                (1, 3),
                (3, 1),
                (2, 3),
                (4, 1),
                (3, 3),
                (4, 3)
            ]
        );
    }
}
