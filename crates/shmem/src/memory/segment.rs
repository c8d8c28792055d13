//! Symmetric memory beside the heap: segments that a program already has, such as its static data.
//!
//! A segment is a memfd of the same size on every PE that its owner has mapped where it likes. Each PE
//! maps every other PE's, so that an address in one's own segment becomes an address in another PE's by
//! one range check, one subtraction and one addition, as for the heap.
//!
//! Their bytes have [positions](crate::memory::position) behind the heap's.

use crate::memory::region::Region;
use std::ptr::NonNull;

/// One registered segment, as this PE sees it.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Where this PE's own part lies, as a number.
    pub(crate) start: usize,
    pub(crate) len: usize,
    /// Position of its first byte.
    pub(crate) position: usize,
    /// Every PE's part as mapped here; one's own is the original. `None`: that of a PE on another host.
    pub(crate) parts: Box<[Option<NonNull<u8>>]>,
    /// What keeps the other PEs' parts mapped.
    pub(crate) _regions: Vec<Region>,
}

/// All segments of a PE, in the order of registration.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// The first one again, where the fast paths find it; its parts are in
    /// [`Peer::segment`](crate::world::endpoint::Peer).
    pub(crate) first_start: usize,
    pub(crate) first_len: usize,
    pub(crate) all: Vec<Segment>,
}
