//! Memory of a GPU for many arrays: to take and to give back a small one takes the driver as long as a large one.
//!
//! What has been given back is kept for the next solve, up to a limit: the driver takes a tenth of a millisecond and more for an array
//! of some megabytes, and again to take it back.
#![allow(unsafe_code)] // Views of parts of a buffer.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::{Deref, RangeBounds};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use crosswarp_cuda::{Buffer, BufferRef, Device, Stream};

use crate::gpu::error::GpuError;

/// Bytes that are taken at once; larger arrays have memory of their own.
const CHUNK: usize = 16 << 20;
/// Where arrays begin, in bytes: as what the driver gives.
const ALIGN: usize = 256;
/// Bytes that are kept at most, of all GPUs together.
const MOST_KEPT: usize = 512 << 20;

/// What is kept, the oldest first.
static KEPT: Mutex<Vec<Buffer<u8>>> = Mutex::new(Vec::new());

/// Looks at what is kept, or changes it.
fn with_kept<R>(work: impl FnOnce(&mut Vec<Buffer<u8>>) -> R) -> R {
    // Each change is one step, so a panic leaves nothing half done.
    work(&mut KEPT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Memory that is kept when it is given back.
struct Chunk(Option<Buffer<u8>>);

impl Chunk {
    /// At least so many bytes.
    fn take(device: &Device, bytes: usize) -> Result<Chunk, GpuError> {
        let fits = |kept: &Buffer<u8>| {
            kept.device() == device && (bytes..=bytes.saturating_mul(2)).contains(&kept.len())
        };
        let found = with_kept(|kept| {
            let fitting = (0..kept.len()).filter(|&at| fits(&kept[at]));
            let smallest = fitting.min_by_key(|&at| kept[at].len());
            smallest.map(|at| kept.remove(at))
        });
        let buffer = match found {
            Some(buffer) => buffer,
            None => match Buffer::new(device, bytes) {
                Err(error) if error.is_out_of_memory() => {
                    // Given back by their destructors, after the lock.
                    drop(with_kept(std::mem::take));
                    Buffer::new(device, bytes)?
                }
                made => made?,
            },
        };
        Ok(Chunk(Some(buffer)))
    }
}

impl Deref for Chunk {
    type Target = Buffer<u8>;
    fn deref(&self) -> &Buffer<u8> {
        self.0.as_ref().expect("it is there until it is given back")
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let Some(buffer) = self.0.take() else { return };
        // As the driver does before it takes memory back: work may still use it. Who takes it next has another stream.
        if buffer.len() > MOST_KEPT || buffer.device().synchronize().is_err() {
            return;
        }
        let given_back = with_kept(|kept| {
            kept.push(buffer);
            let mut bytes: usize = kept.iter().map(Buffer::len).sum();
            let is_over = |of: &&Buffer<u8>| {
                let over = bytes > MOST_KEPT;
                bytes -= of.len();
                over
            };
            let oldest = kept.iter().take_while(is_over).count();
            kept.drain(..oldest).collect::<Vec<_>>()
        });
        drop(given_back);
    }
}

/// Takes memory by chunks, which are given back when the last array of them is gone.
pub(crate) struct Arena {
    stream: Stream,
    /// The chunk that has room left, and where that begins.
    current: RefCell<Option<(Rc<Chunk>, usize)>>,
}

/// An array of `len` elements.
pub(crate) struct ArenaBuffer<T: Pod> {
    chunk: Rc<Chunk>,
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
        let take = |bytes| Chunk::take(self.stream.device(), bytes).map(Rc::new);
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
        // `Chunk`'s destructor, which waits for the GPU's work, and not before the view is gone.
        let all = unsafe { BufferRef::from_raw(self.address(), self.len) };
        all.range(range)
    }
}
