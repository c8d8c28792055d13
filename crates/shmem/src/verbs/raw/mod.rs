//! The verbs over plain addresses: what a C interface is made of.
//!
//! The safe verbs take handles ([`Sym`](crate::Sym)). C programs have addresses: a pointer into this PE's
//! symmetric heap, or into a [registered segment](crate::Pe::register_segment) such as the static data,
//! names the same object on every PE. [`Raw`] takes those. Each operation costs a range check and an
//! addition over the copy or the atomic itself, and means exactly what its safe namesake means, memory
//! ordering included.
//!
//! # Safety
//! All operations share these conditions; single ones add to them.
//! - *Symmetric* arguments are addresses of this PE's heap or of a registered segment, with all their
//!   elements in the same piece of it. The others are valid for the whole access, for reading or writing.
//! - Arguments of an atomic or a wait are aligned to their size.
//! - Other PEs may change symmetric memory at any time; what a race leaves is unspecified.
//!
//! # Panics
//! If a PE does not exist or a symmetric address is not symmetric ([`Raw::contains`] tells beforehand), and if
//! what a put, a get, their strided forms or a collective of more than 4 KiB are to read or write of
//! symmetric memory does not lie in it, sizes that overflow included.
//!
//! ```
//! let seen = crosswarp_shmem::spmd(2, |pe| {
//!     let raw = pe.raw();
//!     let word = raw.malloc(8, 8)?.cast::<u64>();
//!     // SAFETY: `word` is 8 bytes of the heap.
//!     let seen = unsafe {
//!         raw.p(word, 40 + pe.my_pe() as u64, 1 - pe.my_pe());
//!         pe.barrier()?;
//!         raw.g(word, pe.my_pe())
//!     };
//!     raw.free(word.cast())?;
//!     Ok::<_, crosswarp_shmem::Error>(seen)
//! });
//! assert_eq!(seen.unwrap(), [Ok(41), Ok(40)]);
//! ```
#![allow(unsafe_code)] // addresses come from the caller, who promises what is said above

pub(crate) mod atomic;
mod collective;
pub(crate) mod fair;
mod heap;
pub(crate) mod lock;
pub(crate) mod remote;
pub(crate) mod signal;
pub(crate) mod wait;

use crate::memory::copy::{get_bytes, load, put_bytes, store};
use crate::verbs::raw::remote::Spacing;
use crate::world::endpoint::{Endpoint, Peer};
use bytemuck::Pod;
use rustix::fd::OwnedFd;
use std::ops::Range;
use std::ptr;

pub use wait::{Values, WaitSet};

/// An unnamed file of `len` bytes in memory that can not change its size, close-on-exec: what
/// [`register_segment`](crate::Pe::register_segment) takes.
///
/// # Errors
/// What the system says.
pub fn memfd(name: &str, len: usize) -> std::io::Result<OwnedFd> {
    Ok(crate::memory::region::memfd(name, len)?)
}

/// A PE, for access by address.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    endpoint: &'a Endpoint,
}

impl<'a> Raw<'a> {
    #[inline(always)]
    pub(crate) fn new(endpoint: &'a Endpoint) -> Self {
        Self { endpoint }
    }
}

/// Where things are.
impl<'a> Raw<'a> {
    /// Whether the `bytes` bytes at `addr` lie in one piece of this PE's symmetric memory.
    #[inline]
    pub fn contains<T>(self, addr: *const T, bytes: usize) -> bool {
        self.endpoint.is_symmetric(addr.addr(), bytes)
    }

    /// The static variable that holds the byte at `addr`, if
    /// [`name_static_data`](crate::internal::name_static_data) has said where their names are.
    pub fn static_name<T>(self, addr: *const T) -> Option<String> {
        crate::memory::position::static_name(self.endpoint.position(addr.addr()))
    }

    /// Where this process can load and store `pe`'s copy of the symmetric object at `addr`; null if there
    /// is no such PE, it is on another host, or the address is not symmetric. The result is not a symmetric address.
    #[inline]
    pub fn ptr<T>(self, addr: *const T, pe: usize) -> *mut T {
        if pe < self.endpoint.n_pes() && self.contains(addr, 1) {
            let (place, _) = self.endpoint.locate(addr.addr(), pe);
            place.map_or(ptr::null_mut(), <*mut u8>::cast)
        } else {
            ptr::null_mut()
        }
    }

