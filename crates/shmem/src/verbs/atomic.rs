//! Atomic operations on symmetric integers.
#![allow(unsafe_code)] // makes atomic references to places in mapped heaps

use crate::memory::symmetric::SymRef;
use crate::verbs::raw::atomic::{AtomicInt, AtomicValue};
use crate::world::pe::Pe;
use std::sync::atomic::Ordering;

/// Atomic with respect to every other atomic on the same place, from any PE. Additions wrap.
///
/// Memory ordering: OpenSHMEM promises none beyond the place itself. Here read-modify-writes are
/// `AcqRel`, sets `Release` and fetches `Acquire`, which costs nothing on x86-64 and little elsewhere
/// and makes hand-made locks work.
///
/// All panic if `pe` does not exist or the object is not one single element.
impl Pe {
    /// Reads.
    #[inline]
    pub fn atomic_fetch<'a, T: AtomicValue>(
        &self,
        source: impl Into<SymRef<'a, T>>,
        pe: usize,
    ) -> T {
        T::load(self.place(source.into(), pe), Ordering::Acquire)
    }

    /// Writes.
    #[inline]
    pub fn atomic_set<'a, T: AtomicValue>(
        &self,
        dest: impl Into<SymRef<'a, T>>,
        value: T,
        pe: usize,
    ) {
        let dest = dest.into();
        T::store(self.place(dest, pe), value, Ordering::Release);
        self.endpoint.notify(dest, pe);
    }

    /// Writes and returns what was there.
    #[inline]
    pub fn atomic_swap<'a, T: AtomicValue>(
        &self,
        dest: impl Into<SymRef<'a, T>>,
        value: T,
        pe: usize,
    ) -> T {
        let dest = dest.into();
        let old = T::swap(self.place(dest, pe), value, Ordering::AcqRel);
        self.endpoint.notify(dest, pe);
        old
    }

    /// Writes `value` if `expected` is there; returns what was there.
    #[inline]
    pub fn atomic_compare_swap<'a, T: AtomicInt>(
        &self,
        dest: impl Into<SymRef<'a, T>>,
        expected: T,
        value: T,
        pe: usize,
    ) -> T {
        let dest = dest.into();
        let old = T::compare_swap(self.place(dest, pe), expected, value, Ordering::AcqRel);
        self.endpoint.notify(dest, pe);
        old
    }

    /// Adds 1 and returns what was there.
    #[inline]
    pub fn atomic_fetch_inc<'a, T: AtomicInt>(
        &self,
        dest: impl Into<SymRef<'a, T>>,
        pe: usize,
    ) -> T {
        self.atomic_fetch_add(dest, T::ONE, pe)
    }

    /// Adds 1.
    #[inline]
    pub fn atomic_inc<'a, T: AtomicInt>(&self, dest: impl Into<SymRef<'a, T>>, pe: usize) {
        self.atomic_fetch_add(dest, T::ONE, pe);
    }

    /// The one element `object` of `pe`, as the processor's atomic.
    #[inline(always)]
    pub(crate) fn place<T: AtomicValue>(&self, object: SymRef<'_, T>, pe: usize) -> &T::Atomic {
        assert!(
            object.len() == 1,
            "an atomic operation on {} elements",
            object.len()
        );
        // SAFETY: `address` checked that one T lies there inside the mapped heap, which outlives
        // `self`. Offsets of elements are multiples of their size from a 64-byte aligned start, so
        // the atomic, of the same size, is aligned. Atomics may be shared and any bits are valid.
        unsafe { &*self.endpoint.address(object, pe).cast::<T::Atomic>() }
    }
}

macro_rules! read_modify_write {
    ($($fetching:ident $plain:ident $op:ident: $what:literal),*) => {
        /// As above: the operations with an operand, with and without the old value.
        impl Pe {$(
            #[doc = concat!($what, " and returns what was there.")]
            #[inline]
            pub fn $fetching<'a, T: AtomicInt>(
                &self,
                dest: impl Into<SymRef<'a, T>>,
                value: T,
                pe: usize,
            ) -> T {
                let dest = dest.into();
                let old = T::$op(self.place(dest, pe), value, Ordering::AcqRel);
                self.endpoint.notify(dest, pe);
                old
            }

            #[doc = concat!($what, ".")]
            #[inline]
            pub fn $plain<'a, T: AtomicInt>(
                &self,
                dest: impl Into<SymRef<'a, T>>,
                value: T,
                pe: usize,
            ) {
                self.$fetching(dest, value, pe);
            }
        )*}
    };
}
read_modify_write!(
    atomic_fetch_add atomic_add add: "Adds, wrapping,",
    atomic_fetch_and atomic_and and: "Ands bitwise",
    atomic_fetch_or atomic_or or: "Ors bitwise",
    atomic_fetch_xor atomic_xor xor: "Exclusive-ors bitwise"
);
