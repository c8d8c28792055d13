//! This process's PE: set by `shmem_init`, and what is left of it after `shmem_finalize`.
//!
//! `ENTRY` is null before `shmem_init`, after `shmem_finalize`, and while argument checking is on; one
//! load of it therefore tells whether a function may run straight on, and checking costs nothing when it
//! is off.
#![allow(unsafe_code)] // turns the pointers stored here back into references

use crosswarp_shmem::Pe;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

static ENTRY: AtomicPtr<Pe> = AtomicPtr::new(ptr::null_mut());
static WORLD: AtomicPtr<Pe> = AtomicPtr::new(ptr::null_mut());
static FINALIZED: AtomicBool = AtomicBool::new(false);

/// The name of the function a program called.
pub(crate) type Name = &'static str;

/// Makes `pe` this process's PE; it lives until the process ends.
pub(crate) fn open(pe: Pe, checking: bool) -> &'static Pe {
    let pe: &'static Pe = Box::leak(Box::new(pe));
    let pointer = ptr::from_ref(pe).cast_mut();
    WORLD.store(pointer, Ordering::Release);
    if !checking {
        ENTRY.store(pointer, Ordering::Release);
    }
    pe
}

/// No function may be called any more.
pub(crate) fn close() {
    FINALIZED.store(true, Ordering::Release);
    ENTRY.store(ptr::null_mut(), Ordering::Release);
}

/// Whether `shmem_finalize` has been.
pub(crate) fn finalized() -> bool {
    FINALIZED.load(Ordering::Acquire)
}

/// This process's PE if it has one, finalised or not.
pub(crate) fn any() -> Option<&'static Pe> {
    // SAFETY: null, or from `open`, which leaks it.
    unsafe { WORLD.load(Ordering::Acquire).as_ref() }
}

/// This process's PE while functions may run without any check.
#[inline(always)]
pub(crate) fn unchecked() -> Option<&'static Pe> {
    // SAFETY: null, or from `open`, which leaks it.
    unsafe { ENTRY.load(Ordering::Acquire).as_ref() }
}
