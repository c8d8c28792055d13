//! Atomic operations by address, and the types that have them.

use super::Raw;
use crate::transport::message::Op;
use crate::world::endpoint::Peer;
use bytemuck::Pod;
use std::sync::atomic::{
    AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering,
};

mod sealed {
    use std::sync::atomic::Ordering;

    /// What the processor does with any value of an atomic's width, under one set of names.
    pub trait RawValue: Sized {
        type Atomic;
        fn load(at: &Self::Atomic, order: Ordering) -> Self;
        fn store(at: &Self::Atomic, value: Self, order: Ordering);
        fn swap(at: &Self::Atomic, value: Self, order: Ordering) -> Self;
    }

    /// What it does with integers.
    pub trait RawInt: RawValue {
        fn compare_swap(at: &Self::Atomic, expected: Self, value: Self, order: Ordering) -> Self;
        fn add(at: &Self::Atomic, value: Self, order: Ordering) -> Self;
        fn and(at: &Self::Atomic, value: Self, order: Ordering) -> Self;
        fn or(at: &Self::Atomic, value: Self, order: Ordering) -> Self;
        fn xor(at: &Self::Atomic, value: Self, order: Ordering) -> Self;
        fn to_u64(self) -> u64;
        const ONE: Self;
        const SIGNED: bool;
    }
}
pub(crate) use sealed::{RawInt, RawValue};

/// Values that can be fetched, set and swapped atomically: the [`AtomicInt`]s, `f32` and `f64`.
pub trait AtomicValue: Pod + RawValue {}

/// Integers with all atomic operations: of 16, 32 and 64 bits, and the pointer-sized ones.
pub trait AtomicInt: AtomicValue + Ord + RawInt {}

macro_rules! atomic_int {
    ($($int:ty => $atomic:ty),*) => {$(
        impl RawValue for $int {
            type Atomic = $atomic;
            #[inline(always)]
            fn load(at: &$atomic, order: Ordering) -> Self { at.load(order) }
            #[inline(always)]
            fn store(at: &$atomic, value: Self, order: Ordering) { at.store(value, order) }
            #[inline(always)]
            fn swap(at: &$atomic, value: Self, order: Ordering) -> Self { at.swap(value, order) }
        }
        impl RawInt for $int {
            const ONE: Self = 1;
            const SIGNED: bool = <$int>::MIN != 0;
            #[inline(always)]
            fn compare_swap(at: &$atomic, expected: Self, value: Self, order: Ordering) -> Self {
                match at.compare_exchange(expected, value, order, Ordering::Acquire) {
                    Ok(old) | Err(old) => old,
                }
            }
            #[inline(always)]
            fn add(at: &$atomic, value: Self, order: Ordering) -> Self { at.fetch_add(value, order) }
            #[inline(always)]
            fn and(at: &$atomic, value: Self, order: Ordering) -> Self { at.fetch_and(value, order) }
            #[inline(always)]
            fn or(at: &$atomic, value: Self, order: Ordering) -> Self { at.fetch_or(value, order) }
            #[inline(always)]
            fn xor(at: &$atomic, value: Self, order: Ordering) -> Self { at.fetch_xor(value, order) }
            #[inline(always)]
            fn to_u64(self) -> u64 { self as u64 }
        }
        impl AtomicValue for $int {}
        impl AtomicInt for $int {}
    )*};
}
atomic_int!(
    u16 => AtomicU16, i16 => AtomicI16, u32 => AtomicU32, i32 => AtomicI32, u64 => AtomicU64,
    i64 => AtomicI64, usize => AtomicUsize, isize => AtomicIsize
);

macro_rules! atomic_float {
    ($($float:ty => $atomic:ty),*) => {$(
        impl RawValue for $float {
            type Atomic = $atomic;
            #[inline(always)]
            fn load(at: &$atomic, order: Ordering) -> Self { Self::from_bits(at.load(order)) }
            #[inline(always)]
            fn store(at: &$atomic, value: Self, order: Ordering) { at.store(value.to_bits(), order) }
            #[inline(always)]
            fn swap(at: &$atomic, value: Self, order: Ordering) -> Self {
                Self::from_bits(at.swap(value.to_bits(), order))
            }
        }
        impl AtomicValue for $float {}
    )*};
}
atomic_float!(f32 => AtomicU32, f64 => AtomicU64);

