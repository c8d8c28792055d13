//! Modules and libraries that the program has loaded by the driver's functions, and launches on all PEs.
#![allow(unsafe_code)] // Reads handles of the driver.

use crate::driver::{self, ContextGuard};
use crate::gpu::Gpu;
use crate::say::say;
use crate::state::{world, world_for};
use crate::types::{Status, status};
use std::ffi::{CStr, c_int, c_long, c_void};

/// The variable, for the host's eyes.
const VARIABLE: &CStr = c"nvshmem_cw_state_1";

/// Brings the world up to where kernels can be launched.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_prepare_1() -> c_int {
    status(world_for("nvshmemx_collective_launch").and_then(|world| world.gpu().map(|_| ())))
}

/// The smallest of all PEs' values; −1 if they can't agree.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_smallest_1(value: c_long) -> c_long {
    let Ok(world) = world_for("nvshmemx_collective_launch") else {
        return -1;
    };
    world.smallest(value).unwrap_or_else(|error| {
        say(format_args!("nvshmemx_collective_launch: {error}"));
        -1
    })
}

fn init(
    name: &str,
    variable: impl FnOnce() -> Result<(u64, usize), driver::DriverFailure>,
) -> c_int {
    status(world_for(name).and_then(|world| {
        let gpu = world.gpu()?;
        install(&gpu, variable).map_err(|reason| {
            say(format_args!("{name}: {reason}"));
            Status::InvalidValue
        })
    }))
}

fn install(
    gpu: &Gpu,
    variable: impl FnOnce() -> Result<(u64, usize), driver::DriverFailure>,
) -> Result<(), String> {
    let _guard = ContextGuard::keep();
    gpu.world
        .device()
        .bind()
        .map_err(|error| error.to_string())?;
    let (at, bytes) = variable().map_err(|error| {
        let variable = VARIABLE.to_string_lossy();
        format!("it has no variable {variable} ({error}); compile it with Crosswarp's nvshmem.h, and load it on this device")
    })?;
    // SAFETY: the variable has this many bytes.
    unsafe { gpu.tell_module(at, bytes) }
}

pub(crate) unsafe fn cumodule_init(module: *mut c_void) -> c_int {
    // SAFETY: the program's module.
    init("nvshmemx_cumodule_init", || unsafe {
        driver::variable_of_module(module, VARIABLE)
    })
}

/// Nothing is kept of a module.
pub(crate) unsafe fn cumodule_finalize(_module: *mut c_void) -> c_int {
    c_int::from(world().is_none())
}

pub(crate) unsafe fn culibrary_init(library: *mut c_void) -> c_int {
    // SAFETY: the program's library.
    init("nvshmemx_culibrary_init", || unsafe {
        driver::variable_of_library(library, VARIABLE)
    })
}

/// Nothing is kept of a library.
pub(crate) unsafe fn culibrary_finalize(_library: *mut c_void) -> c_int {
    c_int::from(world().is_none())
}
