//! From an address of this PE's symmetric memory to the same byte of another PE's.
#![allow(unsafe_code)] // computes addresses in mapped memory

use crate::memory::segment::Segment;
use crate::world::endpoint::{Endpoint, Peer};
use std::ptr::NonNull;

impl Endpoint {
    /// Where `pe` has the symmetric byte that this PE has at `addr`, `None` if it is on another host, and what else
    /// the fast paths need of `pe`.
    ///
    /// # Panics
    /// If `pe` does not exist or `addr` is not in symmetric memory.
    #[inline(always)]
    pub(crate) fn locate(&self, addr: usize, pe: usize) -> (Option<*mut u8>, &Peer) {
        let peer = self.peer(pe);
        // Heaps are equally long, and so are the parts of a segment.
        if let Some(at) = peer.heap.at(addr.wrapping_sub(self.heap_start()), 0) {
            return (Some(at), peer);
        }
        let in_first = addr.wrapping_sub(self.segments.first_start);
        if let Some(at) = peer.segment.at(in_first, 0) {
            return (Some(at), peer);
        }
        (self.locate_further(addr, pe), peer)
    }

    /// As [`locate`](Self::locate) for `bytes` bytes, all of which have to be in one piece of symmetric memory.
    ///
    /// # Panics
    /// If `pe` does not exist or they are not.
    #[inline(always)]
    pub(crate) fn locate_bytes(
        &self,
        addr: usize,
        bytes: usize,
        pe: usize,
    ) -> (Option<*mut u8>, &Peer) {
        let peer = self.peer(pe);
        let in_heap = addr.wrapping_sub(self.heap_start());
        if let Some(at) = peer.heap.at(in_heap, bytes) {
            return (Some(at), peer);
        }
        if !self.is_symmetric(addr, bytes) {
            self.bytes_not_symmetric(addr, bytes);
        }
        self.locate(addr, pe)
    }

    /// The same for further segments, and for PEs of other hosts.
    #[cold]
    fn locate_further(&self, addr: usize, pe: usize) -> Option<*mut u8> {
        if addr.wrapping_sub(self.heap_start()) < self.heap_bytes() {
            return None;
        }
        let Some(segment) = self.segment_of(addr) else {
            self.not_symmetric(addr)
        };
        // SAFETY: inside `pe`'s part; all parts are equally long.
        let at = |part: NonNull<u8>| unsafe { part.as_ptr().add(addr - segment.start) };
        segment.parts[pe].map(at)
    }

    fn segment_of(&self, addr: usize) -> Option<&Segment> {
        let inside = |segment: &&Segment| addr.wrapping_sub(segment.start) < segment.len;
        self.segments.all.iter().find(inside)
    }

    /// Whether the `bytes` bytes at `addr` lie in one piece of this PE's symmetric memory.
    #[inline]
    pub(crate) fn is_symmetric(&self, addr: usize, bytes: usize) -> bool {
        let (start, len) = (self.segments.first_start, self.segments.first_len);
        let mut all = self.segments.all.iter();
        fits(self.heap_start(), self.heap_bytes(), addr, bytes)
            || fits(start, len, addr, bytes)
            || all.any(|s| fits(s.start, s.len, addr, bytes))
    }

    /// How many symmetric bytes there are in one piece from `addr` on; `None` if it is not symmetric.
    pub(crate) fn symmetric_from(&self, addr: usize) -> Option<usize> {
        let segments = self.segments.all.iter().map(|s| (s.start, s.len));
        let mut pieces = [(self.heap_start(), self.heap_bytes())]
            .into_iter()
            .chain(segments);
        let piece = pieces.find(|&(start, len)| fits(start, len, addr, 1));
        piece.map(|(start, len)| len - (addr - start))
    }

    /// Position of the symmetric byte at `addr`; that of no byte if it is none.
    pub(crate) fn position(&self, addr: usize) -> usize {
        let in_heap = addr.wrapping_sub(self.heap_start());
        if in_heap < self.heap_bytes() {
            return in_heap;
        }
        let segment = self.segment_of(addr);
        // Positions have 47 bits at most, as addresses have.
        segment.map_or(1 << 47, |s| s.position + (addr - s.start))
    }

    /// Where `pe` has the `bytes` symmetric bytes at `position`, `None` if `pe` is on another host; `None` if there are
    /// no such.
    pub(crate) fn at_position(
        &self,
        position: usize,
        bytes: usize,
        pe: usize,
    ) -> Option<Option<NonNull<u8>>> {
        let (heap, all) = (self.peer(pe).heap.start(), self.segments.all.iter());
        let segments = all.map(|s| (s.position, s.len, s.parts[pe]));
        let mut places = [(0, self.heap_bytes(), heap)].into_iter().chain(segments);
        let (first, _, start) =
            places.find(|&(first, len, _)| fits(first, len, position, bytes))?;
        // SAFETY: inside `pe`'s heap, or its part of the segment.
        Some(start.map(|start| unsafe { start.add(position - first) }))
    }

    /// Wakes `pe` if it sleeps on one of the `bytes` bytes that are symmetric with `addr`; called after
    /// every store there.
    #[inline(always)]
    pub(crate) fn notify_addr(&self, addr: usize, bytes: usize, pe: usize) {
        let peer = self.peer(pe);
        if peer.control().parker.has_sleepers() {
            self.notify_sleepers(peer, addr, bytes);
        }
    }

    #[cold]
    pub(crate) fn notify_sleepers(&self, peer: &Peer, addr: usize, bytes: usize) {
        let start = self.position(addr);
        let parker = &peer.control().parker;
        parker.notify_store(start, start + bytes, self.shared());
    }

    #[cold]
    fn not_symmetric(&self, addr: usize) -> ! {
        let (start, bytes) = (self.heap_start(), self.heap_bytes());
        let segments = match self.segments.all.len() {
            1 => "there is 1 segment".to_owned(),
            n => format!("there are {n} segments"),
        };
        panic!(
            "PE {}: the address {addr:#x} is not in symmetric memory (the heap is {start:#x}..{:#x}, and {segments} of static data)",
            self.my_pe(),
            start + bytes,
        );
    }
    #[cold]
    pub(crate) fn bytes_not_symmetric(&self, addr: usize, bytes: usize) -> ! {
        if !self.is_symmetric(addr, 1) {
            self.not_symmetric(addr);
        }
        panic!(
            "PE {}: the {bytes} bytes at address {addr:#x} are not all in symmetric memory",
            self.my_pe()
        );
    }
}

/// Whether the `bytes` bytes at `at` lie in the `len` bytes at `start`.
#[inline(always)]
fn fits(start: usize, len: usize, at: usize, bytes: usize) -> bool {
    let offset = at.wrapping_sub(start);
    offset < len && bytes <= len - offset
}
