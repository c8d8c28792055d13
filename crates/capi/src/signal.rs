//! Signals.
#![allow(unsafe_code)] // addresses come from C, whose caller promises that they are what the function asks for

use crate::context::Context;
use crate::misuse;
use crate::wait;
use crate::world::{Name, bytes_of, enter};
use crosswarp_shmem::SignalOp;
use std::ffi::c_int;

fn operation(name: Name, op: c_int) -> SignalOp {
    match op {
        0 => SignalOp::Set,
        1 => SignalOp::Add,
        _ => misuse::end(
            name,
            format_args!("sig_op is {op}, neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD"),
        ),
    }
}

/// `shmem_put_signal`, `shmem_put_signal_nbi`.
#[allow(clippy::too_many_arguments)] // those of the function
#[inline]
pub(crate) unsafe fn put_signal<T>(
    name: Name,
    ctx: Context,
    dest: *mut T,
    source: *const T,
    nelems: usize,
    sig_addr: *mut u64,
    signal: u64,
    sig_op: c_int,
    pe: c_int,
) {
    let pe = ctx.world_pe(name, pe);
    let bytes = bytes_of::<T>(nelems);
    let me = enter(name, |check| {
        check.pe("pe", pe);
        check.symmetric("dest", dest, bytes);
        check.atomic("sig_addr", sig_addr);
    });
    let op = operation(name, sig_op);
    let raw = me.raw();
    // SAFETY: by the caller.
    unsafe { raw.put_signal(dest.cast(), source.cast(), bytes, sig_addr, signal, op, pe) };
}

unsafe fn change(
    name: Name,
    ctx: Context,
    sig_addr: *mut u64,
    signal: u64,
    op: SignalOp,
    pe: c_int,
) {
    let pe = ctx.world_pe(name, pe);
    let me = enter(name, |check| {
        check.pe("pe", pe);
        check.atomic("sig_addr", sig_addr);
    });
    // SAFETY: by the caller.
    unsafe { me.raw().signal(sig_addr, signal, op, pe) };
}

/// `shmem_signal_set` (1.6).
pub(crate) unsafe fn set(name: Name, ctx: Context, sig_addr: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: by the caller.
    unsafe { change(name, ctx, sig_addr, signal, SignalOp::Set, pe) };
}

/// `shmem_signal_add` (1.6).
pub(crate) unsafe fn add(name: Name, ctx: Context, sig_addr: *mut u64, signal: u64, pe: c_int) {
    // SAFETY: by the caller.
    unsafe { change(name, ctx, sig_addr, signal, SignalOp::Add, pe) };
}

/// `shmem_signal_fetch`.
pub(crate) unsafe fn fetch(name: Name, sig_addr: *const u64) -> u64 {
    let me = enter(name, |check| check.atomic("sig_addr", sig_addr));
    // SAFETY: by the caller.
    unsafe { me.raw().signal_fetch(sig_addr) }
}

/// `shmem_signal_wait_until`.
pub(crate) unsafe fn wait_until(name: Name, sig_addr: *mut u64, cmp: c_int, value: u64) -> u64 {
    // SAFETY: by the caller.
    unsafe { wait::wait(name, "sig_addr", sig_addr, cmp, value) }
}
