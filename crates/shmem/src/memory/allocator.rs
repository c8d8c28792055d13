//! The allocator of a symmetric heap.
//!
//! Every PE has its own and all of them agree, because every PE makes the same calls in the same order. Its lists lie
//! outside the heap, so the same code serves heaps the processor can not touch.

use range_alloc::RangeAllocator;
use std::collections::HashMap;
use std::fmt;

/// Allocations are whole multiples of this many bytes, and aligned to it: a cache line, so that two
/// objects never share one.
pub const GRANULE: usize = 64;

/// One PE's allocator of a symmetric heap: which blocks of it are taken. It knows offsets, not memory, so it
/// serves heaps of any kind; PEs that make the same calls in the same order have the same blocks taken.
///
/// ```
/// let mut allocator = crosswarp_shmem::internal::HeapAllocator::new(1 << 20);
/// let (offset, block) = allocator.allocate(1000, 256).unwrap();
/// assert_eq!(offset % 256, 0);
/// allocator.free(block);
/// assert_eq!(allocator.free_bytes(), 1 << 20);
/// ```
pub struct HeapAllocator {
    granules: RangeAllocator<usize>,
    free_granules: usize,
    pub(crate) heap_bytes: usize,
}

/// A block taken, to be given back with [`HeapAllocator::free`].
#[derive(Clone, Copy, Debug)]
pub struct Block {
    first: usize,
    end: usize,
}

impl HeapAllocator {
    /// The allocator of an empty heap of `heap_bytes` bytes.
    pub fn new(heap_bytes: usize) -> Self {
        let granules = heap_bytes / GRANULE;
        Self {
            granules: RangeAllocator::new(0..granules),
            free_granules: granules,
            heap_bytes,
        }
    }

    /// Takes a block of `bytes` at a multiple of `align` (a power of two; at least [`GRANULE`] is
    /// kept); its byte offset, and the block. `None` if there is no room.
    pub fn allocate(&mut self, bytes: usize, align: usize) -> Option<(usize, Block)> {
        let (len, align) = (bytes.div_ceil(GRANULE).max(1), (align / GRANULE).max(1));
        let taken = self.granules.allocate_range_aligned(len, align).ok()?;
        self.free_granules -= len;
        let block = Block {
            first: taken.start,
            end: taken.end,
        };
        Some((block.first * GRANULE, block))
    }

    /// Gives a block back.
    pub fn free(&mut self, block: Block) {
        self.free_granules += block.end - block.first;
        self.granules.free_range(block.first..block.end);
    }

    /// Bytes free in total, possibly in pieces.
    pub fn free_bytes(&self) -> usize {
        self.free_granules * GRANULE
    }
}

impl Block {
    /// Its bytes.
    pub(crate) fn room(self) -> usize {
        (self.end - self.first) * GRANULE
    }
}

/// What a PE knows of the heap it shares: the allocator, and what was allocated by address rather than by
/// handle.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) allocator: HeapAllocator,
    /// By heap offset: the block and the bytes asked for.
    pub(crate) by_offset: HashMap<usize, (Block, usize)>,
}

impl Heap {
    pub(crate) fn new(heap_bytes: usize) -> Self {
        Self {
            allocator: HeapAllocator::new(heap_bytes),
            by_offset: HashMap::new(),
        }
    }
}

impl fmt::Debug for HeapAllocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "HeapAllocator({} of {} free)",
            self.free_bytes(),
            self.heap_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list of live blocks: aligned, inside the heap, never overlapping.
        #[test]
        fn blocks_are_disjoint_and_aligned(
            steps in prop::collection::vec((1usize..5000, 0u32..13, any::<bool>()), 1..200)
        ) {
            let heap = 1 << 18;
            let mut allocator = HeapAllocator::new(heap);
            let mut live: Vec<(usize, usize, Block)> = Vec::new();
            for (bytes, align, free_one) in steps {
                if free_one && !live.is_empty() {
                    let (_, _, block) = live.swap_remove(bytes % live.len());
                    allocator.free(block);
                } else if let Some((offset, block)) = allocator.allocate(bytes, 1 << align) {
                    prop_assert_eq!(offset % (1 << align), 0);
                    prop_assert!(offset + bytes <= heap);
                    for &(other, len, _) in &live {
                        prop_assert!(offset + bytes <= other || other + len <= offset);
                    }
                    live.push((offset, bytes, block));
                }
            }
            for (_, _, block) in live {
                allocator.free(block);
            }
            prop_assert_eq!(allocator.free_bytes(), heap);
        }
    }

    #[test]
    fn sizes_around_the_largest_are_refused_or_served() {
        let all = usize::MAX / GRANULE * GRANULE;
        let mut allocator = HeapAllocator::new(usize::MAX);
        let (_, first) = allocator.allocate(1, 1).unwrap();
        for bytes in [all, all - GRANULE + 1, usize::MAX] {
            assert!(allocator.allocate(bytes, 1).is_none(), "{bytes}");
        }
        let (offset, far) = allocator.allocate(64, 1 << 63).unwrap();
        assert_eq!(offset, 1 << 63);
        assert!(allocator.allocate(64, 1 << 63).is_none());
        allocator.free(first);
        allocator.free(far);
        let (offset, whole) = allocator.allocate(all, 1).unwrap();
        assert_eq!((offset, allocator.free_bytes()), (0, 0));
        allocator.free(whole);
        assert_eq!(allocator.free_bytes(), all);
        assert!(HeapAllocator::new(GRANULE - 1).allocate(1, 1).is_none());
    }
}
