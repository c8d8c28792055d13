//! Handles to symmetric objects.
#![allow(unsafe_code)] // computes addresses in mapped heaps, after a bounds check

use crate::memory::allocator::Block;
use crate::world::endpoint::{Endpoint, Peer};
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// An array of `T` at the same heap offset on every PE; owns the allocation.
///
/// Made by [`Pe::alloc`](crate::Pe::alloc) and its kin, given back by [`Pe::free`](crate::Pe::free)
/// (collective, hence not `Drop`; a handle merely dropped keeps its memory until the world ends).
///
/// ```
/// let seen = crosswarp_shmem::spmd(2, |pe| {
///     let numbers = pe.alloc_zeroed::<u32>(8)?;
///     // Write into the other PE's third element, then wait for all, then look at one's own.
///     pe.p(numbers.at(2), 10 + pe.my_pe() as u32, 1 - pe.my_pe());
///     pe.barrier()?;
///     let seen = pe.g(numbers.at(2), pe.my_pe());
///     pe.free(numbers)?;
///     Ok::<_, crosswarp_shmem::Error>(seen)
/// })
/// .unwrap();
/// assert_eq!(seen, [Ok(11), Ok(10)]);
/// ```
#[must_use = "dropping the handle does not free the memory; see Pe::free"]
pub struct Sym<T> {
    offset: usize,
    len: usize,
    pub(crate) block: Option<Block>,
    element: PhantomData<T>,
}

impl<T> fmt::Debug for Sym<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Sym({} elements at heap offset {})",
            self.len, self.offset
        )
    }
}

impl<T: Pod> Sym<T> {
    pub(crate) fn new(offset: usize, len: usize, block: Option<Block>) -> Self {
        // Heaps begin on a page at least (at a multiple of 2 MiB on a CPU).
        const {
            assert!(
                align_of::<T>() <= 4096,
                "elements aligned to more than a page"
            )
        };
        Self {
            offset,
            len,
            block,
            element: PhantomData,
        }
    }

    /// Number of elements on each PE.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Byte offset from the start of the heap, the same on every PE.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// All elements.
    #[inline]
    pub fn all(&self) -> SymRef<'_, T> {
        SymRef {
            offset: self.offset,
            len: self.len,
            object: PhantomData,
        }
    }

    /// Element `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[inline]
    pub fn at(&self, index: usize) -> SymRef<'_, T> {
        self.all().at(index)
    }

    /// The elements of `range`.
    ///
    /// # Panics
    /// If the range does not lie within `0..len`.
    #[inline]
    pub fn range(&self, range: impl RangeBounds<usize>) -> SymRef<'_, T> {
        self.all().range(range)
    }
}

/// Some consecutive elements of a [`Sym`]: what the one-sided verbs take.
pub struct SymRef<'a, T> {
    offset: usize,
    len: usize,
    object: PhantomData<&'a T>,
}

impl<T> Clone for SymRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SymRef<'_, T> {}

impl<T> fmt::Debug for SymRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SymRef({} elements at heap offset {})",
            self.len, self.offset
        )
    }
}

impl<'a, T: Pod> From<&'a Sym<T>> for SymRef<'a, T> {
    #[inline]
    fn from(object: &'a Sym<T>) -> Self {
        object.all()
    }
}

impl<'a, T: Pod> SymRef<'a, T> {
    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Byte offset from the start of the heap.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Element `index` of these.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[inline]
    pub fn at(self, index: usize) -> SymRef<'a, T> {
        assert!(
            index < self.len,
            "element {index} of a symmetric object of {}",
            self.len
        );
        SymRef {
            offset: self.offset + index * size_of::<T>(),
            len: 1,
            object: PhantomData,
        }
    }

    /// The elements of `range` of these.
    ///
    /// # Panics
    /// If the range does not lie within `0..len`.
    #[inline]
    pub fn range(self, range: impl RangeBounds<usize>) -> SymRef<'a, T> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        assert!(
            start <= end && end <= self.len,
            "range {start}..{end} of a symmetric object of {}",
            self.len
        );
        SymRef {
            offset: self.offset + start * size_of::<T>(),
            len: end - start,
            object: PhantomData,
        }
    }
}

impl Endpoint {
    /// Where `object` lies in the mapping of `pe`'s heap, `None` if `pe` is on another host (an object without elements may
    /// be anywhere), and what else the fast paths need of `pe`.
    ///
    /// # Panics
    /// If `pe` does not exist, or the object lies outside the heap (it belongs to another world).
    #[inline(always)]
    pub(crate) fn mapped<T: Pod>(
        &self,
        object: SymRef<'_, T>,
        pe: usize,
    ) -> Option<(*mut T, &Peer)> {
        let (peer, heap_bytes) = (self.peer(pe), self.heap_bytes());
        let end = object.offset() + object.len() * size_of::<T>();
        // SAFETY: the object's end is not before its beginning.
        if let Some(at) = unsafe { peer.heap.before(object.offset(), end) } {
            return Some((at.cast(), peer));
        }
        if end > heap_bytes {
            of_another_world(end, heap_bytes);
        }
        None
    }

    /// Where this PE's own `object` lies.
    ///
    /// # Panics
    /// As [`mapped`](Self::mapped).
    #[inline(always)]
    pub(crate) fn own<T: Pod>(&self, object: SymRef<'_, T>) -> *mut T {
        let own = self.mapped(object, self.my_pe());
        own.expect("a PE's own heap is mapped").0
    }

    /// Wakes `peer` if it sleeps until something in `object` changes; called after every store there.
    #[inline(always)]
    pub(crate) fn notify<T: Pod>(&self, object: SymRef<'_, T>, peer: &Peer) {
        let (start, end) = (
            object.offset(),
            object.offset() + object.len() * size_of::<T>(),
        );
        let parker = &peer.control().parker;
        parker.notify_store(start, end, self.shared());
    }
}

// Out of line, as all that is rare in verbs on one word: they are short enough then to become part of the program's loop.
#[cold]
#[inline(never)]
fn of_another_world(end: usize, heap_bytes: usize) -> ! {
    panic!(
        "a symmetric object of another world: its end {end} lies outside the heap of {heap_bytes} bytes"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked_as_those_of_slices() {
        let object = Sym::<u32>::new(64, 10, None);
        let part = object.range((Bound::Excluded(2), Bound::Included(9)));
        assert_eq!((part.offset(), part.len()), (64 + 3 * 4, 7));
        assert_eq!(object.range(10..).len(), 0);
        let part = part.range(1..3).at(1);
        assert_eq!((part.offset(), part.len()), (64 + 5 * 4, 1));
        let max = usize::MAX;
        for range in [
            (Bound::Included(0), Bound::Included(max)),
            (Bound::Excluded(max), Bound::Unbounded),
            (Bound::Included(0), Bound::Excluded(11)),
            (Bound::Included(6), Bound::Excluded(5)),
        ] {
            let refused = std::panic::catch_unwind(|| object.range(range)).unwrap_err();
            let message = refused.downcast::<String>().unwrap();
            assert!(
                message.ends_with("of a symmetric object of 10"),
                "{message}"
            );
        }
    }
}
