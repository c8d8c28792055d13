//! The allocator of a symmetric heap.
//!
//! Every PE has its own and all of them agree, because every PE makes the same calls in the same order. Its lists lie
//! outside the heap (a two-level segregated fit with constant-time operations), so the same code serves heaps the
//! processor can not touch.

use offset_allocator::Allocator;
use std::collections::HashMap;
use std::fmt;

/// Allocations are whole multiples of this many bytes, and aligned to it: a cache line, so that two
/// objects never share one.
pub const GRANULE: usize = 64;

/// Most blocks a heap can be cut into, taken ones and free ones.
pub(crate) const MAX_BLOCKS: u32 = 1 << 16;

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
    /// None before a block is asked for: it has megabytes of lists, and each PE that needs them makes its own.
    allocator: Option<Allocator>,
    free_granules: u32,
    pub(crate) heap_bytes: usize,
}

/// A block taken, to be given back with [`HeapAllocator::free`].
#[derive(Clone, Copy)]
pub struct Block(offset_allocator::Allocation);

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block(granule {})", self.0.offset)
    }
}

/// Of a heap. They are counted in 32 bits: 256 GiB per PE. A larger heap is used up to there.
fn granules_of(heap_bytes: usize) -> u32 {
    u32::try_from(heap_bytes / GRANULE).unwrap_or(u32::MAX)
}

impl HeapAllocator {
    /// The allocator of an empty heap of `heap_bytes` bytes, of which it uses at most 256 GiB.
    pub fn new(heap_bytes: usize) -> Self {
        Self {
            allocator: None,
            free_granules: granules_of(heap_bytes),
            heap_bytes,
        }
    }

    /// Takes a block of `bytes` at a multiple of `align` (a power of two; at least [`GRANULE`] is
    /// kept); its byte offset, and the block. `None` if there is no room.
    pub fn allocate(&mut self, bytes: usize, align: usize) -> Option<(usize, Block)> {
        let padding = align.max(GRANULE) - GRANULE;
        let granules = bytes.checked_add(padding)?.div_ceil(GRANULE).max(1);
        let granules = u32::try_from(granules).ok()?;
        let allocator = self.allocator.get_or_insert_with(|| {
            Allocator::with_max_allocs(granules_of(self.heap_bytes), MAX_BLOCKS)
        });
        let block = allocator.allocate(granules)?;
        self.free_granules -= granules;
        let offset = (block.offset as usize * GRANULE).next_multiple_of(align.max(GRANULE));
        Some((offset, Block(block)))
    }

    /// Gives a block back.
    pub fn free(&mut self, block: Block) {
        self.free_granules += self.size(block);
        // It was taken from these.
        if let Some(allocator) = &mut self.allocator {
            allocator.free(block.0);
        }
    }

    /// Granules of a block.
    fn size(&self, block: Block) -> u32 {
        let allocator = self.allocator.as_ref();
        allocator.map_or(0, |allocator| allocator.allocation_size(block.0))
    }

    /// Bytes from `offset`, where [`allocate`](Self::allocate) put an object, to the end of its block.
    pub(crate) fn room(&self, offset: usize, block: Block) -> usize {
        let end = block.0.offset + self.size(block);
        end as usize * GRANULE - offset
    }

    /// Bytes free in total, possibly in pieces.
    pub fn free_bytes(&self) -> usize {
        self.free_granules as usize * GRANULE
    }

    /// Whether no block can be taken whatever its size, though there is room. The allocator tells by
    /// reporting no free space.
    pub(crate) fn in_too_many_blocks(&self) -> bool {
        let full = |lists: &Allocator| lists.storage_report().total_free_space == 0;
        self.free_granules > 0 && self.allocator.as_ref().is_some_and(full)
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

    /// The largest sizes must not upset the size classes.
    #[test]
    fn sizes_around_the_largest_are_refused_or_served() {
        let mut allocator = HeapAllocator::new(usize::MAX);
        for bytes in [
            1 << 38,
            (1 << 38) - 1,
            (1 << 38) - GRANULE,
            1 << 60,
            usize::MAX,
        ] {
            assert!(allocator.allocate(bytes, 1).is_none(), "{bytes}");
            assert!(allocator.allocate(64, 1 << 63).is_none());
        }
        let (_, half) = allocator.allocate(1 << 37, 1).unwrap();
        allocator.free(half);
        assert_eq!(allocator.free_bytes(), u32::MAX as usize * GRANULE);
    }
}
