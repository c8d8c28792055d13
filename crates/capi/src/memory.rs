//! The symmetric heap.
#![allow(unsafe_code)] // hands out and takes back addresses

use crate::misuse;
use crate::world::{Name, enter_unchecked};
use crosswarp_shmem::AllocError;
use std::ffi::{c_long, c_void};
use std::ptr;

/// A heap without room gives null, as the specification says; a PE that did something else than the
/// others, or the loss of one, ends the process.
fn granted(name: Name, object: Result<*mut u8, AllocError>) -> *mut c_void {
    match object {
        Ok(object) => object.cast(),
        Err(
            AllocError::OutOfHeap { .. }
            | AllocError::TooLarge { .. }
            | AllocError::BadAlign { .. },
        ) => ptr::null_mut(),
        Err(error) => misuse::end(name, format_args!("{error}")),
    }
}

/// `shmem_malloc`.
pub(crate) unsafe fn malloc(name: Name, size: usize) -> *mut c_void {
    granted(name, enter_unchecked(name).raw().malloc(size, 1))
}

/// `shmem_malloc_with_hints`: all memory here is equally good for everything.
pub(crate) unsafe fn malloc_with_hints(name: Name, size: usize, _hints: c_long) -> *mut c_void {
    granted(name, enter_unchecked(name).raw().malloc(size, 1))
}

/// `shmem_calloc`.
pub(crate) unsafe fn calloc(name: Name, count: usize, size: usize) -> *mut c_void {
    granted(name, enter_unchecked(name).raw().calloc(count, size))
}

/// `shmem_align`. The specification asks for powers of two from the size of a pointer on; others from there
/// on are rounded up. Null for what is smaller and no power of two, and for more than the heap is aligned to.
pub(crate) unsafe fn align(name: Name, alignment: usize, size: usize) -> *mut c_void {
    let alignment = match alignment.checked_next_power_of_two() {
        Some(rounded) if alignment >= size_of::<*const c_void>() => rounded,
        _ => alignment,
    };
    granted(name, enter_unchecked(name).raw().malloc(size, alignment))
}

/// `shmem_realloc`.
pub(crate) unsafe fn realloc(name: Name, object: *mut c_void, size: usize) -> *mut c_void {
    granted(
        name,
        enter_unchecked(name).raw().realloc(object.cast(), size),
    )
}

/// `shmem_free`.
pub(crate) unsafe fn free(name: Name, object: *mut c_void) {
    if let Err(error) = enter_unchecked(name).raw().free(object.cast()) {
        misuse::end(name, format_args!("{error}"));
    }
}
