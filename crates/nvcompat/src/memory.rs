//! Symmetric memory.
#![allow(unsafe_code)] // hands out and takes back addresses

use crate::say::say;
use crate::state::{world, world_for};
use crate::types::{Status, status};
use std::ffi::{c_int, c_void};
use std::ptr;

fn take(name: &'static str, bytes: usize, align: usize, zeroed: bool) -> *mut c_void {
    let taken = world_for(name).and_then(|world| {
        let gpu = world.gpu()?;
        // With a name, sizes, and what there is: a program that does not look will soon fail elsewhere.
        let taken = gpu.allocate(bytes, align).map_err(|error| {
            say(format_args!("{name}({bytes}): {error}"));
            Status::OutOfMemory
        })?;
        let cleared = match zeroed {
            true => gpu.clear(taken, bytes),
            false => Ok(()),
        };
        if let Err(error) = &cleared {
            say(format_args!("{name}({bytes}): {error}"));
        }
        // No PE returns before all have the memory, cleared if that was asked for. It is there on all PEs or on none.
        let all = world.smallest(cleared.is_ok().into()).map_err(|error| {
            say(format_args!("{name}: {error}"));
            Status::Internal
        })?;
        if all == 0 {
            let _ = gpu.release(taken);
            return Err(Status::Internal);
        }
        Ok(taken)
    });
    match taken {
        Ok(address) => ptr::with_exposed_provenance_mut(address as usize),
        Err(_) => ptr::null_mut(),
    }
}

/// `nvshmem_malloc`. Collective; null for no bytes, as for no room.
pub(crate) unsafe fn malloc(size: usize) -> *mut c_void {
    match size {
        0 => ptr::null_mut(),
        _ => take("nvshmem_malloc", size, 1, false),
    }
}

/// `nvshmem_calloc`.
pub(crate) unsafe fn calloc(count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(0) => ptr::null_mut(),
        Some(bytes) => take("nvshmem_calloc", bytes, 1, true),
        None => take("nvshmem_calloc", usize::MAX, 1, false),
    }
}

/// `nvshmem_align`: the alignment is a power of two.
pub(crate) unsafe fn align(alignment: usize, size: usize) -> *mut c_void {
    if !alignment.is_power_of_two() || size == 0 {
        return ptr::null_mut();
    }
    take("nvshmem_align", size, alignment, false)
}

/// `nvshmem_free`.
pub(crate) unsafe fn free(object: *mut c_void) {
    let Ok(world) = world_for("nvshmem_free") else {
        return;
    };
    if object.is_null() {
        return;
    }
    let Ok(gpu) = world.gpu() else { return };
    // What this PE has under way may be for this memory, which others get next.
    let freed = gpu.quiet().and_then(|()| gpu.release(object.addr() as u64));
    if let Err(error) = freed {
        say(format_args!("nvshmem_free: {error}"));
    }
}

/// `nvshmem_ptr`: null for what is not symmetric, for PEs that do not exist, and for those of other hosts.
pub(crate) unsafe fn ptr(dest: *const c_void, pe: c_int) -> *mut c_void {
    let gpu = world().and_then(|world| world.opened_gpu());
    let address = gpu.and_then(|gpu| {
        let address = gpu.remote(dest.addr() as u64, 1, pe).ok()?;
        (!gpu.is_far(pe)).then_some(address)
    });
    address.map_or(ptr::null_mut(), |address| {
        ptr::with_exposed_provenance_mut(address as usize)
    })
}

/// `nvshmemx_mc_ptr`: there is no multicast.
pub(crate) unsafe fn mc_ptr(_team: c_int, _ptr: *const c_void) -> *mut c_void {
    ptr::null_mut()
}

/// `nvshmemx_buffer_register`: all of the program's device memory can be the local side of a put or get.
pub(crate) unsafe fn buffer_register(_addr: *mut c_void, _length: usize) -> c_int {
    0
}

/// `nvshmemx_buffer_unregister`.
pub(crate) unsafe fn buffer_unregister(_addr: *mut c_void) -> c_int {
    0
}

/// `nvshmemx_buffer_unregister_all`.
pub(crate) unsafe fn buffer_unregister_all() {}

/// `nvshmemx_buffer_register_symmetric`: where it is in this PE's part. Collective; the flags mean nothing.
pub(crate) unsafe fn buffer_register_symmetric(
    user_buffer: *mut c_void,
    size: usize,
    _flags: c_int,
) -> *mut c_void {
    const NAME: &str = "nvshmemx_buffer_register_symmetric";
    let taken = world_for(NAME).and_then(|world| {
        world
            .gpu()?
            .register(user_buffer.addr() as u64, size)
            .map_err(|error| {
                say(format_args!("{NAME}: {error}"));
                Status::InvalidValue
            })
    });
    taken.map_or(ptr::null_mut(), |address| {
        ptr::with_exposed_provenance_mut(address as usize)
    })
}

/// `nvshmemx_buffer_unregister_symmetric`. Collective.
pub(crate) unsafe fn buffer_unregister_symmetric(object: *mut c_void, size: usize) -> c_int {
    const NAME: &str = "nvshmemx_buffer_unregister_symmetric";
    status(world_for(NAME).and_then(|world| {
        let gpu = world.gpu()?;
        // What this PE has under way may be for this memory.
        let waited = gpu.quiet();
        let ended = gpu.unregister(object.addr() as u64, size);
        waited.and(ended).map_err(|error| {
            say(format_args!("{NAME}: {error}"));
            Status::InvalidValue
        })
    }))
}
