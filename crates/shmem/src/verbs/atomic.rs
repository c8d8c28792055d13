//! Atomic operations on symmetric integers.
#![allow(unsafe_code)] // makes atomic references to places in mapped heaps

use crate::memory::symmetric::SymRef;
use crate::transport::message::Op;
use crate::verbs::raw::atomic::{AtomicInt, AtomicValue};
use crate::world::endpoint::Peer;
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
        let source = source.into();
        match self.place(source, pe) {
            Some((at, _)) => T::load(at, Ordering::Acquire),
            None => self
                .endpoint
                .remote_fetch(Op::Fetch, (source.offset(), pe), None, None),
        }
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
        match self.place(dest, pe) {
            Some((at, peer)) => {
                T::store(at, value, Ordering::Release);
                self.endpoint.notify(dest, peer);
            }
            None => self
                .endpoint
                .remote_change(Op::Set, (dest.offset(), pe), value),
        }
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
        match self.place(dest, pe) {
            Some((at, peer)) => {
                let old = T::swap(at, value, Ordering::AcqRel);
                self.endpoint.notify(dest, peer);
                old
            }
            None => self
                .endpoint
                .remote_fetch(Op::Set, (dest.offset(), pe), Some(value), None),
        }
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
        match self.place(dest, pe) {
            Some((at, peer)) => {
                let old = T::compare_swap(at, expected, value, Ordering::AcqRel);
                self.endpoint.notify(dest, peer);
                old
            }
            None => {
                let place = (dest.offset(), pe);
                self.endpoint
                    .remote_fetch(Op::CompareSwap, place, Some(value), Some(expected))
            }
        }
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
        self.atomic_add(dest, T::ONE, pe);
    }

    /// As [`atomic_fetch`](Self::atomic_fetch), but what was there is in `fetched` when the next
    /// [`quiet`](Self::quiet) returns.
    ///
    /// # Safety
    /// Until then `fetched` stays where it is, and nobody else uses it.
    #[inline]
    pub(crate) unsafe fn atomic_fetch_nbi<'a, T: AtomicValue>(
        &self,
        fetched: &mut T,
        source: impl Into<SymRef<'a, T>>,
        pe: usize,
    ) {
        let source = source.into();
        match self.place(source, pe) {
            Some((at, _)) => *fetched = T::load(at, Ordering::Acquire),
            None => {
                let place = (source.offset(), pe);
                // SAFETY: by the caller.
                unsafe { (self.endpoint).remote_fetch_nbi(Op::Fetch, place, (None, None), fetched) }
            }
        }
    }

    /// As [`atomic_swap`](Self::atomic_swap), as late as [`atomic_fetch_nbi`](Self::atomic_fetch_nbi).
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(crate) unsafe fn atomic_swap_nbi<'a, T: AtomicValue>(
        &self,
        fetched: &mut T,
        dest: impl Into<SymRef<'a, T>>,
        value: T,
        pe: usize,
    ) {
        let dest = dest.into();
        match self.place(dest, pe) {
            Some((at, peer)) => {
                *fetched = T::swap(at, value, Ordering::AcqRel);
                self.endpoint.notify(dest, peer);
            }
            None => {
                let (place, operands) = ((dest.offset(), pe), (Some(value), None));
                // SAFETY: by the caller.
                unsafe { (self.endpoint).remote_fetch_nbi(Op::Set, place, operands, fetched) }
            }
        }
    }

    /// As [`atomic_compare_swap`](Self::atomic_compare_swap), as late as
    /// [`atomic_fetch_nbi`](Self::atomic_fetch_nbi).
    ///
    /// # Safety
    /// As there.
    #[inline]
    pub(crate) unsafe fn atomic_compare_swap_nbi<'a, T: AtomicInt>(
        &self,
        fetched: &mut T,
        dest: impl Into<SymRef<'a, T>>,
        expected: T,
        value: T,
        pe: usize,
    ) {
        let dest = dest.into();
        match self.place(dest, pe) {
            Some((at, peer)) => {
                *fetched = T::compare_swap(at, expected, value, Ordering::AcqRel);
                self.endpoint.notify(dest, peer);
            }
            None => {
                let (place, operands) = ((dest.offset(), pe), (Some(value), Some(expected)));
                // SAFETY: by the caller.
                unsafe {
                    (self.endpoint).remote_fetch_nbi(Op::CompareSwap, place, operands, fetched)
                }
            }
        }
    }

    /// The one element `object` of `pe`, as the processor's atomic; `None` if `pe` is on another host.
    #[inline(always)]
    fn place<T: AtomicValue>(
        &self,
        object: SymRef<'_, T>,
        pe: usize,
    ) -> Option<(&T::Atomic, &Peer)> {
        if object.len() != 1 {
            not_one(object.len());
        }
        let (at, peer) = self.endpoint.mapped(object, pe)?;
        // SAFETY: `mapped` checked that one T lies there inside the mapped heap, which outlives
        // `self`. Offsets of elements are multiples of their size from a 64-byte aligned start, so
        // the atomic, of the same size, is aligned. Atomics may be shared and any bits are valid.
        Some((unsafe { &*at.cast::<T::Atomic>() }, peer))
    }
}

