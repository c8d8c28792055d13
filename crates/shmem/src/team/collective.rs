//! The collectives over addresses: what both the safe methods of [`Team`] and the raw layer are.
//!
//! Payloads of up to [`SLOT_BYTES`] travel through the lines and slots of the control memory, written
//! before and read after one rendezvous. Larger ones are read straight out of the callers' symmetric memory
//! between two rendezvous, moved once. Nothing is written to a destination before the PEs have agreed that
//! they are in the same call.
//!
//! Common conditions of the functions here: destinations and sources are symmetric addresses of this PE
//! (sources of at most [`SLOT_BYTES`] may be any valid memory) with room for what the function says, and do
//! not overlap, except where a function allows them to be the same.
#![allow(unsafe_code)] // copies between places that the callers name by address

use crate::memory::copy::put_bytes;
use crate::team::Team;
use crate::team::biased_lock::Held;
use crate::team::choice::Proposal;
use crate::team::collective_call::{Call, Kind};
use crate::team::error::CollectiveError;
use crate::team::rendezvous::LINE_BYTES;
use crate::verbs::op::ReduceOp;
use crate::verbs::raw::remote::Spacing;
use crate::world::control::SLOT_BYTES;
use bytemuck::Pod;
use std::mem::MaybeUninit;
use std::ptr;

/// Where the sources of a collective can be read, between its rendezvous.
#[derive(Clone, Copy)]
enum Sources<'t, 'p> {
    /// In lines or slots, by the number of bytes each PE put there.
    Copied {
        team: &'t Team<'p>,
        epoch: u64,
        bytes: usize,
    },
    /// Where they are, at this symmetric address.
    Memory {
        team: &'t Team<'p>,
        source: *const u8,
    },
}

impl Sources<'_, '_> {
    /// Start of what `member` put into its line or slot.
    ///
    /// # Panics
    /// If the sources are where they are.
    #[inline(always)]
    fn of(&self, member: usize) -> *const u8 {
        match *self {
            Self::Copied { team, epoch, bytes } => team.control(member).payload(epoch, bytes),
            Self::Memory { .. } => unreachable!("sources of more than a slot are copied by `copy`"),
        }
    }

    /// Copies the `bytes` bytes from `offset` on of `member`'s source to `dest`.
    ///
    /// # Safety
    /// They lie in the source, and `dest` has room for them.
    #[inline(always)]
    unsafe fn copy(&self, member: usize, offset: usize, dest: *mut u8, bytes: usize) {
        // SAFETY: by the caller.
        unsafe {
            match *self {
                Self::Copied { .. } => put_bytes(dest, self.of(member).add(offset), bytes),
                Self::Memory { team, source } => team.fetch(source, offset, member, dest, bytes),
            }
        }
    }
}

/// Where a part of a collect is.
enum Part {
    /// Mapped here.
    Mapped(*const u8),
    /// At this position of a PE of another host.
    Remote { pe: usize, position: usize },
}

/// How a strided exchange steps, in elements: block `i` of a source or destination begins at element
/// `i * n * stride`.
#[derive(Clone, Copy)]
pub(crate) struct Strides {
    pub(crate) dest: isize,
    pub(crate) source: isize,
}

