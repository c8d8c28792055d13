//! Collective allocation in the symmetric heap.
//!
//! Every PE keeps its own allocator of the heap and all of them agree, because every PE makes the same
//! calls in the same order; the rendezvous before each call checks that. Its lists lie outside the
//! heap (a two-level segregated fit with constant-time operations), so the same code serves heaps
//! the processor can not touch.

use crate::memory::region::alignment;
use crate::memory::symmetric::Sym;
use crate::team::call::Kind;
use crate::team::collective::CollectiveError;
use crate::world::pe::Pe;
use bytemuck::Pod;
use offset_allocator::Allocator;
use std::collections::HashMap;
use std::fmt;
use thiserror::Error;

/// Allocations are whole multiples of this many bytes, and aligned to it: a cache line, so that two
/// objects never share one.
pub const GRANULE: usize = 64;

/// Most blocks a heap can be cut into, taken ones and free ones.
const MAX_BLOCKS: u32 = 1 << 16;

/// A symmetric allocation that failed, on every PE alike; nothing has changed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum AllocError {
    /// The heap has no free block of this size. The search is by size classes, so a block may need up
    /// to an eighth more than its size in one piece.
    #[error(
        "no room for {bytes} bytes in the symmetric heap of {heap} bytes ({free} free, but a block may need an eighth more than its size in one piece); raise CROSSWARP_HEAP or the heap option"
    )]
    OutOfHeap {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes free in total, possibly in pieces.
        free: usize,
        /// Size of the heap.
        heap: usize,
    },
    /// There is room, but the heap is in as many blocks as it can be.
    #[error("no room for another object in the symmetric heap: it is in {most} blocks already")]
    TooManyBlocks {
        /// Most blocks, taken and free together.
        most: u32,
    },
    /// The size in bytes does not fit the address space.
    #[error("{len} elements of {element} bytes are more than can be addressed")]
    TooLarge {
        /// Elements asked for.
        len: usize,
        /// Bytes of one element.
        element: usize,
    },
    /// The alignment is no power of two, or more than the heap's own.
    #[error(
        "alignment {align} is not a power of two of at most {most}, to which this heap is aligned"
    )]
    BadAlign {
        /// The alignment asked for.
        align: usize,
        /// The most that can be asked for: the heap's size, rounded up to a power of two.
        most: usize,
    },
    /// No allocation begins at this address.
    #[error("no symmetric allocation begins at address {addr:#x}")]
    NotAllocated {
        /// The address given back.
        addr: usize,
    },
    /// The PEs asked for different things, or the rendezvous failed.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

/// One PE's allocator of a symmetric heap: which blocks of it are taken. It knows offsets, not memory, so it
/// serves heaps of any kind; PEs that make the same calls in the same order have the same books.
///
/// ```
/// let mut allocator = crosswarp_shmem::HeapAllocator::new(1 << 20);
/// let (offset, block) = allocator.allocate(1000, 256).unwrap();
/// assert_eq!(offset % 256, 0);
/// allocator.free(block);
/// assert_eq!(allocator.free_bytes(), 1 << 20);
/// ```
pub struct HeapAllocator {
    allocator: Allocator,
    free_granules: u32,
    heap_bytes: usize,
}

/// A block taken, to be given back with [`HeapAllocator::free`].
#[derive(Clone, Copy)]
pub struct Block(offset_allocator::Allocation);

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block(granule {})", self.0.offset)
    }
}

impl HeapAllocator {
    /// The allocator of an empty heap of `heap_bytes` bytes, of which it uses at most 256 GiB.
    pub fn new(heap_bytes: usize) -> Self {
        // Granules are counted in 32 bits: 256 GiB per PE. A larger heap is used up to there.
        let granules = u32::try_from(heap_bytes / GRANULE).unwrap_or(u32::MAX);
        Self {
            allocator: Allocator::with_max_allocs(granules, MAX_BLOCKS),
            free_granules: granules,
            heap_bytes,
        }
    }

    /// Takes a block of `bytes` at a multiple of `align` (a power of two; at least [`GRANULE`] is
    /// kept); its byte offset, and the block. `None` if there is no room.
    pub fn allocate(&mut self, bytes: usize, align: usize) -> Option<(usize, Block)> {
        let padding = align.max(GRANULE) - GRANULE;
        let granules = bytes.checked_add(padding)?.div_ceil(GRANULE).max(1);
        let granules = u32::try_from(granules).ok()?;
        let block = self.allocator.allocate(granules)?;
        self.free_granules -= granules;
        let offset = (block.offset as usize * GRANULE).next_multiple_of(align.max(GRANULE));
        Some((offset, Block(block)))
    }

    /// Gives a block back.
    pub fn free(&mut self, block: Block) {
        self.free_granules += self.allocator.allocation_size(block.0);
        self.allocator.free(block.0);
    }

