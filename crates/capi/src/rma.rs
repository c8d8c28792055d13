//! Put and get.
//!
//! A non-blocking put does what the blocking one does: it returns when the source may be reused anyway. Non-blocking
//! gets from other hosts are under way together; between mapped heaps there is nothing to overlap a copy with.
//!
//! The plain ones are inlined into the exported functions always: they are a few loads and a store.
#![allow(unsafe_code)] // addresses come from C, whose caller promises that they are what the function asks for

use crate::context::Context;
use crate::world::{self, Check, Name, bytes_of, enter, run};
use bytemuck::Pod;
use crosswarp_shmem::Pe;
use std::ffi::c_int;

/// `shmem_put`, `shmem_put_nbi`.
#[inline(always)]
pub(crate) unsafe fn put<T>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(name, pe);
    let bytes = bytes_of::<T>(nelems);
    let check = move |check: &Check| {
        check.pe("pe", pe);
        check.symmetric("dest", dest, bytes);
    };
    // SAFETY: by the caller.
    run(name, check, move |me| unsafe {
        me.raw().put(dest.cast(), source.cast(), bytes, pe)
    });
}

/// `shmem_get`.
#[inline(always)]
pub(crate) unsafe fn get<T>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(name, pe);
    let bytes = bytes_of::<T>(nelems);
    let check = move |check: &Check| {
        check.pe("pe", pe);
        check.symmetric("source", source, bytes);
    };
    // SAFETY: by the caller.
    run(name, check, move |me| unsafe {
        me.raw().get(dest.cast(), source.cast(), bytes, pe)
    });
}

/// `shmem_get_nbi`.
#[inline(always)]
pub(crate) unsafe fn get_nbi<T>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(name, pe);
    let bytes = bytes_of::<T>(nelems);
    let check = move |check: &Check| {
        check.pe("pe", pe);
        check.symmetric("source", source, bytes);
    };
    // SAFETY: by the caller, who leaves `dest` alone until a quiet, as the specification has it.
    run(name, check, move |me| unsafe {
        me.raw().get_nbi(dest.cast(), source.cast(), bytes, pe)
    });
}

/// `shmem_p`.
#[inline(always)]
pub(crate) unsafe fn p<T: Pod>(name: Name, ctx: Context, dest: *mut T, value: T, pe: c_int) {
    let pe = ctx.world_pe(name, pe);
    let check = move |check: &Check| {
        check.pe("pe", pe);
        check.symmetric("dest", dest, size_of::<T>());
    };
    // SAFETY: by the caller.
    run(name, check, move |me| unsafe {
        me.raw().p(dest, value, pe)
    });
}

/// `shmem_g`.
#[inline(always)]
pub(crate) unsafe fn g<T: Pod>(name: Name, ctx: Context, source: *const T, pe: c_int) -> T {
    let pe = ctx.world_pe(name, pe);
    let check = move |check: &Check| {
        check.pe("pe", pe);
        check.symmetric("source", source, size_of::<T>());
    };
    // SAFETY: by the caller.
    run(name, check, move |me| unsafe { me.raw().g(source, pe) })
}

/// Bytes from the first of `n` blocks of `block` elements, `stride` apart, to the end of the last; `usize::MAX`
/// for more than can be addressed.
fn span<T>(n: usize, stride: isize, block: usize) -> usize {
    match n {
        0 => 0,
        n => {
            let last = (n - 1).saturating_mul(stride.max(1) as usize);
            bytes_of::<T>(last.saturating_add(block))
        }
    }
}

/// `shmem_iput`.
#[allow(clippy::too_many_arguments)] // those of the function
#[inline]
pub(crate) unsafe fn iput<T: Pod>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(name, pe);
    let me = enter(name, |check| {
        check.pe("pe", pe);
        check.stride("dst", dst);
        check.stride("sst", sst);
        check.symmetric("dest", dest, span::<T>(nelems, dst, 1));
    });
    // SAFETY: by the caller.
    unsafe { me.raw().iput(dest, dst, source, sst, nelems, pe) };
}

/// `shmem_iget`.
#[allow(clippy::too_many_arguments)] // those of the function
#[inline]
pub(crate) unsafe fn iget<T: Pod>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    nelems: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(name, pe);
    let me = enter(name, |check| {
        check.pe("pe", pe);
        check.stride("dst", dst);
        check.stride("sst", sst);
        check.symmetric("source", source, span::<T>(nelems, sst, 1));
    });
    // SAFETY: by the caller.
    unsafe { me.raw().iget(dest, dst, source, sst, nelems, pe) };
}

/// Checks, whether checking is on or not, that the symmetric blocks lie in symmetric memory, as a single block is
/// checked, and that the other side's can be addressed.
fn check_blocks<T>(
    name: Name,
    me: &Pe,
    argument: Name,
    addr: *const T,
    bytes: usize,
    others: usize,
) {
    let bytes = if others > isize::MAX as usize {
        others
    } else {
        bytes
    };
    world::symmetric(name, me, argument, addr, bytes);
}

/// `shmem_ibput` (1.6): blocks of `bsize` elements, whose starts are the strides apart.
#[allow(clippy::too_many_arguments)] // those of the function
#[inline]
pub(crate) unsafe fn ibput<T>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(name, pe);
    let me = enter(name, |check| {
        check.pe("pe", pe);
        check.stride("dst", dst);
        check.stride("sst", sst);
        check.symmetric("dest", dest, span::<T>(nblocks, dst, bsize));
    });
    check_blocks(
        name,
        me,
        "dest",
        dest,
        span::<T>(nblocks, dst, bsize),
        span::<T>(nblocks, sst, bsize),
    );
    let bytes = bytes_of::<T>(bsize);
    for block in 0..nblocks as isize {
        // SAFETY: by the caller, who has `nblocks` blocks of `bsize` elements at these strides.
        unsafe {
            let (to, from) = (dest.offset(block * dst), source.offset(block * sst));
            me.raw().put(to.cast(), from.cast(), bytes, pe);
        }
    }
}

/// `shmem_ibget` (1.6).
#[allow(clippy::too_many_arguments)] // those of the function
#[inline]
pub(crate) unsafe fn ibget<T>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    bsize: usize,
    nblocks: usize,
    pe: c_int,
) {
    let pe = ctx.world_pe(name, pe);
    let me = enter(name, |check| {
        check.pe("pe", pe);
        check.stride("dst", dst);
        check.stride("sst", sst);
        check.symmetric("source", source, span::<T>(nblocks, sst, bsize));
    });
    check_blocks(
        name,
        me,
        "source",
        source,
        span::<T>(nblocks, sst, bsize),
        span::<T>(nblocks, dst, bsize),
    );
    let bytes = bytes_of::<T>(bsize);
    for block in 0..nblocks as isize {
        // SAFETY: as in `ibput`.
        unsafe {
            let (to, from) = (dest.offset(block * dst), source.offset(block * sst));
            me.raw().get(to.cast(), from.cast(), bytes, pe);
        }
    }
}
