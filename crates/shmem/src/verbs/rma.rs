//! Put and get: copying into and out of another PE's symmetric memory.
//!
//! All heaps of a host are mapped side by side, so a put to a PE of this host is a store to the target's mapping,
//! done when the call returns. What is for a PE of another host goes by [message](crate::transport).
//!
//! On races: another PE may read or write the same bytes at any time, and OpenSHMEM leaves the
//! values then seen undefined. The copies here never make a Rust reference to symmetric memory. What
//! has up to 64 bytes moves in [pieces](crate::memory::copy) of up to 16 bytes by one access each, relaxed atomic
//! ones up to 8, so that a naturally aligned word is never torn and no byte is written twice. Longer
//! ranges move through raw pointers, where a racing access can tear values but every bit pattern is a
//! valid `Pod`. Ordering comes from `fence`, `quiet`, signals and collectives alone.
//! What is not formally proven: Rust's memory model has no word for such a race of plain copies and
//! calls it undefined. We rely on what every compiler does, vector instructions or a call of `memcpy`
//! on memory it can not reason about, until Rust has an atomic `memcpy`.
#![allow(unsafe_code)] // raw copies into mapped heaps, each after a bounds check

use crate::memory::copy::{get_bytes, load, put_bytes, store};
use crate::memory::symmetric::{Sym, SymRef};
use crate::transport::remote::DeliveryError;
use crate::verbs::raw::remote::Spacing;
use crate::world::pe::Pe;
use bytemuck::Pod;
use std::ptr;