    /// Bytes from `offset`, where [`allocate`](Self::allocate) put an object, to the end of its block.
    pub(crate) fn room(&self, offset: usize, block: Block) -> usize {
        let end = block.0.offset + self.allocator.allocation_size(block.0);
        end as usize * GRANULE - offset
    }

    /// Bytes free in total, possibly in pieces.
    pub fn free_bytes(&self) -> usize {
        self.free_granules as usize * GRANULE
    }

    /// Whether no block can be taken whatever its size, though there is room. The allocator tells by
    /// reporting no free space.
    fn in_too_many_blocks(&self) -> bool {
        self.free_granules > 0 && self.allocator.storage_report().total_free_space == 0
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

/// Collective allocation; every PE of the world calls these in the same order.
impl Pe {
    /// An array of `len` elements on every PE, aligned to at least 64 bytes. Its content is
    /// unspecified (whatever the memory held).
    ///
    /// # Errors
    /// On every PE alike: a mismatch between the PEs, a heap without room, a size overflow.
    pub fn alloc<T: Pod>(&self, len: usize) -> Result<Sym<T>, AllocError> {
        self.alloc_aligned(len, align_of::<T>())
    }

    /// As [`alloc`](Self::alloc), at an offset that is a multiple of `align` bytes (of 64 if less).
    /// Heaps begin at a multiple of their size rounded up to a power of two (of 2 MiB if less, of 1 TiB if
    /// more), so addresses are aligned as offsets are. An object takes `align` bytes more than its own.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), and for an `align` that is no power of two or more than that.
    pub fn alloc_aligned<T: Pod>(&self, len: usize, align: usize) -> Result<Sym<T>, AllocError> {
        let bytes = len.checked_mul(size_of::<T>());
        // A PE with a bad argument comes to the rendezvous too, so that the others do not hang.
        // Another thread's allocation must not come between the rendezvous and the allocator.
        let _turn = self.begin(
            Kind::Alloc,
            align as u64,
            bytes.map_or(u64::MAX, |bytes| bytes as u64),
        )?;
        self.check_align(align)?;
        let too_large = AllocError::TooLarge {
            len,
            element: size_of::<T>(),
        };
        let (offset, block) = self.take(bytes.ok_or(too_large)?, align.max(align_of::<T>()))?;
        Ok(Sym::new(offset, len, Some(block)))
    }

    fn check_align(&self, align: usize) -> Result<(), AllocError> {
        let most = alignment(self.heap_bytes());
        match align.is_power_of_two() && align <= most {
            true => Ok(()),
            false => Err(AllocError::BadAlign { align, most }),
        }
    }

    /// The allocation itself, once all PEs have met over it.
    pub(crate) fn take(&self, bytes: usize, align: usize) -> Result<(usize, Block), AllocError> {
        if bytes > isize::MAX as usize {
            return Err(AllocError::TooLarge {
                len: bytes,
                element: 1,
            });
        }
        self.check_align(align)?;
        let allocator = &mut self.heap().allocator;
        match allocator.allocate(bytes, align) {
            Some(taken) => Ok(taken),
            None if allocator.in_too_many_blocks() => {
                Err(AllocError::TooManyBlocks { most: MAX_BLOCKS })
            }
            None => Err(AllocError::OutOfHeap {
                bytes,
                free: allocator.free_bytes(),
                heap: allocator.heap_bytes,
            }),
        }
    }

    /// As [`alloc`](Self::alloc), with every byte zero on every PE before any PE returns.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<Sym<T>, AllocError> {
        let object = self.alloc::<T>(len)?;
        self.zero(&object);
        self.complete();
        // By its own tag: a PE that only called `alloc` is elsewhere.
        self.meet(Kind::Alloc, 0, object.offset() as u64)?;
        Ok(object)
    }

    /// Gives the memory of `object` back, on every PE, once every PE has come here.
    ///
    /// # Errors
    /// A mismatch between the PEs (the memory then stays allocated).
    pub fn free<T: Pod>(&self, object: Sym<T>) -> Result<(), AllocError> {
        self.complete();
        let _turn = self.begin(Kind::Free, 0, object.offset() as u64)?;
        if let Some(block) = object.block {
            self.heap().allocator.free(block);
        }
        Ok(())
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
    fn a_heap_in_too_many_blocks_says_so() {
        let world = crate::ThreadWorld::new(1).heap_bytes(16 << 20);
        let (objects, error) = world
            .spmd(|pe| {
                let mut objects = Vec::new();
                loop {
                    match pe.alloc::<u8>(1) {
                        Ok(object) => objects.push(object.offset()),
                        Err(error) => return (objects.len(), error),
                    }
                }
            })
            .unwrap()
            .remove(0);
        assert!(objects > 60_000);
        assert_eq!(error, AllocError::TooManyBlocks { most: MAX_BLOCKS });
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
