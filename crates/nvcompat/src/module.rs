//! Units of the program that have kernels: each has a variable in which these find their world.
#![allow(unsafe_code)] // Calls into units; reads handles of the driver.

use crate::driver::{self, ContextGuard};
use crate::gpu::{Gpu, STATE_BYTES};
use crate::state::{say, world, world_for};
use crate::types::{Status, status};
use std::ffi::{CStr, c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The variable, for the host's eyes.
const VARIABLE: &CStr = c"nvshmem_cw_state_1";

/// Gives the address of a unit's variable on the current device; null if there is none.
pub(crate) type Address = extern "C" fn() -> *mut c_void;

struct Unit {
    address: Address,
    installed: bool,
}

static UNITS: Mutex<Vec<Unit>> = Mutex::new(Vec::new());
/// Whether there may be units that were not told who they are.
static NEW: AtomicBool = AtomicBool::new(false);

fn units() -> MutexGuard<'static, Vec<Unit>> {
    UNITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A unit that has been loaded, before `main` or later.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_register_1(address: Address) {
    units().push(Unit {
        address,
        installed: false,
    });
    // Release: who sees it sees the unit. It is told at the program's next call; with relocatable device code it has no
    // address before all units of its library are there.
    NEW.store(true, Ordering::Release);
}

/// A unit that is unloaded.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_unregister_1(address: Address) {
    units().retain(|unit| !std::ptr::fn_addr_eq(unit.address, address));
}

/// Every unit has to be told of a new world.
pub(crate) fn forget_installed() {
    for unit in units().iter_mut() {
        unit.installed = false;
    }
    NEW.store(true, Ordering::Release);
}

/// Tells units that do not know it yet, by `install`.
pub(crate) fn install_new(mut install: impl FnMut(Address) -> Result<(), String>) {
    if !NEW.swap(false, Ordering::AcqRel) {
        return;
    }
    for unit in units().iter_mut().filter(|unit| !unit.installed) {
        unit.installed = true;
        if let Err(error) = install(unit.address) {
            say(format_args!(
                "kernels can't be told which PE they are: {error}"
            ));
        }
    }
}

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
    if bytes != STATE_BYTES {
        return Err(format!(
            "its kernels expect {bytes} bytes where this library writes {STATE_BYTES}; compile it again"
        ));
    }
    // SAFETY: the variable has this many bytes.
    unsafe { driver::write(at, &gpu.state()) }.map_err(|error| error.to_string())
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