#[cold]
#[inline(never)]
fn not_one(n: usize) -> ! {
    panic!("an atomic operation on {n} elements");
}

macro_rules! read_modify_write {
    ($($fetching:ident $nbi:ident $plain:ident $op:ident $remote:ident: $what:literal),*) => {
        /// As above: the operations with an operand, with and without the old value.
        impl Pe {$(
            #[doc = concat!($what, ", and returns what was there.")]
            #[inline]
            pub fn $fetching<'a, T: AtomicInt>(
                &self,
                dest: impl Into<SymRef<'a, T>>,
                value: T,
                pe: usize,
            ) -> T {
                let dest = dest.into();
                match self.place(dest, pe) {
                    Some((at, peer)) => {
                        let old = T::$op(at, value, Ordering::AcqRel);
                        self.endpoint.notify(dest, peer);
                        old
                    }
                    None => {
                        let place = (dest.offset(), pe);
                        self.endpoint.remote_fetch(Op::$remote, place, Some(value), None)
                    }
                }
            }

            /// As the fetching one, as late as [`atomic_fetch_nbi`](Self::atomic_fetch_nbi).
            ///
            /// # Safety
            /// As there.
            #[inline]
            pub(crate) unsafe fn $nbi<'a, T: AtomicInt>(
                &self,
                fetched: &mut T,
                dest: impl Into<SymRef<'a, T>>,
                value: T,
                pe: usize,
            ) {
                let dest = dest.into();
                match self.place(dest, pe) {
                    Some((at, peer)) => {
                        *fetched = T::$op(at, value, Ordering::AcqRel);
                        self.endpoint.notify(dest, peer);
                    }
                    None => {
                        let (place, operands) = ((dest.offset(), pe), (Some(value), None));
                        // SAFETY: by the caller.
                        unsafe {
                            (self.endpoint).remote_fetch_nbi(Op::$remote, place, operands, fetched);
                        }
                    }
                }
            }

            #[doc = concat!($what, ".")]
            #[inline]
            pub fn $plain<'a, T: AtomicInt>(
                &self,
                dest: impl Into<SymRef<'a, T>>,
                value: T,
                pe: usize,
            ) {
                let dest = dest.into();
                match self.place(dest, pe) {
                    Some((at, peer)) => {
                        T::$op(at, value, Ordering::AcqRel);
                        self.endpoint.notify(dest, peer);
                    }
                    None => self.endpoint.remote_change(Op::$remote, (dest.offset(), pe), value),
                }
            }
        )*}
    };
}
read_modify_write!(
    atomic_fetch_add atomic_fetch_add_nbi atomic_add add Add: "Adds, wrapping",
    atomic_fetch_and atomic_fetch_and_nbi atomic_and and And: "Ands bitwise",
    atomic_fetch_or atomic_fetch_or_nbi atomic_or or Or: "Ors bitwise",
    atomic_fetch_xor atomic_fetch_xor_nbi atomic_xor xor Xor: "Exclusive-ors bitwise"
);
