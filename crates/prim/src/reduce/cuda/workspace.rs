//! What reductions in one stream need beside their inputs.

use std::any::Any;
use std::mem::replace;
use std::sync::Arc;

use crosswarp_cuda::{Buffer, PinnedBuffer, Stream};

use crate::reduce::cuda::arguments::{BLOCK_SLOTS, MOST_COMBINED_BLOCKS};
use crate::sum::leaf::LEAF;
use crate::{ReduceError, Superaccumulator};

/// Words of `crosswarp::combine_blocks`, and behind them two for each block.
const STATE_WORDS: usize = BLOCK_SLOTS + 2 * (MOST_COMBINED_BLOCKS as usize + 1);
/// Words of the longest result.
const RESULT_WORDS: usize = Superaccumulator::<f64>::WORDS;

/// The memory in which the blocks of a reduction combine their results. Of one stream: reductions that may run at the
/// same time need workspaces of their own, which is why they are borrowed exclusively.
pub struct ReduceWorkspace {
    // Freed in this order: freeing device memory waits for the GPU's work, then the kernels may go.
    /// Zero between launches: every launch leaves it as it found it.
    pub(crate) state: Buffer<u64>,
    /// Room for the products of leaves, at least what the largest product so far needed.
    pub(crate) products: Buffer<u64>,
    /// The state of reductions of segments; zero between launches.
    pub(crate) segments: Buffer<u64>,
    /// Room for the queue of long segments, at least what the longest array so far needed.
    pub(crate) queue: Buffer<u64>,
    /// What `products` and `queue` were before they grew: graphs may still use it. Each is at most half
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
            queue: Buffer::new(stream.device(), 0)?,
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

    /// Makes the state of reductions of segments, if there is none yet: zero, as launches leave it.
    pub(crate) fn reserve_segments(&mut self, words: usize) -> Result<(), ReduceError> {
        if self.segments.is_empty() {
            // In a stream of its own: were this one captured, only the graph would clear it.
            let stream = Stream::new(self.stream.device())?;
            self.segments = Buffer::zeroed(&stream, words)?;
            stream.synchronize()?;
        }
        Ok(())
    }

    /// Makes room for a queue of long segments.
    pub(crate) fn reserve_queue(&mut self, words: usize) -> Result<(), ReduceError> {
        if words > self.queue.len() {
            let larger = Buffer::new(self.stream.device(), words.next_power_of_two())?;
            self.outgrown.push(replace(&mut self.queue, larger));
        }
        Ok(())
    }

    pub(crate) fn keep(&mut self, program: Arc<dyn Any + Send + Sync>) {
        if !self.used.iter().any(|used| Arc::ptr_eq(used, &program)) {
            self.used.push(program);
        }
    }
}
