//! Memory of a GPU for many arrays: to take and to give back a small one takes the driver as long as a large one.
#![allow(unsafe_code)] // Views of parts of a buffer.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::rc::Rc;

use bytemuck::Pod;
use crosswarp_cuda::{Buffer, BufferRef, Stream};

use crate::gpu::error::GpuError;

/// Bytes that are taken at once; larger arrays have memory of their own.
const CHUNK: usize = 16 << 20;
/// Where arrays begin, in bytes: as what the driver gives.
const ALIGN: usize = 256;

/// Takes memory by chunks, which are given back when the last array of them is gone.
pub(crate) struct Arena {
    stream: Stream,
    /// The chunk that has room left, and where that begins.
    current: RefCell<Option<(Rc<Buffer<u8>>, usize)>>,
}

/// An array of `len` elements.
pub(crate) struct ArenaBuffer<T: Pod> {
    chunk: Rc<Buffer<u8>>,
    start: usize,
    len: usize,
    elements: PhantomData<T>,
}

impl Arena {
    /// Nothing is taken yet. What is written goes to `stream`.
    pub fn new(stream: &Stream) -> Arena {
        Arena {
            stream: stream.clone(),
            current: RefCell::new(None),
        }
    }

    /// The stream that arrays are filled in.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// An array of unspecified contents.
    pub fn buffer<T: Pod>(&self, len: usize) -> Result<ArenaBuffer<T>, GpuError> {
        const { assert!(ALIGN.is_multiple_of(align_of::<T>())) };
        let part = |chunk, start| ArenaBuffer {
            chunk,
            start,
            len,
            elements: PhantomData,
        };
        // A size that overflows is refused as every other one that is too large.
        let bytes = len.saturating_mul(size_of::<T>());
        let bytes = bytes.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX);
        let take = |bytes| Buffer::new(self.stream.device(), bytes).map(Rc::new);
        if bytes > CHUNK / 4 {
            return Ok(part(take(bytes)?, 0));
        }
        let mut current = self.current.borrow_mut();
        let (chunk, start) = match current.take() {
            Some((chunk, start)) if start + bytes <= CHUNK => (chunk, start),
            _ => (take(CHUNK)?, 0),
        };
        *current = Some((chunk.clone(), start + bytes));
        Ok(part(chunk, start))
    }

    /// An array of zeros.
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<ArenaBuffer<T>, GpuError> {
        let buffer = self.buffer(len)?;
        self.stream.zero(buffer.range(..))?;
        Ok(buffer)
    }

    /// A copy of `values`.
    pub fn copied<T: Pod>(&self, values: &[T]) -> Result<ArenaBuffer<T>, GpuError> {
        let buffer = self.buffer(values.len())?;
        self.stream.write(buffer.range(..), values)?;
        Ok(buffer)
    }
}

impl<T: Pod> ArenaBuffer<T> {
    /// Where it is.
    pub fn address(&self) -> u64 {
        self.chunk.address() + self.start as u64
    }

    /// Its elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Some of its elements. Panics if they are out of range.
    pub fn range(&self, range: impl RangeBounds<usize>) -> BufferRef<'_, T> {
        // SAFETY: so many elements lie in the chunk from there on, which begins at a multiple of `ALIGN`; it is given back by
        // `Buffer`'s destructor, which waits for the GPU's work, and not before the view is gone.
        let all = unsafe { BufferRef::from_raw(self.address(), self.len) };
        all.range(range)
    }
}
