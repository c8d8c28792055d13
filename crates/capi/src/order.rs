//! Fence and quiet.
//!
//! What this process has issued is ordered and completed for all contexts at once, so a context decides
//! only whether anything is done at all: nothing on one that is not valid.
#![allow(unsafe_code)] // `pe_quiet` takes an array from C, which it does not even read

use crate::context::Context;
use crate::misuse::delivered;
use crate::world::{Name, enter_unchecked};
use std::ffi::c_int;

/// `shmem_fence`, `shmem_ctx_fence`.
#[inline(always)]
pub(crate) unsafe fn fence(name: Name, ctx: Context) {
    if ctx.is_valid() {
        ctx.object(name);
        delivered(name, enter_unchecked(name).fence());
    }
}

/// `shmem_quiet`, `shmem_ctx_quiet`.
#[inline(always)]
pub(crate) unsafe fn quiet(name: Name, ctx: Context) {
    if ctx.is_valid() {
        ctx.object(name);
        delivered(name, enter_unchecked(name).quiet());
    }
}

/// `shmem_pe_quiet` (1.6): for some PEs, which here is for all.
pub(crate) unsafe fn pe_quiet(name: Name, ctx: Context, _pes: *const c_int, _npes: usize) {
    // SAFETY: `quiet` asks for nothing.
    unsafe { quiet(name, ctx) };
}
