//! Collective allocation by address: `malloc` and its kin.

use super::Raw;
use crate::memory::alloc::AllocError;
use crate::memory::allocator::Block;
use crate::team::collective_call::{Kind, NOT_ALLOCATED};
use crate::team::error::CollectiveError;
use std::ptr;

/// Every PE of the world calls these in the same order with the same sizes. A call that OpenSHMEM says
/// does nothing (size 0, a null pointer) makes no rendezvous either; a call that is refused does, so
/// that a mismatch is an error on every PE.
impl Raw<'_> {
    /// `bytes` bytes of symmetric heap at a multiple of `align` (a power of two, at most what
    /// [`Pe::alloc_aligned`](crate::Pe::alloc_aligned) takes; at least 64 is kept), content unspecified; null for 0
    /// bytes.
    ///
    /// Memory ordering: implies a barrier.
    ///
    /// # Errors
    /// As [`Pe::alloc`](crate::Pe::alloc).
    pub fn malloc(self, bytes: usize, align: usize) -> Result<*mut u8, AllocError> {
        if bytes == 0 {
            return Ok(ptr::null_mut());
        }
        self.endpoint.quiet();
        let _turn = self
            .endpoint
            .begin_collective(Kind::Alloc, align as u64, bytes as u64)?;
        self.take(bytes, align)
    }

    /// As [`malloc`](Self::malloc), all zeros on every PE before any PE returns.
    ///
    /// # Errors
    /// As [`malloc`](Self::malloc), and for a product beyond the address space.
    pub fn calloc(self, n: usize, bytes: usize) -> Result<*mut u8, AllocError> {
        let Some(total) = n.checked_mul(bytes) else {
            // As `Pe::alloc` says it.
            self.endpoint.rendezvous(Kind::Alloc, 1, u64::MAX)?;
            return Err(AllocError::TooLarge {
                len: n,
                element: bytes,
            });
        };
        let object = self.malloc(total, 1)?;
        if !object.is_null() {
            // SAFETY: just allocated, `total` bytes long, and no other PE may use it before the barrier.
            unsafe { ptr::write_bytes(object, 0, total) };
            self.endpoint.quiet();
            // As in `Pe::alloc_zeroed`.
            self.endpoint
                .rendezvous(Kind::Alloc, 0, self.offset(object) as u64)?;
        }
        Ok(object)
    }

    /// Makes the allocation at `object` `bytes` long, moving it if need be; what fits of its content stays.
    /// A null `object` makes it [`malloc`](Self::malloc), 0 bytes make it [`free`](Self::free) (and null is
    /// returned). On an error the old allocation stays.
    ///
    /// Memory ordering: implies barriers before and after.
    ///
    /// # Errors
    /// As [`malloc`](Self::malloc); [`AllocError::NotAllocated`] for any other address.
    pub fn realloc(self, object: *mut u8, bytes: usize) -> Result<*mut u8, AllocError> {
        if object.is_null() {
            return self.malloc(bytes, 1);
        }
        if bytes == 0 {
            return self.free(object).map(|()| ptr::null_mut());
        }
        let (block, old_bytes) = match self.block(object) {
            Ok(known) => known,
            Err(error) => return self.refuse(Kind::Realloc, error),
        };
        self.endpoint.quiet();
        let old_offset = self.offset(object) as u64;
        let turn = self
            .endpoint
            .begin_collective(Kind::Realloc, old_offset, bytes as u64)?;
        {
            // Where it is if it fits, on every PE alike. Nobody has touched what it grows by.
            let (mut heap, offset) = (self.endpoint.heap(), self.offset(object));
            if bytes <= block.room() {
                heap.by_offset.insert(offset, (block, bytes));
                return Ok(object);
            }
        }
        let moved = self.take(bytes, 1)?;
        let old = self.heap().wrapping_add(self.offset(object));
        // SAFETY: `block` found the old allocation at this offset of the heap; the new one is another,
        // and each is at least as long as what is copied.
        unsafe { ptr::copy_nonoverlapping(old, moved, old_bytes.min(bytes)) };
        // Nobody may use the new place before its content is there, nor get the old one for something
        // else before it has been read; the latter is certain, because the next allocation has a rendezvous again.
        self.release(object);
        drop(turn);
        self.endpoint.quiet();
        self.endpoint
            .rendezvous(Kind::Realloc, old_offset, bytes as u64)?;
        Ok(moved)
    }

    /// Gives an allocation back once every PE has come here; nothing for null.
    ///
    /// Memory ordering: implies a barrier before.
    ///
    /// # Errors
    /// [`AllocError::NotAllocated`] for an address that no allocation of this module returned, and a
    /// mismatch between the PEs.
    pub fn free(self, object: *mut u8) -> Result<(), AllocError> {
        if object.is_null() {
            return Ok(());
        }
        if let Err(error) = self.block(object) {
            return self.refuse(Kind::Free, error);
        }
        self.endpoint.quiet();
        let _turn = self
            .endpoint
            .begin_collective(Kind::Free, 0, self.offset(object) as u64)?;
        self.release(object);
        Ok(())
    }

    /// Comes to the rendezvous that PEs with a valid address are in: these hear of the mismatch.
    fn refuse<R>(self, kind: Kind, error: AllocError) -> Result<R, AllocError> {
        match self.endpoint.rendezvous(kind, NOT_ALLOCATED, 0) {
            // What is wrong here says more than that others called something else.
            Ok(()) | Err(CollectiveError::Mismatch { .. }) => Err(error),
            Err(failed) => Err(failed.into()),
        }
    }

    fn take(self, bytes: usize, align: usize) -> Result<*mut u8, AllocError> {
        let (offset, block) = self.endpoint.take(bytes, align)?;
        self.endpoint
            .heap()
            .by_offset
            .insert(offset, (block, bytes));
        Ok(self.heap().wrapping_add(offset))
    }

    fn offset(self, object: *mut u8) -> usize {
        object.addr().wrapping_sub(self.heap().addr())
    }

    fn block(self, object: *mut u8) -> Result<(Block, usize), AllocError> {
        let offset = self.offset(object);
        let known = self.endpoint.heap().by_offset.get(&offset).copied();
        known.ok_or(AllocError::NotAllocated {
            addr: object.addr(),
        })
    }

    fn release(self, object: *mut u8) {
        let mut heap = self.endpoint.heap();
        if let Some((block, _)) = heap.by_offset.remove(&self.offset(object)) {
            heap.allocator.free(block);
        }
    }
}