/// Atomics, ordered as those of [`Pe`](crate::Pe).
impl<'a> Raw<'a> {
    /// The processor's atomic behind the symmetric `addr` on `pe`; `None` if `pe` is on another host.
    ///
    /// # Safety
    /// See the [module](super).
    #[inline(always)]
    unsafe fn atomic<T: AtomicValue>(
        self,
        addr: *const T,
        pe: usize,
    ) -> Option<(&'a T::Atomic, &'a Peer)> {
        let (place, peer) = self.to(addr, pe)?;
        // SAFETY: one aligned T lies there (by the caller), in memory that outlives the `Pe`. Atomics may
        // be shared and any bits are valid.
        Some((unsafe { &*place.cast::<T::Atomic>() }, peer))
    }

    /// The name of the word at `addr` on `pe`, for messages.
    fn word<T>(self, addr: *const T, pe: usize) -> (usize, usize) {
        (self.endpoint.position(addr.addr()), pe)
    }

    /// As [`Pe::atomic_fetch`](crate::Pe::atomic_fetch).
    ///
    /// # Safety
    /// See the [module](super).
    #[inline(always)]
    pub unsafe fn atomic_fetch<T: AtomicValue>(self, source: *const T, pe: usize) -> T {
        // SAFETY: by the caller.
        match unsafe { self.atomic(source, pe) } {
            Some((at, _)) => T::load(at, Ordering::Acquire),
            None => (self.endpoint).remote_fetch(Op::Fetch, self.word(source, pe), None, None),
        }
    }

    /// As [`Pe::atomic_set`](crate::Pe::atomic_set).
    ///
    /// # Safety
    /// See the [module](super).
    #[inline(always)]
    pub unsafe fn atomic_set<T: AtomicValue>(self, dest: *mut T, value: T, pe: usize) {
        // SAFETY: by the caller.
        match unsafe { self.atomic(dest, pe) } {
            Some((at, peer)) => {
                T::store(at, value, Ordering::Release);
                self.notify(peer, dest, size_of::<T>());
            }
            None => (self.endpoint).remote_change(Op::Set, self.word(dest, pe), value),
        }
    }

    /// As [`Pe::atomic_swap`](crate::Pe::atomic_swap).
    ///
    /// # Safety
    /// See the [module](super).
    #[inline(always)]
    pub unsafe fn atomic_swap<T: AtomicValue>(self, dest: *mut T, value: T, pe: usize) -> T {
        // SAFETY: by the caller.
        match unsafe { self.atomic(dest, pe) } {
            Some((at, peer)) => {
                let old = T::swap(at, value, Ordering::AcqRel);
                self.notify(peer, dest, size_of::<T>());
                old
            }
            None => (self.endpoint).remote_fetch(Op::Set, self.word(dest, pe), Some(value), None),
        }
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
        match unsafe { self.atomic(dest, pe) } {
            Some((at, peer)) => {
                let old = T::compare_swap(at, expected, value, Ordering::AcqRel);
                self.notify(peer, dest, size_of::<T>());
                old
            }
            None => {
                let (word, operands) = (self.word(dest, pe), (Some(value), Some(expected)));
                (self.endpoint).remote_fetch(Op::CompareSwap, word, operands.0, operands.1)
            }
        }
    }

    /// As [`atomic_fetch`](Self::atomic_fetch), but what was there is in `fetched` when the next quiet of this PE
    /// returns, as with [`get_nbi`](Self::get_nbi).
    ///
    /// # Safety
    /// See the [module](super). Until then `fetched` stays valid for writing, and nobody else uses it.
    #[inline(always)]
    pub unsafe fn atomic_fetch_nbi<T: AtomicValue>(
        self,
        fetched: *mut T,
        source: *const T,
        pe: usize,
    ) {
        // SAFETY: by the caller.
        unsafe {
            match self.atomic(source, pe) {
                Some((at, _)) => fetched.write(T::load(at, Ordering::Acquire)),
                None => self.ask_nbi(Op::Fetch, self.word(source, pe), (None, None), fetched),
            }
        }
    }

    /// As [`atomic_swap`](Self::atomic_swap), as late as [`atomic_fetch_nbi`](Self::atomic_fetch_nbi).
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn atomic_swap_nbi<T: AtomicValue>(
        self,
        fetched: *mut T,
        dest: *mut T,
        value: T,
        pe: usize,
    ) {
        // SAFETY: by the caller.
        unsafe {
            match self.atomic(dest, pe) {
                Some((at, peer)) => {
                    fetched.write(T::swap(at, value, Ordering::AcqRel));
                    self.notify(peer, dest, size_of::<T>());
                }
                None => self.ask_nbi(Op::Set, self.word(dest, pe), (Some(value), None), fetched),
            }
        }
    }

