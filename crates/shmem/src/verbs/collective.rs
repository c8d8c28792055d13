//! Collectives over a team: everyone calls, in the same order, and everyone gets the answer.
#![allow(unsafe_code)] // hands checked ranges of the heap to the functions over addresses

use crate::memory::symmetric::SymRef;
use crate::team::Team;
use crate::team::collective::{PIECE_BYTES, Strides, combine};
use crate::team::collective_call::{Call, Kind};
use crate::team::error::CollectiveError;
use crate::verbs::op::ReduceOp;
use crate::world::control::SLOT_BYTES;
use crate::world::pe::Pe;
use bytemuck::Pod;

impl Pe {
    /// Waits until every PE has come here with the same two numbers: how collectives of other kinds of
    /// memory check that all PEs make the same call. `parameter` below 2^56.
    ///
    /// Memory ordering: as [`sync`](Self::sync).
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn agree(&self, parameter: u64, bytes: u64) -> Result<(), CollectiveError> {
        self.endpoint.rendezvous(Kind::Agree, parameter, bytes)
    }

    /// Completes this PE's puts and waits until every PE has come here.
    ///
    /// Memory ordering: what any PE wrote or put before is visible to every PE after.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn barrier(&self) -> Result<(), CollectiveError> {
        self.world().barrier()
    }

    /// Waits until every PE has come here, without completing puts.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn sync(&self) -> Result<(), CollectiveError> {
        self.world().sync()
    }
}

