//! Units of the program that have kernels: each has a variable in which these find their world.
#![allow(unsafe_code)] // Exports the functions that units call.

use crate::say::say;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        match install(unit.address) {
            Ok(()) => unit.installed = true,
            Err(error) => {
                say(format_args!(
                    "kernels can't be told which PE they are: {error}"
                ));
                // The next call tries again.
                NEW.store(true, Ordering::Release);
            }
        }
    }
}
