//! Units of the program that have kernels: each has a variable in which these find their world.
#![allow(unsafe_code)] // Exports the functions that units call.

use crate::say::say;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Gives the address of a unit's variable on the current device; null if there is none.
pub(crate) type Address = extern "C" fn() -> *mut c_void;

struct Unit {
    address: Address,
    /// No other unit ever has it.
    number: u64,
}

static UNITS: Mutex<Vec<Unit>> = Mutex::new(Vec::new());
/// How many units there have been so far.
static REGISTERED: AtomicU64 = AtomicU64::new(0);

fn units() -> MutexGuard<'static, Vec<Unit>> {
    UNITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A unit that has been loaded, before `main` or later.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_register_1(address: Address) {
    let mut units = units();
    let number = REGISTERED.load(Ordering::Relaxed);
    units.push(Unit { address, number });
    // Release: who sees it sees the unit. It is told at the program's next call; with relocatable device code it has no
    // address before all units of its library are there.
    REGISTERED.store(number + 1, Ordering::Release);
}

/// A unit that is unloaded.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_unregister_1(address: Address) {
    units().retain(|unit| !std::ptr::fn_addr_eq(unit.address, address));
}

/// Whether there are any.
pub(crate) fn any() -> bool {
    !units().is_empty()
}

/// The units that know which PE they are of.
#[derive(Default)]
pub(crate) struct Told {
    /// How many there had been when all knew.
    all_of: u64,
    numbers: Vec<u64>,
}

impl Told {
    /// Whether units have come since [`tell`](Self::tell) last told all, or [`pass_over`](Self::pass_over).
    pub(crate) fn misses_some(&self) -> bool {
        self.all_of != REGISTERED.load(Ordering::Acquire)
    }

    /// Leaves those that have come as they are.
    pub(crate) fn pass_over(&mut self) {
        self.all_of = REGISTERED.load(Ordering::Acquire);
    }

    /// Tells units that do not know it yet, by `install`.
    pub(crate) fn tell(&mut self, mut install: impl FnMut(Address) -> Result<(), String>) {
        let all_of = REGISTERED.load(Ordering::Acquire);
        let mut all = true;
        for unit in units().iter() {
            if self.numbers.contains(&unit.number) {
                continue;
            }
            match install(unit.address) {
                Ok(()) => self.numbers.push(unit.number),
                Err(error) => {
                    say(format_args!(
                        "kernels can't be told which PE they are: {error}"
                    ));
                    // The next call tries again.
                    all = false;
                }
            }
        }
        if all {
            self.all_of = all_of;
        }
    }
}
