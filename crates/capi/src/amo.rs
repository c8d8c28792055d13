//! Atomics.
//!
//! The non-blocking fetching ones store the result at once, or, of another host's word, by the next quiet.
#![allow(unsafe_code)] // addresses come from C, whose caller promises that they are what the function asks for

use crate::context::Context;
use crate::world::{Check, Name, run};
use crosswarp_shmem::{AtomicInt, AtomicValue, Pe};
use std::ffi::c_int;

/// Runs `op` with the PE that issues and the number of the one accessed.
#[inline(always)]
fn on<T, R>(
    name: Name,
    ctx: Context,
    argument: Name,
    addr: *const T,
    pe: c_int,
    op: impl FnOnce(&'static Pe, usize) -> R,
) -> R {
    let pe = ctx.world_pe(name, pe);
    let check = move |check: &Check| {
        check.pe("pe", pe);
        check.atomic(argument, addr);
    };
    run(name, check, move |me| op(me, pe))
}

/// `shmem_atomic_fetch`.
#[inline(always)]
pub(crate) unsafe fn fetch<T: AtomicValue>(
    name: Name,
    ctx: Context,
    source: *const T,
    pe: c_int,
) -> T {
    // SAFETY: by the caller.
    on(name, ctx, "source", source, pe, move |me, pe| unsafe {
        me.raw().atomic_fetch(source, pe)
    })
}

/// `shmem_atomic_set`.
#[inline(always)]
pub(crate) unsafe fn set<T: AtomicValue>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    value: T,
    pe: c_int,
) {
    // SAFETY: by the caller.
    on(name, ctx, "dest", dest, pe, move |me, pe| unsafe {
        me.raw().atomic_set(dest, value, pe)
    });
}

/// `shmem_atomic_swap`.
#[inline(always)]
pub(crate) unsafe fn swap<T: AtomicValue>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    value: T,
    pe: c_int,
) -> T {
    // SAFETY: by the caller.
    on(name, ctx, "dest", dest, pe, move |me, pe| unsafe {
        me.raw().atomic_swap(dest, value, pe)
    })
}

/// `shmem_atomic_compare_swap`.
#[inline(always)]
pub(crate) unsafe fn compare_swap<T: AtomicInt>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
) -> T {
    // SAFETY: by the caller.
    on(name, ctx, "dest", dest, pe, move |me, pe| unsafe {
        me.raw().atomic_compare_swap(dest, cond, value, pe)
    })
}

/// `shmem_atomic_fetch_nbi`.
#[inline(always)]
pub(crate) unsafe fn fetch_nbi<T: AtomicValue>(
    name: Name,
    ctx: Context,
    fetched: *mut T,
    source: *const T,
    pe: c_int,
) {
    // SAFETY: by the caller, who leaves `fetched` alone until a quiet, as the specification has it.
    on(name, ctx, "source", source, pe, move |me, pe| unsafe {
        me.raw().atomic_fetch_nbi(fetched, source, pe)
    });
}

/// `shmem_atomic_swap_nbi`.
#[inline(always)]
pub(crate) unsafe fn swap_nbi<T: AtomicValue>(
    name: Name,
    ctx: Context,
    fetched: *mut T,
    dest: *mut T,
    value: T,
    pe: c_int,
) {
    // SAFETY: as in `fetch_nbi`.
    on(name, ctx, "dest", dest, pe, move |me, pe| unsafe {
        me.raw().atomic_swap_nbi(fetched, dest, value, pe)
    });
}

/// `shmem_atomic_compare_swap_nbi`.
#[inline(always)]
pub(crate) unsafe fn compare_swap_nbi<T: AtomicInt>(
    name: Name,
    ctx: Context,
    fetched: *mut T,
    dest: *mut T,
    cond: T,
    value: T,
    pe: c_int,
) {
    // SAFETY: as in `fetch_nbi`.
    on(name, ctx, "dest", dest, pe, move |me, pe| unsafe {
        me.raw()
            .atomic_compare_swap_nbi(fetched, dest, cond, value, pe)
    });
}

/// The three forms of each operation with an operand.
macro_rules! with_operand {
    ($($fetching:ident $plain:ident $nbi:ident $raw:ident $raw_plain:ident $raw_nbi:ident),* $(,)?) => {$(
        #[inline(always)]
        pub(crate) unsafe fn $fetching<T: AtomicInt>(
            name: Name, ctx: Context, dest: *mut T, value: T, pe: c_int,
        ) -> T {
            // SAFETY: by the caller.
            on(name, ctx, "dest", dest, pe, move |me, pe| unsafe { me.raw().$raw(dest, value, pe) })
        }

        #[inline(always)]
        pub(crate) unsafe fn $plain<T: AtomicInt>(
            name: Name, ctx: Context, dest: *mut T, value: T, pe: c_int,
        ) {
            // SAFETY: by the caller.
            on(name, ctx, "dest", dest, pe, move |me, pe| unsafe { me.raw().$raw_plain(dest, value, pe) });
        }

        #[inline(always)]
        pub(crate) unsafe fn $nbi<T: AtomicInt>(
            name: Name, ctx: Context, fetched: *mut T, dest: *mut T, value: T, pe: c_int,
        ) {
            // SAFETY: as in `fetch_nbi`.
            on(name, ctx, "dest", dest, pe, move |me, pe| unsafe { me.raw().$raw_nbi(fetched, dest, value, pe) });
        }
    )*};
}
with_operand!(
    fetch_add add fetch_add_nbi atomic_fetch_add atomic_add atomic_fetch_add_nbi,
    fetch_and and fetch_and_nbi atomic_fetch_and atomic_and atomic_fetch_and_nbi,
    fetch_or or fetch_or_nbi atomic_fetch_or atomic_or atomic_fetch_or_nbi,
    fetch_xor xor fetch_xor_nbi atomic_fetch_xor atomic_xor atomic_fetch_xor_nbi,
);

/// `shmem_atomic_fetch_inc`.
#[inline(always)]
pub(crate) unsafe fn fetch_inc<T: AtomicInt>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    pe: c_int,
) -> T {
    // SAFETY: by the caller.
    unsafe { fetch_add(name, ctx, dest, T::ONE, pe) }
}

/// `shmem_atomic_inc`.
#[inline(always)]
pub(crate) unsafe fn inc<T: AtomicInt>(name: Name, ctx: Context, dest: *mut T, pe: c_int) {
    // SAFETY: by the caller.
    unsafe { add(name, ctx, dest, T::ONE, pe) };
}

/// `shmem_atomic_fetch_inc_nbi`.
#[inline(always)]
pub(crate) unsafe fn fetch_inc_nbi<T: AtomicInt>(
    name: Name,
    ctx: Context,
    fetched: *mut T,
    dest: *mut T,
    pe: c_int,
) {
    // SAFETY: as in `fetch_nbi`.
    unsafe { fetch_add_nbi(name, ctx, fetched, dest, T::ONE, pe) };
}
