//! Collectives by address.

use super::Raw;
use crate::team::collective::{PIECE_BYTES, Strides, combine};
use crate::team::error::CollectiveError;
use crate::team::{Team, TeamError};
use crate::verbs::op::ReduceOp;
use crate::world::control::SLOT_BYTES;
use bytemuck::Pod;

impl<'a> Raw<'a> {
    /// The team of the world's PEs `start`, `start + stride`, … (`size` of them): an *active set* of
    /// OpenSHMEM's older collectives. All its PEs call this in the same order as their other active sets;
    /// the first call makes the team, later ones find it. It needs no work arrays and is not destroyed.
    ///
    /// # Errors
    /// [`TeamError`]; [`TeamError::Shape`] also if this PE is not in the set.
    pub fn active_set(
        self,
        start: usize,
        stride: isize,
        size: usize,
    ) -> Result<Team<'a>, TeamError> {
        self.endpoint.active_set_team(start, stride, size)
    }
}

impl Team<'_> {
    /// Checks that all of `source` is symmetric, and of `dest` all if any is, once they are too long for slots.
    /// (Sizes that overflow come as `usize::MAX`.)
    ///
    /// # Panics
    /// If they are not.
    #[inline]
    fn check_range(&self, dest: *const u8, dest_bytes: usize, source: *const u8, bytes: usize) {
        for (addr, bytes, always) in [
            (source.addr(), bytes, true),
            (dest.addr(), dest_bytes, false),
        ] {
            let concerned =
                always || bytes > isize::MAX as usize || self.endpoint.is_symmetric(addr, 1);
            if bytes > SLOT_BYTES && concerned && !self.endpoint.is_symmetric(addr, bytes) {
                self.endpoint.bytes_not_symmetric(addr, bytes);
            }
        }
    }
}

