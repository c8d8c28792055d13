//! Atomic operations by address.

use super::Raw;
use crate::verbs::atomic::{AtomicInt, AtomicValue};
use crate::world::endpoint::Peer;
use std::sync::atomic::Ordering;

/// Atomics, ordered as those of [`Pe`](crate::Pe). The non-fetching ones of OpenSHMEM are these with the
/// result dropped.
impl<'a> Raw<'a> {
    /// The processor's atomic behind the symmetric `addr` on `pe`.
    ///
    /// # Safety
    /// See the [module](super).
    #[inline(always)]
    unsafe fn atomic<T: AtomicValue>(self, addr: *const T, pe: usize) -> (&'a T::Atomic, &'a Peer) {
        let (place, peer) = self.to(addr, pe);
        // SAFETY: one aligned T lies there (by the caller), in memory that outlives the `Pe`. Atomics may
        // be shared and any bits are valid.
        (unsafe { &*place.cast::<T::Atomic>() }, peer)
    }

    /// As [`Pe::atomic_fetch`](crate::Pe::atomic_fetch).
    ///
    /// # Safety
    /// See the [module](super).
    #[inline(always)]
    pub unsafe fn atomic_fetch<T: AtomicValue>(self, source: *const T, pe: usize) -> T {
        // SAFETY: by the caller.
        T::load(unsafe { self.atomic(source, pe) }.0, Ordering::Acquire)
    }

    /// As [`Pe::atomic_set`](crate::Pe::atomic_set).
    ///
    /// # Safety
    /// See the [module](super).
    #[inline(always)]
    pub unsafe fn atomic_set<T: AtomicValue>(self, dest: *mut T, value: T, pe: usize) {
        // SAFETY: by the caller.
        let (at, peer) = unsafe { self.atomic(dest, pe) };
        T::store(at, value, Ordering::Release);
        self.notify(peer, dest, size_of::<T>());
    }

    /// As [`Pe::atomic_swap`](crate::Pe::atomic_swap).
    ///
    /// # Safety
    /// See the [module](super).
    #[inline(always)]
    pub unsafe fn atomic_swap<T: AtomicValue>(self, dest: *mut T, value: T, pe: usize) -> T {
        // SAFETY: by the caller.
        let (at, peer) = unsafe { self.atomic(dest, pe) };
        let old = T::swap(at, value, Ordering::AcqRel);
        self.notify(peer, dest, size_of::<T>());
        old
    }

    /// As [`Pe::atomic_compare_swap`](crate::Pe::atomic_compare_swap).
    ///
    /// # Safety
    /// See the [module](super).
    #[inline(always)]
    pub unsafe fn atomic_compare_swap<T: AtomicInt>(
        self,
        dest: *mut T,
        expected: T,
        value: T,
        pe: usize,
    ) -> T {
        // SAFETY: by the caller.
        let (at, peer) = unsafe { self.atomic(dest, pe) };
        let old = T::compare_swap(at, expected, value, Ordering::AcqRel);
        self.notify(peer, dest, size_of::<T>());
        old
    }
}

macro_rules! read_modify_write {
    ($($name:ident $op:ident),*) => {
        /// As above: the operations with an operand.
        impl Raw<'_> {$(
            #[doc = concat!("As [`Pe::", stringify!($name), "`](crate::Pe::", stringify!($name), ").")]
            ///
            /// # Safety
            /// See the [module](super).
            #[inline(always)]
            pub unsafe fn $name<T: AtomicInt>(self, dest: *mut T, value: T, pe: usize) -> T {
                // SAFETY: by the caller.
                let (at, peer) = unsafe { self.atomic(dest, pe) };
                let old = T::$op(at, value, Ordering::AcqRel);
                self.notify(peer, dest, size_of::<T>());
                old
            }
        )*}
    };
}
read_modify_write!(atomic_fetch_add add, atomic_fetch_and and, atomic_fetch_or or, atomic_fetch_xor xor);
