//! Reductions and scans of teams. All return 0, or nonzero for an invalid team.
#![allow(unsafe_code)] // addresses come from C, whose caller promises that they are what the function asks for

use crate::collective::{check_arrays, done};
use crate::team::TeamHandle;
use crate::world::Name;
use bytemuck::Pod;
use crosswarp_shmem::Team;
use crosswarp_shmem::op::{And, Max, Min, Or, Prod, ReduceOp, Sum, Xor};
use std::ffi::c_int;

/// Reduces over `team`.
///
/// # Safety
/// As the functions': symmetric arrays of `n` elements.
pub(crate) unsafe fn over<T: Pod, O: ReduceOp<T>>(
    name: Name,
    team: &Team<'_>,
    dest: *mut T,
    source: *const T,
    n: usize,
    op: O,
) {
    check_arrays(name, dest, n, source, n);
    // SAFETY: by the caller.
    done(name, unsafe { team.reduce_op_raw(dest, source, n, op) });
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $op:ident),*) => {$(
        $(#[$doc])*
        pub(crate) unsafe fn $name<T: Pod>(
            name: Name, team: TeamHandle, dest: *mut T, source: *const T, n: usize,
        ) -> c_int where $op: ReduceOp<T> {
            match team.get(name) {
                Some(made) => {
                    // SAFETY: by the caller.
                    unsafe { over(name, &made.team, dest, source, n, $op) };
                    0
                }
                None => -1,
            }
        }
    )*};
}
reductions!(
    /// `shmem_and_reduce`.
    and And,
    /// `shmem_or_reduce`.
    or Or,
    /// `shmem_xor_reduce`.
    xor Xor,
    /// `shmem_min_reduce`.
    min Min,
    /// `shmem_max_reduce`.
    max Max,
    /// `shmem_sum_reduce`.
    sum Sum,
    /// `shmem_prod_reduce`.
    prod Prod
);

/// Sums over the PEs before this one (`exclusive`; none give zero) or up to it.
unsafe fn scan<T: Pod>(
    name: Name,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    n: usize,
    exclusive: bool,
) -> c_int
where
    Sum: ReduceOp<T>,
{
    let Some(made) = team.get(name) else {
        return -1;
    };
    check_arrays(name, dest, n, source, n);
    // SAFETY: by the caller.
    let result = unsafe { made.team.scan_op_raw(dest, source, n, exclusive, Sum) };
    done(name, result);
    if exclusive && made.team.my_pe() == 0 {
        // SAFETY: by the caller: `n` elements of this PE.
        unsafe { dest.write_bytes(0, n) };
    }
    0
}

/// `shmem_sum_inscan` (1.6): each PE gets the sum of the PEs up to itself.
pub(crate) unsafe fn sum_inscan<T: Pod>(
    name: Name,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> c_int
where
    Sum: ReduceOp<T>,
{
    // SAFETY: by the caller.
    unsafe { scan(name, team, dest, source, n, false) }
}

/// `shmem_sum_exscan` (1.6): each PE gets the sum of the PEs before itself, the first one zero.
pub(crate) unsafe fn sum_exscan<T: Pod>(
    name: Name,
    team: TeamHandle,
    dest: *mut T,
    source: *const T,
    n: usize,
) -> c_int
where
    Sum: ReduceOp<T>,
{
    // SAFETY: by the caller.
    unsafe { scan(name, team, dest, source, n, true) }
}