/// The collectives; see [`Team`](Team#collectives) for what holds for all of them.
impl Team<'_> {
    /// See [`Pe::barrier`].
    ///
    /// # Errors
    /// See [`CollectiveError`].
    #[inline]
    pub fn barrier(&self) -> Result<(), CollectiveError> {
        self.endpoint.quiet();
        if self.endpoint.remote.is_some() {
            self.endpoint.can_deliver()?;
        }
        self.rendezvous(&self.turn(Kind::Barrier)?, bare(Kind::Barrier))
    }

    /// See [`Pe::sync`].
    ///
    /// # Errors
    /// See [`CollectiveError`].
    #[inline]
    pub fn sync(&self) -> Result<(), CollectiveError> {
        self.rendezvous(&self.turn(Kind::Sync)?, bare(Kind::Sync))
    }

    /// Copies `source` on PE `root` into `dest` on every PE, the root included. They may be the same
    /// object, but not overlap in part.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Panics
    /// If `root` does not exist.
    pub fn broadcast<'d, 's, T: Pod>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
        root: usize,
    ) -> Result<(), CollectiveError> {
        let (dest, source) = (dest.into(), source.into());
        // Panics for a root that does not exist.
        self.world_pe(root);
        self.check_length(Kind::Broadcast, dest.len(), source.len())?;
        let (to, from) = (self.mine(dest), self.mine(source));
        // SAFETY: `mine` checked both ranges, of equal length.
        unsafe { self.broadcast_bytes(to, from, bytes(source), root, true) }
    }

    /// Concatenates the `source`s of all PEs in rank order into `dest` on every PE.
    /// `dest` has [`n_pes`](Self::n_pes) times as many elements as `source`. They must not overlap, or
    /// the result is unspecified.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn fcollect<'d, 's, T: Pod>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
    ) -> Result<(), CollectiveError> {
        let (dest, source) = (dest.into(), source.into());
        self.check_length(
            Kind::Fcollect,
            dest.len(),
            source.len().saturating_mul(self.n_pes()),
        )?;
        let (to, from) = (self.mine(dest), self.mine(source));
        // SAFETY: `mine` checked both ranges, and `dest` has room for all.
        unsafe { self.fcollect_bytes(to, from, bytes(source)) }
    }

    /// Concatenates the `source`s of all PEs in rank order into the beginning of `dest` on every PE, and
    /// returns how many elements that is. Lengths of the sources may differ, 0 included; `dest` has room
    /// for all. They must not overlap, or the result is unspecified.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn collect<'d, 's, T: Pod>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
    ) -> Result<usize, CollectiveError> {
        let (dest, source) = (dest.into(), source.into());
        let (to, from) = (self.mine(dest), self.mine(source));
        // SAFETY: `mine` checked both ranges, and on the other PEs theirs; `dest` has the room told.
        let total = unsafe { self.collect_bytes(to, bytes(dest), from, bytes(source))? };
        let total = total / size_of::<T>().max(1);
        if total > dest.len() {
            return Err(CollectiveError::Room {
                me: self.endpoint.my_pe(),
                total,
                dest: dest.len(),
            });
        }
        Ok(total)
    }

    /// Block `j` of PE `i`'s `source` becomes block `i` of PE `j`'s `dest`. Both have the same number
    /// of elements, a multiple of [`n_pes`](Self::n_pes). They must not overlap, or the result is
    /// unspecified.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn alltoall<'d, 's, T: Pod>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
    ) -> Result<(), CollectiveError> {
        let (dest, source) = (dest.into(), source.into());
        let n = source.len() / self.n_pes();
        self.check_length(Kind::Alltoall, source.len(), n * self.n_pes())?;
        self.check_length(Kind::Alltoall, dest.len(), source.len())?;
        let (to, from) = (self.mine(dest), self.mine(source));
        // SAFETY: `mine` checked both ranges, of `n` elements for each PE.
        unsafe { self.alltoall_bytes(to, from, n * size_of::<T>()) }
    }

    /// As [`alltoall`](Self::alltoall) with blocks of `n` elements, of which those of `dest` lie
    /// `dest_stride` apart and those of `source` `source_stride` (in elements, at least 1): block `i` begins
    /// at element `i * n * stride`.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Panics
    /// If a stride is 0.
    pub fn alltoalls<'d, 's, T: Pod>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        dest_stride: usize,
        source: impl Into<SymRef<'s, T>>,
        source_stride: usize,
        n: usize,
    ) -> Result<(), CollectiveError> {
        assert!(dest_stride > 0 && source_stride > 0, "a stride of 0");
        let (dest, source) = (dest.into(), source.into());
        let needed = |stride: usize| match n.checked_mul(self.n_pes()) {
            Some(0) => 0,
            all => all
                .and_then(|all| (all - 1).checked_mul(stride)?.checked_add(1))
                .unwrap_or(usize::MAX),
        };
        for (object, stride) in [(dest, dest_stride), (source, source_stride)] {
            let (len, needed) = (object.len(), needed(stride));
            self.check_length(Kind::Alltoalls, len.min(needed), needed)?;
        }
        let (to, from) = (self.mine(dest), self.mine(source));
        // Elements fit the memory, so strides fit as well.
        let strides = Strides {
            dest: dest_stride as isize,
            source: source_stride as isize,
        };
        // SAFETY: `mine` checked both ranges, and `needed` that they reach to the last element.
        unsafe { self.alltoalls_bytes(to, from, strides, size_of::<T>(), n) }
    }

    /// Combines the `source`s of all PEs element by element, in rank order, into `dest` on every PE;
    /// all PEs get the same bits. `dest` and `source` may be the same object, but not overlap in part.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn reduce<'d, 's, T: Pod, O: ReduceOp<T>>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
        op: O,
    ) -> Result<(), CollectiveError> {
        let _: O = op; // Its type says all.
        // Larger elements would not fit what the sums are kept in.
        const { assert!(size_of::<T>() <= PIECE_BYTES, "elements of more than 8 KiB") };
        let (dest, source) = (dest.into(), source.into());
        self.check_length(Kind::Reduce, dest.len(), source.len())?;
        let (to, from) = (self.mine(dest), self.mine(source));
        // SAFETY: `mine` checked both ranges, of equal length; `combine` uses what it is given.
        unsafe {
            self.reduce_bytes(
                u64::from(O::ID),
                to,
                from,
                size_of::<T>(),
                source.len(),
                combine::<T, O>,
            )
        }
    }

    /// Combines element by element, in rank order, the `source`s of the PEs up to and including this one,
    /// into this PE's `dest`. They may be the same object, but not overlap in part.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn inscan<'d, 's, T: Pod, O: ReduceOp<T>>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
        op: O,
    ) -> Result<(), CollectiveError> {
        let _: O = op; // Its type says all.
        self.scan::<T, O>(dest.into(), source.into(), false)
    }

    /// As [`inscan`](Self::inscan), without this PE's own `source`. The `dest` of the team's first PE is left
    /// as it is.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn exscan<'d, 's, T: Pod, O: ReduceOp<T>>(
        &self,
        dest: impl Into<SymRef<'d, T>>,
        source: impl Into<SymRef<'s, T>>,
        op: O,
    ) -> Result<(), CollectiveError> {
        let _: O = op; // Its type says all.
        self.scan::<T, O>(dest.into(), source.into(), true)
    }

    fn scan<T: Pod, O: ReduceOp<T>>(
        &self,
        dest: SymRef<'_, T>,
        source: SymRef<'_, T>,
        exclusive: bool,
    ) -> Result<(), CollectiveError> {
        const {
            assert!(
                size_of::<T>() > 0 && size_of::<T>() <= SLOT_BYTES,
                "too large to scan"
            )
        };
        self.check_length(Kind::Scan, dest.len(), source.len())?;
        let (to, from) = (self.mine(dest), self.mine(source));
        let (id, size, n) = (u64::from(O::ID), size_of::<T>(), source.len());
        // SAFETY: `mine` checked both ranges, of equal length.
        unsafe { self.scan_bytes(id, to, from, size, n, exclusive, combine::<T, O>) }
    }

    /// Lengths are part of the call, so a PE with a wrong one is in the same call as the others, or
    /// they see the mismatch; it still has to come to the rendezvous.
    fn check_length(&self, kind: Kind, dest: usize, needed: usize) -> Result<(), CollectiveError> {
        if dest == needed {
            return Ok(());
        }
        // A call no other PE makes unless it errs in the same way.
        let call = Call {
            kind,
            parameter: u64::MAX >> 8,
            bytes: dest as u64,
        };
        self.rendezvous(&self.turn(kind)?, call)?;
        Err(CollectiveError::Length { kind, dest, needed })
    }

    /// Where my own part of `object` is.
    fn mine<T: Pod>(&self, object: SymRef<'_, T>) -> *mut u8 {
        self.endpoint.own(object).cast()
    }
}

fn bare(kind: Kind) -> Call {
    Call {
        kind,
        parameter: 0,
        bytes: 0,
    }
}

fn bytes<T: Pod>(object: SymRef<'_, T>) -> usize {
    object.len() * size_of::<T>()
}
