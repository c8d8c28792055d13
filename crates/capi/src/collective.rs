//! Collectives of teams. All return 0, or nonzero for an invalid team.
#![allow(unsafe_code)] // addresses come from C, whose caller promises that they are what the function asks for

use crate::misuse;
use crate::team::TeamHandle;
use crate::world::{self, Name, bytes_of, enter, enter_unchecked};
use crosswarp_shmem::{CollectiveError, Team};
use std::ffi::c_int;

/// A collective that did not come about (a PE is in another one, or gone) ends the process.
pub(crate) fn done(name: Name, result: Result<(), CollectiveError>) {
    if let Err(error) = result {
        misuse::end(name, format_args!("{error}"));
    }
}

/// Runs `call` on the team behind `team`.
#[inline]
fn on(
    name: Name,
    team: TeamHandle,
    call: impl FnOnce(&Team<'static>) -> Result<(), CollectiveError>,
) -> c_int {
    match team.get(name) {
        Some(made) => {
            done(name, call(&made.team));
            0
        }
        None => -1,
    }
}

/// Checks that both arrays are symmetric.
#[inline(always)]
pub(crate) fn check_arrays<T>(
    name: Name,
    dest: *const T,
    dest_n: usize,
    source: *const T,
    source_n: usize,
) {
    enter(name, |check| {
        check.symmetric("dest", dest, bytes_of::<T>(dest_n));
        check.symmetric("source", source, bytes_of::<T>(source_n));
    });
}

/// Elements from the first to the last of `n` that are `stride` apart.
fn stride_span(n: usize, stride: isize) -> usize {
    match n {
        0 => 0,
        n => (n - 1)
            .saturating_mul(stride.max(1) as usize)
            .saturating_add(1),
    }
}

/// `shmem_barrier_all`.
#[inline]
pub(crate) unsafe fn barrier_all(name: Name) {
    done(name, enter_unchecked(name).barrier());
}

/// `shmem_sync_all`.
#[inline]
pub(crate) unsafe fn sync_all(name: Name) {
    done(name, enter_unchecked(name).sync());
}

/// `shmem_team_sync`.
pub(crate) unsafe fn team_sync(name: Name, team: TeamHandle) -> c_int {
    on(name, team, Team::sync)
}

/// `shmem_broadcast` of teams: the root's destination is written too.
pub(crate) unsafe fn broadcast<T>(
    name: Name,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    root: c_int,
) -> c_int {
    on(name, team, |team| {
        check_arrays(name, dest, nelems, source, nelems);
        let root = root_of(name, root, team.n_pes());
        // SAFETY: by the caller.
        unsafe {
            team.broadcast_raw(
                dest.cast(),
                source.cast(),
                bytes_of::<T>(nelems),
                root,
                true,
            )
        }
    })
}

/// The root's number in the team.
pub(crate) fn root_of(name: Name, root: c_int, n: usize) -> usize {
    let number = world::number(root);
    if number >= n {
        misuse::end(
            name,
            format_args!("PE_root is {root}, but there are PEs 0 to {}", n - 1),
        );
    }
    number
}

/// `shmem_collect`: parts may differ in length.
pub(crate) unsafe fn collect<T>(
    name: Name,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    on(name, team, |team| {
        check_arrays(name, dest, nelems, source, nelems);
        // SAFETY: by the caller.
        unsafe { team.collect_raw(dest.cast(), source.cast(), bytes_of::<T>(nelems)) }
    })
}

/// `shmem_fcollect`.
pub(crate) unsafe fn fcollect<T>(
    name: Name,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    on(name, team, |team| {
        let n = team.n_pes();
        check_arrays(name, dest, nelems.saturating_mul(n), source, nelems);
        // SAFETY: by the caller.
        unsafe { team.fcollect_raw(dest.cast(), source.cast(), bytes_of::<T>(nelems)) }
    })
}

/// `shmem_alltoall`: `nelems` for each PE.
pub(crate) unsafe fn alltoall<T>(
    name: Name,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    nelems: usize,
) -> c_int {
    on(name, team, |team| {
        let n = team.n_pes();
        check_arrays(
            name,
            dest,
            nelems.saturating_mul(n),
            source,
            nelems.saturating_mul(n),
        );
        // SAFETY: by the caller.
        unsafe { team.alltoall_raw(dest.cast(), source.cast(), bytes_of::<T>(nelems)) }
    })
}

/// `shmem_alltoalls`: `nelems` for each PE, with strides.
pub(crate) unsafe fn alltoalls<T>(
    name: Name,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
) -> c_int {
    on(name, team, |team| {
        let n = team.n_pes();
        check_arrays(
            name,
            dest,
            stride_span(nelems.saturating_mul(n), dst),
            source,
            stride_span(nelems.saturating_mul(n), sst),
        );
        // SAFETY: by the caller.
        unsafe { team.alltoalls_raw(dest.cast(), source.cast(), dst, sst, size_of::<T>(), nelems) }
    })
}
