//! Allocation in the symmetric heap, after the rendezvous of all PEs: that before each call checks that all
//! make the same.

use crate::memory::allocator::Block;
use crate::memory::region::alignment;
use crate::team::error::CollectiveError;
use crate::world::endpoint::Endpoint;
use thiserror::Error;

/// A symmetric allocation that failed, on every PE alike; nothing has changed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum AllocError {
    /// The heap has no free block of this size.
    #[error(
        "no room for {bytes} bytes in the symmetric heap of {heap} bytes ({free} free, possibly in pieces); raise CROSSWARP_HEAP or the heap option"
    )]
    OutOfHeap {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes free in total, possibly in pieces.
        free: usize,
        /// Size of the heap.
        heap: usize,
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

impl Endpoint {
    /// Refuses an alignment that the heap itself does not have.
    pub(crate) fn check_align(&self, align: usize) -> Result<(), AllocError> {
        let most = alignment(self.heap_bytes());
        match align.is_power_of_two() && align <= most {
            true => Ok(()),
            false => Err(AllocError::BadAlign { align, most }),
        }
    }

    /// The allocation itself, after the rendezvous of all PEs.
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
            None => Err(AllocError::OutOfHeap {
                bytes,
                free: allocator.free_bytes(),
                heap: allocator.heap_bytes,
            }),
        }
    }
}
