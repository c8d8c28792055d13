//! What reductions in one stream need beside their inputs.

use std::any::Any;
use std::mem::replace;
use std::sync::Arc;

use crosswarp_cuda::{Buffer, PinnedBuffer, Stream};

use crate::leaf::LEAF;
use crate::{ReduceError, Superaccumulator};

/// Words of a meeting and two for each block of up to `crosswarp::meeting_blocks`, behind
/// `crosswarp::ticket_slots`.
const STATE_WORDS: usize = 128 + 2 * 2048;
/// Words of the longest result.
const RESULT_WORDS: usize = Superaccumulator::<f64>::WORDS;

/// The memory in which the blocks of a reduction meet. Of one stream: reductions that may run at the
/// same time need workspaces of their own, which is why they are borrowed exclusively.
pub struct ReduceWorkspace {
    // Freed in this order: freeing device memory waits for the GPU's work, then the kernels may go.
    /// Zero between launches: every launch leaves it as it found it.
    pub(crate) state: Buffer<u64>,
    /// Room for the products of leaves, at least what the largest product so far needed.
    pub(crate) products: Buffer<u64>,
    /// The states of segments; zero between launches.
    pub(crate) segments: Buffer<u64>,
    /// What `products` and `segments` were before they grew: graphs may still use it. Each is at most half
    /// of what came after.
    outgrown: Vec<Buffer<u64>>,
    /// Where results of waiting calls arrive: the GPU writes them to the host itself.
    pub(crate) result: PinnedBuffer<u64>,
    pub(crate) stream: Stream,
    /// Kernels that may still be running.
    pub(crate) used: Vec<Arc<dyn Any + Send + Sync>>,
}

impl ReduceWorkspace {
    pub(crate) fn new(stream: &Stream) -> Result<Self, ReduceError> {
        Ok(Self {
            state: Buffer::zeroed(stream, STATE_WORDS)?,
            products: Buffer::new(stream.device(), 0)?,
            segments: Buffer::new(stream.device(), 0)?,
            outgrown: Vec::new(),
            result: PinnedBuffer::zeroed(stream.device(), RESULT_WORDS)?,
            stream: stream.clone(),
            used: Vec::new(),
        })
    }

    /// The stream in which its reductions run.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Makes room for the products of the leaves of `n` elements, and of the leaves of those, and so on.
    pub(crate) fn reserve_products(&mut self, n: u64) -> Result<(), ReduceError> {
        let (mut words, mut level) = (1, n);
        while level > 1 {
            level = level.div_ceil(LEAF as u64);
            words += level;
        }
        if words > self.products.len() as u64 {
            let larger = Buffer::new(self.stream.device(), words.next_power_of_two() as usize)?;
            self.outgrown.push(replace(&mut self.products, larger));
        }
        Ok(())
    }

    /// Makes room for the states of segments, zero as launches leave them.
    pub(crate) fn reserve_segments(&mut self, words: usize) -> Result<(), ReduceError> {
        if words > self.segments.len() {
            // In a stream of its own: were this one captured, only the graph would clear it.
            let stream = Stream::new(self.stream.device())?;
            let larger = Buffer::zeroed(&stream, words.next_power_of_two())?;
            stream.synchronize()?;
            self.outgrown.push(replace(&mut self.segments, larger));
        }
        Ok(())
    }

    pub(crate) fn keep(&mut self, program: Arc<dyn Any + Send + Sync>) {
        if !self.used.iter().any(|used| Arc::ptr_eq(used, &program)) {
            self.used.push(program);
        }
    }
}
