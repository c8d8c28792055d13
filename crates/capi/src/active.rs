//! Collectives of active sets: deprecated, kept for old programs.
//!
//! An active set is a team that need not be made first. The work arrays the program passes are left as
//! they are.
#![allow(unsafe_code)] // addresses come from C, whose caller promises that they are what the function asks for

use crate::collective::{check_arrays, done, root_of};
use crate::misuse;
use crate::reduce;
use crate::world::{self, Name, bytes_of, enter_unchecked};
use bytemuck::Pod;
use crosswarp_shmem::Team;
use crosswarp_shmem::op::{And, Max, Min, Or, Prod, ReduceOp, Sum, Xor};
use std::ffi::{c_int, c_long};

/// The set's team.
fn team(name: Name, start: c_int, log_stride: c_int, size: c_int) -> Team<'static> {
    let pe = enter_unchecked(name);
    let bad = |what: &dyn std::fmt::Display| -> ! {
        misuse::end(
            name,
            format_args!(
                "the active set PE_start {start}, logPE_stride {log_stride}, PE_size {size}: {what}"
            ),
        )
    };
    let Some(stride) = 1isize
        .checked_shl(log_stride as u32)
        .filter(|&stride| stride > 0)
    else {
        bad(&"no such stride");
    };
    let set = pe
        .raw()
        .active_set(world::number(start), stride, world::number(size));
    set.unwrap_or_else(|error| bad(&error))
}

/// `shmem_barrier`.
pub(crate) unsafe fn barrier(
    name: Name,
    start: c_int,
    log: c_int,
    size: c_int,
    _sync: *mut c_long,
) {
    done(name, team(name, start, log, size).barrier());
}

/// `shmem_sync`.
pub(crate) unsafe fn sync(name: Name, start: c_int, log: c_int, size: c_int, _sync: *mut c_long) {
    done(name, team(name, start, log, size).sync());
}

/// `shmem_broadcast32`, `64`: the root's destination is not written.
#[allow(clippy::too_many_arguments)] // those of the function
pub(crate) unsafe fn broadcast<T>(
    name: Name,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    root: c_int,
    start: c_int,
    log: c_int,
    size: c_int,
    _sync: *mut c_long,
) {
    check_arrays(name, dest, nelems, source, nelems);
    let team = team(name, start, log, size);
    let root = root_of(name, root, team.n_pes());
    let bytes = bytes_of::<T>(nelems);
    // SAFETY: by the caller.
    done(name, unsafe {
        team.broadcast_raw(dest.cast(), source.cast(), bytes, root, false)
    });
}

macro_rules! of_bytes {
    ($($(#[$doc:meta])* $name:ident $raw:ident),*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)] // those of the function
        pub(crate) unsafe fn $name<T>(
            name: Name, dest: *mut T, source: *const T, nelems: usize,
            start: c_int, log: c_int, size: c_int, _sync: *mut c_long,
        ) {
            check_arrays(name, dest, nelems, source, nelems);
            let team = team(name, start, log, size);
            let bytes = bytes_of::<T>(nelems);
            // SAFETY: by the caller.
            done(name, unsafe { team.$raw(dest.cast(), source.cast(), bytes) });
        }
    )*};
}
of_bytes!(
    /// `shmem_collect32`, `64`.
    collect collect_raw,
    /// `shmem_fcollect32`, `64`.
    fcollect fcollect_raw,
    /// `shmem_alltoall32`, `64`.
    alltoall alltoall_raw
);

/// `shmem_alltoalls32`, `64`.
#[allow(clippy::too_many_arguments)] // those of the function
pub(crate) unsafe fn alltoalls<T>(
    name: Name,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    start: c_int,
    log: c_int,
    size: c_int,
    _sync: *mut c_long,
) {
    check_arrays(name, dest, nelems.min(1), source, nelems.min(1));
    let team = team(name, start, log, size);
    // SAFETY: by the caller.
    let result =
        unsafe { team.alltoalls_raw(dest.cast(), source.cast(), dst, sst, size_of::<T>(), nelems) };
    done(name, result);
}

macro_rules! reductions {
    ($($name:ident $op:ident),*) => {$(
        #[doc = concat!("`shmem_", stringify!($name), "_to_all`.")]
        #[allow(clippy::too_many_arguments)] // those of the function
        pub(crate) unsafe fn $name<T: Pod>(
            name: Name, dest: *mut T, source: *const T, n: c_int,
            start: c_int, log: c_int, size: c_int, _work: *mut T, _sync: *mut c_long,
        ) where $op: ReduceOp<T> {
            let team = team(name, start, log, size);
            // SAFETY: by the caller.
            unsafe { reduce::over(name, &team, dest, source, n.max(0) as usize, $op) };
        }
    )*};
}
reductions!(and And, or Or, xor Xor, min Min, max Max, sum Sum, prod Prod);