    /// Start of this PE's own heap.
    pub fn heap(self) -> *mut u8 {
        let own = self.endpoint.peer(self.endpoint.my_pe()).heap.start();
        own.map_or(ptr::null_mut(), |heap| heap.as_ptr())
    }

    #[inline(always)]
    fn to<T>(self, addr: *const T, pe: usize) -> Option<(*mut T, &'a Peer)> {
        let (place, peer) = self.endpoint.locate(addr.addr(), pe);
        Some((place?.cast(), peer))
    }

    /// Wakes the owner of `peer` if it sleeps on one of the `bytes` bytes that are symmetric with `addr`.
    #[inline(always)]
    fn notify<T>(self, peer: &Peer, addr: *const T, bytes: usize) {
        if peer.control().parker.has_sleepers() {
            self.endpoint.notify_sleepers(peer, addr.addr(), bytes);
        }
    }
}

/// Put and get.
impl Raw<'_> {
    /// As [`Pe::put`](crate::Pe::put): `bytes` bytes from `source` to the symmetric `dest` on `pe`.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline]
    pub unsafe fn put(self, dest: *mut u8, source: *const u8, bytes: usize, pe: usize) {
        if bytes == 0 {
            return;
        }
        let (to, peer) = self.endpoint.locate_bytes(dest.addr(), bytes, pe);
        let Some(to) = to else {
            let position = self.endpoint.position(dest.addr());
            // SAFETY: by the caller.
            return unsafe { self.endpoint.remote_put(pe, position, source, bytes) };
        };
        // SAFETY: by the caller; `locate_bytes` maps symmetric bytes to mapped bytes.
        unsafe { put_bytes(to, source, bytes) };
        self.notify(peer, dest, bytes);
    }

    /// As [`Pe::get`](crate::Pe::get): `bytes` bytes of the symmetric `source` on `pe` to `dest`.
    ///
    /// # Safety
    /// See the [module](self).
    #[inline]
    pub unsafe fn get(self, dest: *mut u8, source: *const u8, bytes: usize, pe: usize) {
        if bytes == 0 {
            return;
        }
        let (from, _) = self.endpoint.locate_bytes(source.addr(), bytes, pe);
        // SAFETY: as in `put`.
        unsafe {
            match from {
                Some(from) => get_bytes(dest, from, bytes),
                None => {
                    let position = self.endpoint.position(source.addr());
                    self.endpoint.remote_get(pe, position, dest, bytes);
                }
            }
        }
    }

    /// As [`get`](Self::get), but the bytes are there when the next quiet of this PE returns, be it in
    /// [`Pe::quiet`](crate::Pe::quiet), a barrier or the end of a scope. At most 4 MiB, or 1024 such operations and
    /// [atomics](Self::atomic_fetch_nbi), are under way; who asks for more waits for some of it.
    ///
    /// # Safety
    /// See the [module](self). Until then `dest` stays valid for writing, and nobody else uses it.
    #[inline]
    pub unsafe fn get_nbi(self, dest: *mut u8, source: *const u8, bytes: usize, pe: usize) {
        if bytes == 0 {
            return;
        }
        let (from, _) = self.endpoint.locate_bytes(source.addr(), bytes, pe);
        // SAFETY: as in `get`.
        unsafe {
            match from {
                Some(from) => get_bytes(dest, from, bytes),
                None => {
                    let position = self.endpoint.position(source.addr());
                    (self.endpoint).remote_get_nbi(pe, position, dest, bytes);
                }
            }
        }
    }

    /// As [`Pe::p`](crate::Pe::p).
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    pub unsafe fn p<T: Pod>(self, dest: *mut T, value: T, pe: usize) {
        let Some((to, peer)) = self.to(dest, pe) else {
            let position = self.endpoint.position(dest.addr());
            return self.endpoint.remote_p(pe, position, value);
        };
        // SAFETY: by the caller.
        unsafe { store(to, value) };
        self.notify(peer, dest, size_of::<T>());
    }

    /// As [`Pe::g`](crate::Pe::g).
    ///
    /// # Safety
    /// See the [module](self).
    #[inline(always)]
    pub unsafe fn g<T: Pod>(self, source: *const T, pe: usize) -> T {
        let Some((from, _)) = self.to(source, pe) else {
            let position = self.endpoint.position(source.addr());
            return self.endpoint.remote_g(pe, position);
        };
        // SAFETY: by the caller.
        unsafe { load(from) }
    }

    /// As [`Pe::iput`](crate::Pe::iput); strides count elements.
    ///
    /// # Safety
    /// See the [module](self).
    pub unsafe fn iput<T: Pod>(
        self,
        dest: *mut T,
        dest_stride: isize,
        source: *const T,
        source_stride: isize,
        n: usize,
        pe: usize,
    ) {
        if n == 0 {
            return;
        }
        let touched = self.strided(dest, dest_stride, n);
        span(source, source_stride, n);
        let Some((to, peer)) = self.to(dest, pe) else {
            let there = Spacing::of::<T>(dest_stride);
            let here = (source.cast(), Spacing::of::<T>(source_stride).stride);
            let place = (self.endpoint.position(dest.addr()), there);
            // SAFETY: by the caller.
            return unsafe { self.endpoint.remote_put_strided(pe, place, here, n) };
        };
        for i in 0..n as isize {
            // SAFETY: by the caller.
            unsafe {
                let value = source.offset(i * source_stride).read_unaligned();
                store(to.offset(i * dest_stride), value);
            }
        }
        if peer.control().parker.has_sleepers() {
            self.endpoint
                .notify_sleepers(peer, touched.start, touched.len());
        }
    }

    /// As [`Pe::iget`](crate::Pe::iget); strides count elements.
    ///
    /// # Safety
    /// See the [module](self).
    pub unsafe fn iget<T: Pod>(
        self,
        dest: *mut T,
        dest_stride: isize,
        source: *const T,
        source_stride: isize,
        n: usize,
        pe: usize,
    ) {
        if n == 0 {
            return;
        }
        self.strided(source, source_stride, n);
        span(dest, dest_stride, n);
        let Some((from, _)) = self.to(source, pe) else {
            let there = Spacing::of::<T>(source_stride);
            let here = (dest.cast(), Spacing::of::<T>(dest_stride).stride);
            let place = (self.endpoint.position(source.addr()), there);
            // SAFETY: by the caller.
            return unsafe { self.endpoint.remote_get_strided(pe, place, here, n) };
        };
        for i in 0..n as isize {
            // SAFETY: by the caller.
            unsafe {
                let value = load(from.offset(i * source_stride));
                dest.offset(i * dest_stride).write_unaligned(value);
            }
        }
    }
}

impl Raw<'_> {
    /// The addresses of `n` symmetric elements that are `stride` apart, `n` at least 1.
    fn strided<T>(self, addr: *const T, stride: isize, n: usize) -> Range<usize> {
        let touched = span(addr, stride, n);
        if !self.endpoint.is_symmetric(touched.start, touched.len()) {
            self.endpoint
                .bytes_not_symmetric(touched.start, touched.len());
        }
        touched
    }
}

/// The addresses from the first to the last byte of `n` elements, at least 1, that are `stride` elements apart
/// from `addr` on or, with a negative stride, down.
///
/// # Panics
/// If there are no such addresses.
fn span<T>(addr: *const T, stride: isize, n: usize) -> Range<usize> {
    let addr = addr.addr();
    let range = || {
        let steps = isize::try_from(n - 1).ok()?;
        let reach = steps
            .checked_mul(stride)?
            .checked_mul(size_of::<T>() as isize)?;
        let last = addr.checked_add_signed(reach)?;
        Some(addr.min(last)..addr.max(last).checked_add(size_of::<T>())?)
    };
    match range() {
        Some(range) => range,
        None => panic!(
            "{n} elements {stride} apart from address {addr:#x} are more than can be addressed"
        ),
    }
}