/// Collectives of a team by address, for [`raw`](crate::verbs::raw). `dest` and `source` are symmetric and do not
/// overlap unless a function allows them to be the same. Sizes are equal on all PEs, but for
/// [`collect_raw`](Self::collect_raw).
///
/// # Errors
/// All return [`CollectiveError`].
impl Team<'_> {
    /// `bytes` bytes of PE `root`'s `source` to every PE's `dest`; to the root's own only if `at_root`. They
    /// may be the same.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Safety
    /// See [`raw`](crate::verbs::raw).
    ///
    /// # Panics
    /// If `root` does not exist.
    pub unsafe fn broadcast_raw(
        &self,
        dest: *mut u8,
        source: *const u8,
        bytes: usize,
        root: usize,
        at_root: bool,
    ) -> Result<(), CollectiveError> {
        self.world_pe(root);
        self.check_range(dest, bytes, source, bytes);
        // SAFETY: by the caller.
        unsafe { self.broadcast_bytes(dest, source, bytes, root, at_root) }
    }

    /// All PEs' `bytes` bytes one after the other, to every PE's `dest`. `bytes` may differ between PEs.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Safety
    /// See [`raw`](crate::verbs::raw); `dest` has room for the bytes of all.
    pub unsafe fn collect_raw(
        &self,
        dest: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<(), CollectiveError> {
        self.check_range(dest, bytes, source, bytes);
        let room = self
            .endpoint
            .symmetric_from(dest.addr())
            .unwrap_or(isize::MAX as usize);
        // SAFETY: by the caller.
        let total = unsafe { self.collect_bytes(dest, room, source, bytes)? };
        if total > room {
            return Err(CollectiveError::Room {
                me: self.endpoint.my_pe(),
                total,
                dest: room,
            });
        }
        Ok(())
    }

    /// All PEs' `bytes` bytes one after the other, to every PE's `dest`.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Safety
    /// See [`raw`](crate::verbs::raw).
    pub unsafe fn fcollect_raw(
        &self,
        dest: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<(), CollectiveError> {
        self.check_range(dest, bytes.saturating_mul(self.n_pes()), source, bytes);
        // SAFETY: by the caller.
        unsafe { self.fcollect_bytes(dest, source, bytes) }
    }

    /// Block `j` of PE `i`'s `source` to block `i` of PE `j`'s `dest`, blocks of `bytes` bytes.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Safety
    /// See [`raw`](crate::verbs::raw).
    pub unsafe fn alltoall_raw(
        &self,
        dest: *mut u8,
        source: *const u8,
        bytes: usize,
    ) -> Result<(), CollectiveError> {
        let all = bytes.saturating_mul(self.n_pes());
        self.check_range(dest, all, source, all);
        // SAFETY: by the caller.
        unsafe { self.alltoall_bytes(dest, source, bytes) }
    }

    /// As [`alltoall_raw`](Self::alltoall_raw) with blocks of `n` elements of `size` bytes; elements lie
    /// `dest_stride` and `source_stride` elements apart, also across blocks.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Safety
    /// See [`raw`](crate::verbs::raw).
    pub unsafe fn alltoalls_raw(
        &self,
        dest: *mut u8,
        source: *const u8,
        dest_stride: isize,
        source_stride: isize,
        size: usize,
        n: usize,
    ) -> Result<(), CollectiveError> {
        // From the first element to the last.
        let reach = |stride: isize| {
            let steps = n.saturating_mul(self.n_pes()).saturating_sub(1);
            let last = steps.saturating_mul(stride.unsigned_abs());
            last.saturating_add(usize::from(n > 0)).saturating_mul(size)
        };
        self.check_range(dest, reach(dest_stride), source, reach(source_stride));
        let strides = Strides {
            dest: dest_stride,
            source: source_stride,
        };
        // SAFETY: by the caller.
        unsafe { self.alltoalls_bytes(dest, source, strides, size, n) }
    }

    /// Combines all PEs' `n` elements of `size` bytes, element by element in rank order, into every PE's
    /// `dest`; it may be `source`. `combine(out, a, b, n)` sets the `n` elements at `out` to those at `a`
    /// combined with those at `b`; `out` may be `a`. `id` (below 2^56) tells operation and type, so that a
    /// mismatch between PEs is seen.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Safety
    /// See [`raw`](crate::verbs::raw). `combine` is sound for pointers to `n` elements aligned as the callers' are,
    /// or to 16 bytes if that is less.
    ///
    /// # Panics
    /// If an element has more than 8192 bytes or none.
    #[inline]
    pub unsafe fn reduce_raw(
        &self,
        id: u64,
        dest: *mut u8,
        source: *const u8,
        size: usize,
        n: usize,
        combine: impl Fn(*mut u8, *const u8, *const u8, usize),
    ) -> Result<(), CollectiveError> {
        assert!(
            (1..=PIECE_BYTES).contains(&size),
            "elements of {size} bytes"
        );
        let bytes = n.saturating_mul(size);
        self.check_range(dest, bytes, source, bytes);
        // SAFETY: by the caller.
        unsafe { self.reduce_bytes(id, dest, source, size, n, combine) }
    }

    /// As [`reduce_raw`](Self::reduce_raw) over the PEs up to this one only, or, if `exclusive`, those before
    /// it: the first PE's `dest` is then left as it is.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Safety
    /// As [`reduce_raw`](Self::reduce_raw); `id` is below 2^55.
    ///
    /// # Panics
    /// If an element has more than 4096 bytes or none.
    #[allow(clippy::too_many_arguments)] // those of the operation
    pub unsafe fn scan_raw(
        &self,
        id: u64,
        dest: *mut u8,
        source: *const u8,
        size: usize,
        n: usize,
        exclusive: bool,
        combine: impl Fn(*mut u8, *const u8, *const u8, usize),
    ) -> Result<(), CollectiveError> {
        assert!((1..=SLOT_BYTES).contains(&size), "elements of {size} bytes");
        let bytes = n.saturating_mul(size);
        self.check_range(dest, bytes, source, bytes);
        // SAFETY: by the caller.
        unsafe { self.scan_bytes(id, dest, source, size, n, exclusive, combine) }
    }

    /// [`reduce_raw`](Self::reduce_raw) with a known operation on a known type.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Safety
    /// See [`raw`](crate::verbs::raw).
    #[inline]
    pub unsafe fn reduce_op_raw<T: Pod, O: ReduceOp<T>>(
        &self,
        dest: *mut T,
        source: *const T,
        n: usize,
        op: O,
    ) -> Result<(), CollectiveError> {
        let _: O = op; // Its type says all.
        const { assert!(size_of::<T>() > 0 && size_of::<T>() <= PIECE_BYTES) };
        let (id, size) = (u64::from(O::ID), size_of::<T>());
        let combine = combine::<T, O>;
        let bytes = n.saturating_mul(size);
        self.check_range(dest.cast(), bytes, source.cast(), bytes);
        // SAFETY: by the caller; `combine` takes any alignment.
        unsafe { self.reduce_bytes(id, dest.cast(), source.cast(), size, n, combine) }
    }

    /// [`scan_raw`](Self::scan_raw) with a known operation on a known type.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    ///
    /// # Safety
    /// See [`raw`](crate::verbs::raw).
    pub unsafe fn scan_op_raw<T: Pod, O: ReduceOp<T>>(
        &self,
        dest: *mut T,
        source: *const T,
        n: usize,
        exclusive: bool,
        op: O,
    ) -> Result<(), CollectiveError> {
        let _: O = op; // Its type says all.
        let (id, to, from) = (u64::from(O::ID), dest.cast(), source.cast());
        // SAFETY: by the caller; `combine` takes any alignment.
        unsafe { self.scan_raw(id, to, from, size_of::<T>(), n, exclusive, combine::<T, O>) }
    }
}
