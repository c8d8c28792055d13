//! Reductions and scans of teams. All return 0, or nonzero for an invalid team.
#![allow(unsafe_code)] // addresses come from C, whose caller promises that they are what the function asks for

use crate::collective::{check_arrays, done};
use crate::element::{And, Combine, Max, Min, Or, Prod, Sum, Xor};
use crate::team::TeamHandle;
use crate::world::Name;
use bytemuck::Pod;
use crosswarp_shmem::Team;
use std::ffi::c_int;

/// `out[i] = a[i] ∘ b[i]` for `n` elements; `out` may be `a`.
///
/// # Safety
/// Three arrays of `n` elements.
pub(crate) unsafe fn combine<T: Pod, O: Combine<T>>(
    out: *mut u8,
    a: *const u8,
    b: *const u8,
    n: usize,
) {
    let (out, a, b) = (out.cast::<T>(), a.cast::<T>(), b.cast::<T>());
    for i in 0..n {
        // SAFETY: by the caller; pieces of a reduction may begin anywhere.
        unsafe {
            let value = O::combine(a.add(i).read_unaligned(), b.add(i).read_unaligned());
            out.add(i).write_unaligned(value);
        }
    }
}

/// Reduces over `team`.
///
/// # Safety
/// As the functions': symmetric arrays of `n` elements.
pub(crate) unsafe fn over<T: Pod, O: Combine<T>>(
    name: Name,
    team: &Team<'_>,
    dest: *mut T,
    source: *const T,
    n: usize,
) {
    check_arrays(name, dest, n, source, n);
    // SAFETY: by the caller; `combine` takes what `reduce_raw` passes.
    let result = unsafe {
        team.reduce_raw(
            O::CODE,
            dest.cast(),
            source.cast(),
            size_of::<T>(),
            n,
            |out, a, b, n| {
                combine::<T, O>(out, a, b, n);
            },
        )
    };
    done(name, result);
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $op:ident),*) => {$(
        $(#[$doc])*
        pub(crate) unsafe fn $name<T: Pod>(
            name: Name, team: TeamHandle, dest: *mut T, source: *const T, n: usize,
        ) -> c_int where $op: Combine<T> {
            match team.get(name) {
                Some(made) => {
                    // SAFETY: by the caller.
                    unsafe { over::<T, $op>(name, &made.team, dest, source, n) };
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
    Sum: Combine<T>,
{
    let Some(made) = team.get(name) else {
        return -1;
    };
    check_arrays(name, dest, n, source, n);
    let (to, from, size) = (dest.cast(), source.cast(), size_of::<T>());
    // SAFETY: as in `over`.
    let result = unsafe {
        made.team
            .scan_raw(Sum::CODE, to, from, size, n, exclusive, |out, a, b, n| {
                combine::<T, Sum>(out, a, b, n);
            })
    };
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
    Sum: Combine<T>,
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
    Sum: Combine<T>,
{
    // SAFETY: by the caller.
    unsafe { scan(name, team, dest, source, n, true) }
}