/// One-sided access. `pe` is the PE accessed; one's own is allowed everywhere.
///
/// All forms panic if `pe` does not exist or if the lengths of destination and source differ.
impl Pe {
    /// Copies `source` into `dest` on `pe`.
    ///
    /// Memory ordering: `source` may be reused at once; when the data arrive relative to other puts
    /// is open until [`fence`](Self::fence), [`quiet`](Self::quiet) or a barrier. A naturally aligned word
    /// of 1, 2, 4, 8 or 16 bytes is one store, and a put of up to 64 bytes stores no byte twice: a receiver
    /// may reset what it has seen at once.
    #[inline]
    pub fn put<'a, T: Pod>(&self, dest: impl Into<SymRef<'a, T>>, source: &[T], pe: usize) {
        let dest = dest.into();
        same_length(dest.len(), source.len());
        let (from, bytes) = (source.as_ptr().cast(), size_of_val(source));
        match self.endpoint.mapped(dest, pe) {
            Some((to, peer)) => {
                // SAFETY: `mapped` checked that `to` starts `dest.len()` elements inside the mapped heap of
                // `pe`; the source is a valid slice of as many. A safe `&[T]` can not overlap the heap.
                unsafe { put_bytes(to.cast(), from, bytes) };
                self.endpoint.notify(dest, peer);
            }
            // SAFETY: the source is a valid slice of so many bytes.
            None => unsafe { self.endpoint.remote_put(pe, dest.offset(), from, bytes) },
        }
    }

    /// Copies `source` on `pe` into `dest`. The data have arrived when the call returns.
    #[inline]
    pub fn get<'a, T: Pod>(&self, dest: &mut [T], source: impl Into<SymRef<'a, T>>, pe: usize) {
        let source = source.into();
        same_length(dest.len(), source.len());
        let (to, bytes) = (dest.as_mut_ptr().cast(), size_of_val(dest));
        // SAFETY: as in `put`, with the roles exchanged; every bit pattern is a valid T.
        unsafe {
            match self.endpoint.mapped(source, pe) {
                Some((from, _)) => get_bytes(to, from.cast(), bytes),
                None => self.endpoint.remote_get(pe, source.offset(), to, bytes),
            }
        }
    }

    /// As [`get`](Self::get), but the data have arrived when the next [`quiet`](Self::quiet) returns.
    ///
    /// # Safety
    /// Until then `dest` stays where it is, and nobody else uses it.
    #[inline]
    pub(crate) unsafe fn get_nbi<'a, T: Pod>(
        &self,
        dest: &mut [T],
        source: impl Into<SymRef<'a, T>>,
        pe: usize,
    ) {
        let source = source.into();
        same_length(dest.len(), source.len());
        let (to, bytes) = (dest.as_mut_ptr().cast(), size_of_val(dest));
        // SAFETY: as in `get`; by the caller for as long as it takes.
        unsafe {
            match self.endpoint.mapped(source, pe) {
                Some((from, _)) => get_bytes(to, from.cast(), bytes),
                None => (self.endpoint).remote_get_nbi(pe, source.offset(), to, bytes),
            }
        }
    }

    /// Stores one value into the single element `dest` on `pe`; never torn for 1, 2, 4 and 8 bytes
    /// (and 16, aligned to them, where the processor has AVX).
    #[inline]
    pub fn p<'a, T: Pod>(&self, dest: impl Into<SymRef<'a, T>>, value: T, pe: usize) {
        let dest = dest.into();
        same_length(dest.len(), 1);
        match self.endpoint.mapped(dest, pe) {
            Some((to, peer)) => {
                // SAFETY: `mapped` returns the place of one T inside the mapped heap of `pe`.
                unsafe { store(to, value) };
                self.endpoint.notify(dest, peer);
            }
            None => self.endpoint.remote_p(pe, dest.offset(), value),
        }
    }

    /// Loads the single element `source` on `pe`; never torn for 1, 2, 4 and 8 bytes
    /// (and 16, aligned to them, where the processor has AVX).
    #[inline]
    pub fn g<'a, T: Pod>(&self, source: impl Into<SymRef<'a, T>>, pe: usize) -> T {
        let source = source.into();
        same_length(source.len(), 1);
        match self.endpoint.mapped(source, pe) {
            // SAFETY: `mapped` returns the place of one T inside the mapped heap of `pe`.
            Some((from, _)) => unsafe { load(from) },
            None => self.endpoint.remote_g(pe, source.offset()),
        }
    }

    /// Strided put: `dest[i * dest_stride] = source[i * source_stride]` for `i` in `0..n`; strides
    /// count elements and are at least 1.
    ///
    /// # Panics
    /// If an index falls outside, or a stride is 0.
    pub fn iput<'a, T: Pod>(
        &self,
        dest: impl Into<SymRef<'a, T>>,
        dest_stride: usize,
        source: &[T],
        source_stride: usize,
        n: usize,
        pe: usize,
    ) {
        let dest = dest.into();
        spans(dest.len(), dest_stride, n);
        spans(source.len(), source_stride, n);
        let Some((to, peer)) = self.endpoint.mapped(dest, pe) else {
            let there = (dest.offset(), Spacing::of::<T>(dest_stride as isize));
            let here = (
                source.as_ptr().cast(),
                (source_stride * size_of::<T>()) as isize,
            );
            // SAFETY: `spans` checked that `(n - 1) * stride` is an index of `source`.
            unsafe { self.endpoint.remote_put_strided(pe, there, here, n) };
            return;
        };
        for i in 0..n {
            // SAFETY: `spans` checked that `(n - 1) * stride` is an index of `dest`, whose elements
            // all lie inside the mapped heap of `pe`.
            unsafe { store(to.add(i * dest_stride), source[i * source_stride]) };
        }
        self.endpoint.notify(dest, peer);
    }

    /// Strided get: `dest[i * dest_stride] = source[i * source_stride]` for `i` in `0..n`; strides
    /// count elements and are at least 1.
    ///
    /// # Panics
    /// If an index falls outside, or a stride is 0.
    pub fn iget<'a, T: Pod>(
        &self,
        dest: &mut [T],
        dest_stride: usize,
        source: impl Into<SymRef<'a, T>>,
        source_stride: usize,
        n: usize,
        pe: usize,
    ) {
        let source = source.into();
        spans(dest.len(), dest_stride, n);
        spans(source.len(), source_stride, n);
        let Some((from, _)) = self.endpoint.mapped(source, pe) else {
            let there = (source.offset(), Spacing::of::<T>(source_stride as isize));
            let here = (
                dest.as_mut_ptr().cast(),
                (dest_stride * size_of::<T>()) as isize,
            );
            // SAFETY: as in `iput`.
            unsafe { self.endpoint.remote_get_strided(pe, there, here, n) };
            return;
        };
        for i in 0..n {
            // SAFETY: as in `iput`.
            dest[i * dest_stride] = unsafe { load(from.add(i * source_stride)) };
        }
    }

    /// Copies `source` into this PE's own part of `dest`.
    #[inline]
    pub fn write<'a, T: Pod>(&self, dest: impl Into<SymRef<'a, T>>, source: &[T]) {
        self.put(dest, source, self.my_pe());
    }

    /// Copies this PE's own part of `source` into `dest`.
    #[inline]
    pub fn read<'a, T: Pod>(&self, dest: &mut [T], source: impl Into<SymRef<'a, T>>) {
        self.get(dest, source, self.my_pe());
    }

    /// Orders: puts and atomics to each PE issued before are delivered before those issued after.
    ///
    /// # Errors
    /// What was issued can not be delivered any more.
    #[inline]
    pub fn fence(&self) -> Result<(), DeliveryError> {
        self.endpoint.fence();
        self.endpoint.can_deliver()
    }

    /// Completes: all puts and atomics issued before are visible to all PEs on return.
    ///
    /// # Errors
    /// What was issued can not be delivered any more.
    #[inline]
    pub fn quiet(&self) -> Result<(), DeliveryError> {
        self.endpoint.quiet();
        self.endpoint.can_deliver()
    }

    /// This PE's own part of `object`, as a slice.
    ///
    /// # Safety
    /// While the slice lives, no PE (this one included) may write to these elements.
    pub unsafe fn local<'a, T: Pod>(&'a self, object: &'a Sym<T>) -> &'a [T] {
        // SAFETY: `own` checked the range; the heap outlives `self`; offsets are multiples of
        // 64 and of T's alignment; the caller promises that nothing writes meanwhile.
        unsafe { std::slice::from_raw_parts(self.endpoint.own(object.all()), object.len()) }
    }

    /// This PE's own part of `object`, as a mutable slice.
    ///
    /// # Safety
    /// While the slice lives, no PE may read or write these elements, nor may another view of them
    /// exist.
    #[allow(clippy::mut_from_ref)] // exclusive by the caller's promise, not by the borrow
    pub unsafe fn local_mut<'a, T: Pod>(&'a self, object: &'a Sym<T>) -> &'a mut [T] {
        // SAFETY: as in `local`; the caller promises exclusive access.
        unsafe { std::slice::from_raw_parts_mut(self.endpoint.own(object.all()), object.len()) }
    }

    /// Sets every byte of this PE's own part to zero.
    pub(crate) fn zero<T: Pod>(&self, object: &Sym<T>) {
        let to = self.endpoint.own(object.all());
        // SAFETY: `own` checked the range; zero bytes are a valid Pod.
        unsafe { ptr::write_bytes(to, 0, object.len()) };
    }
}

#[inline(always)]
fn same_length(dest: usize, source: usize) {
    if dest != source {
        unequal_lengths(dest, source);
    }
}

// Out of line: see `of_another_world`.
#[cold]
#[inline(never)]
fn unequal_lengths(dest: usize, source: usize) -> ! {
    panic!("the destination has {dest} elements, the source {source}");
}

fn spans(len: usize, stride: usize, n: usize) {
    assert!(stride > 0, "a stride of 0");
    assert!(
        n == 0 || (n - 1).checked_mul(stride).is_some_and(|last| last < len),
        "{n} elements {stride} apart do not fit {len}"
    );
}
