//! Collective allocation in the symmetric heap, by handles.

use crate::memory::alloc::AllocError;
use crate::memory::symmetric::Sym;
use crate::team::collective_call::Kind;
use crate::world::pe::Pe;
use bytemuck::Pod;

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
        let _turn = self.endpoint.begin_collective(
            Kind::Alloc,
            align as u64,
            bytes.map_or(u64::MAX, |bytes| bytes as u64),
        )?;
        self.endpoint.check_align(align)?;
        let too_large = AllocError::TooLarge {
            len,
            element: size_of::<T>(),
        };
        let (offset, block) = self
            .endpoint
            .take(bytes.ok_or(too_large)?, align.max(align_of::<T>()))?;
        Ok(Sym::new(offset, len, Some(block)))
    }

    /// As [`alloc`](Self::alloc), with every byte zero on every PE before any PE returns.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<Sym<T>, AllocError> {
        let object = self.alloc::<T>(len)?;
        self.zero(&object);
        self.endpoint.quiet();
        // By its own tag: a PE that only called `alloc` is elsewhere.
        self.endpoint
            .rendezvous(Kind::Alloc, 0, object.offset() as u64)?;
        Ok(object)
    }

    /// Gives the memory of `object` back, on every PE, once every PE has come here.
    ///
    /// # Errors
    /// A mismatch between the PEs (the memory then stays allocated).
    pub fn free<T: Pod>(&self, object: Sym<T>) -> Result<(), AllocError> {
        self.endpoint.quiet();
        let _turn = self
            .endpoint
            .begin_collective(Kind::Free, 0, object.offset() as u64)?;
        if let Some(block) = object.block {
            self.endpoint.heap().allocator.free(block);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::allocator::GRANULE;

    #[test]
    fn a_heap_is_full_of_the_smallest_objects_and_empty_without_them() {
        let heap = 16 << 20;
        let most = heap - 1000 * GRANULE;
        let fill = |pe: &Pe| {
            let mut objects = Vec::new();
            let error = loop {
                match pe.alloc::<u8>(1) {
                    Ok(object) => objects.push(object),
                    Err(error) => break error,
                }
            };
            let count = objects.len();
            // Not in the order of their places, so that free pieces have to be joined.
            let mut objects: Vec<_> = objects.into_iter().enumerate().collect();
            objects.sort_by_key(|(at, _)| at % 64);
            for (_, object) in objects {
                pe.free(object).unwrap();
            }
            (count, error, pe.alloc::<u8>(most).map(|whole| whole.len()))
        };
        let world = crate::ThreadWorld::new(1).heap_bytes(heap);
        let (objects, error, whole) = world.spmd(fill).unwrap().remove(0);
        assert!(objects > most / GRANULE);
        let full = AllocError::OutOfHeap {
            bytes: 1,
            free: 0,
            heap,
        };
        assert_eq!((error, whole), (full, Ok(most)));
    }
}
