//! Locks.
#![allow(unsafe_code)] // addresses come from C, whose caller promises that they are what the function asks for

use crate::misuse;
use crate::world::{Name, enter};
use std::ffi::{c_int, c_long};

/// `shmem_set_lock`.
pub(crate) unsafe fn set(name: Name, lock: *mut c_long) {
    let me = enter(name, |check| check.atomic("lock", lock));
    // SAFETY: by the caller.
    if let Err(error) = unsafe { me.raw().set_lock(lock) } {
        misuse::end(name, format_args!("{error}"));
    }
}

/// `shmem_clear_lock`: completes the PE's operations first.
pub(crate) unsafe fn clear(name: Name, lock: *mut c_long) {
    let me = enter(name, |check| check.atomic("lock", lock));
    // SAFETY: by the caller.
    if !unsafe { me.raw().clear_lock(lock) } {
        misuse::end(name, format_args!("the lock is not this PE's"));
    }
}

/// `shmem_test_lock`: 0 if the lock is the caller's now, 1 if somebody else holds it.
pub(crate) unsafe fn test(name: Name, lock: *mut c_long) -> c_int {
    let me = enter(name, |check| check.atomic("lock", lock));
    // SAFETY: by the caller.
    let acquired = unsafe { me.raw().test_lock(lock) };
    c_int::from(!acquired)
}