    /// As [`atomic_compare_swap`](Self::atomic_compare_swap), as late as
    /// [`atomic_fetch_nbi`](Self::atomic_fetch_nbi).
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn atomic_compare_swap_nbi<T: AtomicInt>(
        self,
        fetched: *mut T,
        dest: *mut T,
        expected: T,
        value: T,
        pe: usize,
    ) {
        // SAFETY: by the caller.
        unsafe {
            match self.atomic(dest, pe) {
                Some((at, peer)) => {
                    fetched.write(T::compare_swap(at, expected, value, Ordering::AcqRel));
                    self.notify(peer, dest, size_of::<T>());
                }
                None => {
                    let (word, operands) = (self.word(dest, pe), (Some(value), Some(expected)));
                    self.ask_nbi(Op::CompareSwap, word, operands, fetched);
                }
            }
        }
    }

    /// # Safety
    /// As [`atomic_fetch_nbi`](Self::atomic_fetch_nbi).
    #[cold]
    unsafe fn ask_nbi<T: AtomicValue>(
        self,
        op: Op,
        word: (usize, usize),
        operands: (Option<T>, Option<T>),
        fetched: *mut T,
    ) {
        // SAFETY: by the caller.
        unsafe { (self.endpoint).remote_fetch_nbi(op, word, operands, fetched) };
    }
}

macro_rules! read_modify_write {
    ($($fetching:ident $nbi:ident $plain:ident $op:ident $remote:ident),*) => {
        /// As above: the operations with an operand, with the old value, with that later, and without it.
        impl Raw<'_> {$(
            #[doc = concat!("As [`Pe::", stringify!($fetching), "`](crate::Pe::", stringify!($fetching), ").")]
            ///
            /// # Safety
            /// See the [module](super).
            #[inline(always)]
            pub unsafe fn $fetching<T: AtomicInt>(self, dest: *mut T, value: T, pe: usize) -> T {
                // SAFETY: by the caller.
                match unsafe { self.atomic(dest, pe) } {
                    Some((at, peer)) => {
                        let old = T::$op(at, value, Ordering::AcqRel);
                        self.notify(peer, dest, size_of::<T>());
                        old
                    }
                    None => {
                        let word = self.word(dest, pe);
                        (self.endpoint).remote_fetch(Op::$remote, word, Some(value), None)
                    }
                }
            }

            /// As the fetching one, as late as [`atomic_fetch_nbi`](Self::atomic_fetch_nbi).
            ///
            /// # Safety
            /// As there.
            #[inline(always)]
            pub unsafe fn $nbi<T: AtomicInt>(
                self,
                fetched: *mut T,
                dest: *mut T,
                value: T,
                pe: usize,
            ) {
                // SAFETY: by the caller.
                unsafe {
                    match self.atomic(dest, pe) {
                        Some((at, peer)) => {
                            fetched.write(T::$op(at, value, Ordering::AcqRel));
                            self.notify(peer, dest, size_of::<T>());
                        }
                        None => {
                            let (word, operands) = (self.word(dest, pe), (Some(value), None));
                            self.ask_nbi(Op::$remote, word, operands, fetched);
                        }
                    }
                }
            }

            #[doc = concat!("As [`Pe::", stringify!($plain), "`](crate::Pe::", stringify!($plain), ").")]
            ///
            /// # Safety
            /// See the [module](super).
            #[inline(always)]
            pub unsafe fn $plain<T: AtomicInt>(self, dest: *mut T, value: T, pe: usize) {
                // SAFETY: by the caller.
                match unsafe { self.atomic(dest, pe) } {
                    Some((at, peer)) => {
                        T::$op(at, value, Ordering::AcqRel);
                        self.notify(peer, dest, size_of::<T>());
                    }
                    None => (self.endpoint).remote_change(Op::$remote, self.word(dest, pe), value),
                }
            }
        )*}
    };
}
read_modify_write!(
    atomic_fetch_add atomic_fetch_add_nbi atomic_add add Add,
    atomic_fetch_and atomic_fetch_and_nbi atomic_and and And,
    atomic_fetch_or atomic_fetch_or_nbi atomic_or or Or,
    atomic_fetch_xor atomic_fetch_xor_nbi atomic_xor xor Xor
);