impl Team<'_> {
    /// Where `member` has this PE's symmetric byte at `addr`; `None` if it is on another host.
    #[inline(always)]
    fn peer_address(&self, addr: *const u8, member: usize) -> Option<*mut u8> {
        let pe = self.world_pe(member);
        self.endpoint.locate(addr.addr(), pe).0
    }

    /// Copies `bytes` bytes of `member`, `offset` behind its symmetric `source`, to `dest`.
    ///
    /// # Safety
    /// They are symmetric, and `dest` has room for them.
    unsafe fn fetch(
        &self,
        source: *const u8,
        offset: usize,
        member: usize,
        dest: *mut u8,
        bytes: usize,
    ) {
        // SAFETY: by the caller.
        unsafe {
            match self.peer_address(source, member) {
                Some(from) => put_bytes(dest, from.add(offset), bytes),
                None => {
                    let position = self.endpoint.position(source.addr()) + offset;
                    let pe = self.world_pe(member);
                    self.endpoint.remote_get(pe, position, dest, bytes);
                }
            }
        }
    }

    /// Another thread of this PE may wait for what a collective has just written.
    #[inline(always)]
    fn notify_self(&self, dest: *const u8, bytes: usize) {
        self.endpoint
            .notify_addr(dest.addr(), bytes, self.endpoint.my_pe());
    }

    /// All PEs of the team, beginning behind me: spreads the load when all read from all.
    fn others_first(&self) -> impl Iterator<Item = usize> + use<> {
        let (me, n) = (self.my_pe(), self.n_pes());
        (me + 1..n).chain(0..=me)
    }

    /// The rendezvous around an exchange of `bytes` bytes at `source`: `take` reads what it wants from any
    /// PE's source. Without `contributes` nobody reads mine.
    ///
    /// # Safety
    /// `source` is valid for reading `bytes` bytes, and symmetric if they are more than [`SLOT_BYTES`].
    #[inline(always)]
    unsafe fn exchange(
        &self,
        turn: &Held<'_>,
        call: Call,
        source: *const u8,
        bytes: usize,
        contributes: bool,
        take: impl FnOnce(Sources<'_, '_>),
    ) -> Result<(), CollectiveError> {
        if bytes > SLOT_BYTES {
            self.rendezvous(turn, call)?;
            take(Sources::Memory { team: self, source });
            // Nobody may change its source before everyone has read it.
            return self.rendezvous(turn, call);
        }
        let epoch = self.next_epoch();
        if !contributes || bytes == 0 {
            self.rendezvous(turn, call)?;
        } else if bytes <= LINE_BYTES {
            let mut words = [0u64; LINE_BYTES / 8];
            // SAFETY: the source by the caller; the words have room for as much.
            unsafe { ptr::copy_nonoverlapping(source, words.as_mut_ptr().cast(), bytes) };
            self.rendezvous_with(turn, call, &words[..bytes.div_ceil(8)], 0)?;
        } else {
            let to = self.control(self.my_pe()).slot_to_write(epoch);
            // SAFETY: the source by the caller; the slot has room for `bytes`, and by rule 2 of
            // `rendezvous` nobody reads it before my arrival.
            unsafe { ptr::copy_nonoverlapping(source, to, bytes) };
            self.rendezvous_with(turn, call, &[], bytes)?;
        }
        take(Sources::Copied {
            team: self,
            epoch,
            bytes,
        });
        // No second rendezvous: the payload is written next two rendezvous from now.
        Ok(())
    }

    /// Hands every PE of the team every PE's `words`.
    pub(crate) fn exchange_words(
        &self,
        turn: &Held<'_>,
        call: Call,
        words: &Proposal,
    ) -> Result<Vec<Proposal>, CollectiveError> {
        let mut all = vec![[0; _]; self.n_pes()];
        let bytes = size_of::<Proposal>();
        let take = |from: Sources<'_, '_>| {
            for (member, words) in all.iter_mut().enumerate() {
                // SAFETY: every PE put its words there, aligned to 16.
                *words = unsafe { from.of(member).cast::<Proposal>().read() };
            }
        };
        // SAFETY: a live array of `bytes` bytes, which fit a slot.
        unsafe { self.exchange(turn, call, words.as_ptr().cast(), bytes, true, take)? };
        Ok(all)
    }

    /// `bytes` bytes of the root's `source` to every PE's `dest`, on the root only if `at_root`. They may
    /// be the same.
    ///
    /// # Safety
    /// See the [module](self).
    pub(crate) unsafe fn broadcast_bytes(
        &self,
        dest: *mut u8,
        source: *const u8,
        bytes: usize,
        root: usize,
        at_root: bool,
    ) -> Result<(), CollectiveError> {
        let call = Call {
            kind: Kind::Broadcast,
            parameter: root as u64,
            bytes: bytes as u64,
        };
        let turn = self.turn(call.kind)?;
        let is_root = root == self.my_pe();
        let take = |from: Sources<'_, '_>| {
            if bytes > 0 && (!is_root || (at_root && dest.cast_const() != source)) {
                // SAFETY: by the caller; the root's source is as long on every PE.
                unsafe { from.copy(root, 0, dest, bytes) };
                self.notify_self(dest, bytes);
            }
        };
        // SAFETY: by the caller.
        unsafe { self.exchange(&turn, call, source, bytes, is_root, take) }
    }

    /// Every PE's `bytes` bytes, in order of the PEs, to every PE's `dest`.
    ///
    /// # Safety
    /// See the [module](self).
    pub(crate) unsafe fn fcollect_bytes(
        &self,
        dest: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<(), CollectiveError> {
        let call = Call {
            kind: Kind::Fcollect,
            parameter: 0,
            bytes: bytes as u64,
        };
        let turn = self.turn(call.kind)?;
        let take = |from: Sources<'_, '_>| {
            if bytes == 0 {
                return;
            }
            for member in self.others_first() {
                // SAFETY: by the caller; `dest` has room for `bytes` of each PE.
                unsafe { from.copy(member, 0, dest.add(member * bytes), bytes) };
            }
            self.notify_self(dest, bytes * self.n_pes());
        };
        // SAFETY: by the caller.
        unsafe { self.exchange(&turn, call, source, bytes, true, take) }
    }

    /// As [`fcollect_bytes`](Self::fcollect_bytes), but each PE brings as many bytes as it likes. Returns
    /// the bytes of all; writes nothing if they are more than `room`, which is for the caller to report.
    ///
    /// # Safety
    /// See the [module](self); `dest` has room for `room` bytes or for what all PEs bring.
    pub(crate) unsafe fn collect_bytes(
        &self,
        dest: *mut u8,
        room: usize,
        source: *const u8,
        bytes: usize,
    ) -> Result<usize, CollectiveError> {
        let call = |bytes: usize| Call {
            kind: Kind::Collect,
            parameter: 0,
            bytes: bytes as u64,
        };
        let turn = self.turn(Kind::Collect)?;
        let epoch = self.next_epoch();
        let mine = self.control(self.my_pe());
        // Where it is, which only its PE has checked to have room for so much.
        let position = self.endpoint.position(source.addr());
        let in_slot = if bytes <= SLOT_BYTES { bytes } else { 0 };
        if in_slot > 0 {
            // SAFETY: as in `exchange`.
            unsafe { ptr::copy_nonoverlapping(source, mine.slot_to_write(epoch), bytes) };
        }
        self.rendezvous_with(&turn, call(0), &[bytes as u64, position as u64], in_slot)?;
        // What the lines say is checked before it becomes an address.
        let part = |member: usize| -> Result<(Part, usize), CollectiveError> {
            // SAFETY: after rendezvous `epoch`, before this PE's next.
            let words: [u64; 2] = unsafe { self.control(member).arrivals.payload_words(epoch) };
            let [bytes, position] = words.map(|word| word as usize);
            if bytes <= SLOT_BYTES {
                return Ok((Part::Mapped(self.control(member).slot(epoch)), bytes));
            }
            let pe = self.world_pe(member);
            let place = self.endpoint.at_position(position, bytes, pe);
            let place = place.ok_or(CollectiveError::Source { pe, bytes })?;
            let mapped = place.map(|place| Part::Mapped(place.as_ptr().cast_const()));
            Ok((mapped.unwrap_or(Part::Remote { pe, position }), bytes))
        };
        let (mut total, mut largest) = (0usize, 0);
        for member in 0..self.n_pes() {
            let (_, bytes) = part(member)?;
            // More than can be addressed is more than any room.
            total = total.saturating_add(bytes);
            largest = largest.max(bytes);
        }
        if total <= room && total > 0 {
            let mut at = 0;
            for member in 0..self.n_pes() {
                let (from, bytes) = part(member)?;
                // Also if a line has changed meanwhile, which the rules of collectives forbid.
                if bytes == 0 || bytes > total - at {
                    continue;
                }
                // SAFETY: `part` checked the source; `at + bytes` is at most `total`, for which `dest` has room.
                unsafe {
                    let to = dest.add(at);
                    match from {
                        Part::Mapped(from) => put_bytes(to, from, bytes),
                        Part::Remote { pe, position } => {
                            self.endpoint.remote_get(pe, position, to, bytes);
                        }
                    }
                }
                at += bytes;
            }
            self.notify_self(dest, total);
        }
        if largest > SLOT_BYTES {
            // Nobody may change its source before everyone has read it.
            self.rendezvous(&turn, call(total))?;
        }
        Ok(total)
    }

    /// Block `j` of PE `i`'s `source` becomes block `i` of PE `j`'s `dest`; `bytes` is that of a block.
    ///
    /// # Safety
    /// See the [module](self).
    pub(crate) unsafe fn alltoall_bytes(
        &self,
        dest: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<(), CollectiveError> {
        let all = bytes * self.n_pes();
        let call = Call {
            kind: Kind::Alltoall,
            parameter: 0,
            bytes: all as u64,
        };
        let turn = self.turn(call.kind)?;
        let mine = self.my_pe() * bytes;
        let take = |from: Sources<'_, '_>| {
            if bytes == 0 {
                return;
            }
            for member in self.others_first() {
                // SAFETY: by the caller; both have a block for each PE.
                unsafe { from.copy(member, mine, dest.add(member * bytes), bytes) };
            }
            self.notify_self(dest, all);
        };
        // SAFETY: by the caller.
        unsafe { self.exchange(&turn, call, source, all, true, take) }
    }

    /// As [`alltoall_bytes`](Self::alltoall_bytes) with blocks of `n` elements of `size` bytes that lie
    /// apart.
    ///
    /// # Safety
    /// See the [module](self); the strides are at least 1.
    pub(crate) unsafe fn alltoalls_bytes(
        &self,
        dest: *mut u8,
        source: *const u8,
        strides: Strides,
        size: usize,
        n: usize,
    ) -> Result<(), CollectiveError> {
        let blocks = n * self.n_pes();
        let call = Call {
            kind: Kind::Alltoalls,
            parameter: (strides.dest as u64 & 0xffff) << 16 | strides.source as u64 & 0xffff,
            bytes: (blocks * size) as u64,
        };
        let turn = self.turn(call.kind)?;
        let step = size as isize;
        // The elements are wherever they are, so they are read in place whatever their size.
        self.rendezvous(&turn, call)?;
        for member in self.others_first() {
            if n == 0 {
                break;
            }
            let first = (self.my_pe() * n) as isize;
            let mut to = dest.wrapping_offset((member * n) as isize * strides.dest * step);
            let before = first * strides.source * step;
            let Some(from) = self.peer_address(source, member) else {
                let position = self.endpoint.position(source.addr());
                let spacing = Spacing {
                    width: size,
                    stride: strides.source * step,
                };
                let from = (position.wrapping_add_signed(before), spacing);
                let pe = self.world_pe(member);
                // SAFETY: by the caller, as below.
                unsafe {
                    let to = (to, strides.dest * step);
                    self.endpoint.remote_get_strided(pe, from, to, n);
                }
                continue;
            };
            let mut from = from.cast_const().wrapping_offset(before);
            for _ in 0..n {
                // SAFETY: by the caller; `n * n_pes` elements lie at these strides on each side.
                unsafe { put_bytes(to, from, size) };
                to = to.wrapping_offset(strides.dest * step);
                from = from.wrapping_offset(strides.source * step);
            }
        }
        if n > 0 {
            let span = ((blocks - 1) as isize * strides.dest + 1) * step;
            self.notify_self(dest, span.unsigned_abs());
        }
        self.rendezvous(&turn, call)
    }

    /// Combines the `n` elements of `size` bytes at all PEs' `source`s, element by element and in order of
    /// the PEs, into every PE's `dest`; all get the same bits. They may be the same. `combine(out, a, b, n)`
    /// sets `n` elements at `out` from those at `a` and `b`; `out` may be `a`.
    ///
    /// # Safety
    /// See the [module](self). `combine` is sound for valid pointers aligned to the element, or to 16 if
    /// that is less.
    pub(crate) unsafe fn reduce_bytes(
        &self,
        id: u64,
        dest: *mut u8,
        source: *const u8,
        size: usize,
        n: usize,
        combine: impl Fn(*mut u8, *const u8, *const u8, usize),
    ) -> Result<(), CollectiveError> {
        let bytes = n * size;
        let call = Call {
            kind: Kind::Reduce,
            parameter: id,
            bytes: bytes as u64,
        };
        let turn = self.turn(call.kind)?;
        if self.n_pes() == 1 || bytes <= SLOT_BYTES {
            let take = |from: Sources<'_, '_>| {
                if bytes == 0 {
                    return;
                }
                if self.n_pes() == 1 {
                    // SAFETY: by the caller.
                    unsafe { from.copy(0, 0, dest, bytes) };
                } else {
                    combine(dest, from.of(0), from.of(1), n);
                    for member in 2..self.n_pes() {
                        combine(dest, dest, from.of(member), n);
                    }
                }
                self.notify_self(dest, bytes);
            };
            // SAFETY: by the caller.
            return unsafe { self.exchange(&turn, call, source, bytes, true, take) };
        }
        // Each PE reduces its share for everyone. Of every share only its reducer reads sources and
        // writes destinations, and it reads a piece on all PEs before it writes it anywhere, so they may
        // be the same.
        self.rendezvous(&turn, call)?;
        let share = n.div_ceil(self.n_pes());
        let start = (self.my_pe() * share).min(n);
        let end = (start + share).min(n);
        let mut pieces = [const { Piece(MaybeUninit::uninit()) }; 3];
        let [piece, first, second] = pieces.each_mut().map(|p| ptr::from_mut(p).cast::<u8>());
        let most = (PIECE_BYTES / size).max(1);
        for at in (start..end).step_by(most) {
            let n = most.min(end - at);
            let (offset, bytes) = (at * size, n * size);
            // Where they can be read: those of other hosts in `piece`.
            let from = |member, piece: *mut u8| match self.peer_address(source, member) {
                Some(from) => from.wrapping_add(offset).cast_const(),
                None => {
                    // SAFETY: by the caller; a piece has room for `bytes`.
                    unsafe { self.fetch(source, offset, member, piece, bytes) };
                    piece.cast_const()
                }
            };
            combine(piece, from(0, first), from(1, second), n);
            for member in 2..self.n_pes() {
                combine(piece, piece, from(member, first), n);
            }
            for member in self.others_first() {
                let pe = self.world_pe(member);
                let Some(to) = self.peer_address(dest, member) else {
                    let position = self.endpoint.position(dest.addr()) + offset;
                    // SAFETY: the piece holds so many bytes.
                    unsafe { self.endpoint.remote_put(pe, position, piece, bytes) };
                    continue;
                };
                // SAFETY: by the caller; `at + n` elements are inside every PE's `dest`.
                unsafe { put_bytes(to.wrapping_add(offset), piece, bytes) };
                let mine = dest.addr() + offset;
                self.endpoint.notify_addr(mine, bytes, pe);
            }
        }
        // What went to other hosts is there before anyone leaves.
        self.endpoint.quiet();
        self.rendezvous(&turn, call)
    }
}

impl Team<'_> {
    /// As [`reduce_bytes`](Self::reduce_bytes), but each PE gets only what the PEs up to itself bring, or, if
    /// `exclusive`, those before it: the first PE's `dest` is then left as it is.
    ///
    /// # Safety
    /// As [`reduce_bytes`](Self::reduce_bytes).
    #[allow(clippy::too_many_arguments)] // those of the operation
    pub(crate) unsafe fn scan_bytes(
        &self,
        id: u64,
        dest: *mut u8,
        source: *const u8,
        size: usize,
        n: usize,
        exclusive: bool,
        combine: impl Fn(*mut u8, *const u8, *const u8, usize),
    ) -> Result<(), CollectiveError> {
        let call = Call {
            kind: Kind::Scan,
            parameter: id << 1 | u64::from(exclusive),
            bytes: (n * size) as u64,
        };
        let turn = self.turn(call.kind)?;
        let pes = self.my_pe() + usize::from(!exclusive);
        // Piece by piece through the slots, so that a `dest` that is `source` is written only once its old
        // values are elsewhere. Also with no elements there is a rendezvous.
        let most = (SLOT_BYTES / size).max(1);
        for at in (0..n.max(1)).step_by(most) {
            let n = most.min(n - at);
            let (dest, source) = (dest.wrapping_add(at * size), source.wrapping_add(at * size));
            let take = |from: Sources<'_, '_>| {
                if n == 0 || pes == 0 {
                    return;
                }
                // SAFETY: by the caller.
                unsafe { put_bytes(dest, from.of(0), n * size) };
                for member in 1..pes {
                    combine(dest, dest, from.of(member), n);
                }
                self.notify_self(dest, n * size);
            };
            // SAFETY: by the caller.
            unsafe { self.exchange(&turn, call, source, n * size, true, take)? };
        }
        Ok(())
    }
}

/// Elements of this many bytes at most can be reduced; a piece of them stays in the first-level cache.
pub(crate) const PIECE_BYTES: usize = 8192;

#[repr(align(64))]
struct Piece(#[allow(dead_code)] MaybeUninit<[u8; PIECE_BYTES]>); // used through its address

/// `n` elements at `out` from those at `a` and `b`. Other PEs may race with it only by breaking the rules
/// of collectives, and then any bits are a valid `T`.
pub(crate) fn combine<T: Pod, O: ReduceOp<T>>(out: *mut u8, a: *const u8, b: *const u8, n: usize) {
    let (out, a, b) = (out.cast::<T>(), a.cast::<T>(), b.cast::<T>());
    for i in 0..n {
        // SAFETY: only called by `reduce_bytes`, with `n` elements at each, whatever their alignment.
        unsafe {
            let value = O::apply(a.add(i).read_unaligned(), b.add(i).read_unaligned());
            out.add(i).write_unaligned(value);
        }
    }
}
