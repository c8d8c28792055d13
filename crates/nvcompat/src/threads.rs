//! Worlds whose PEs are threads of the program.
//!
//! Each thread has a world of its own to look at (`state`), and a GPU. A unit's variable, in which its kernels find out
//! which PE they are, is one for a GPU and a process, so threads whose kernels are the program's units need a GPU each.
//! Kernels of modules that each thread loads for itself have a variable each, and may share one.
#![allow(unsafe_code)] // Exports a function of the header's; calls the program's.

use crate::say::say;
use crate::state::{is_thread, with_thread, world};
use crate::types::Status;
use crosswarp_shmem::ThreadWorld;
use std::ffi::{c_int, c_void};

/// What is passed to every thread.
struct Argument(*mut c_void);
// SAFETY: it is not looked at here; that threads share what it leads to is the program's wish.
unsafe impl Sync for Argument {}

/// `nvshmem_cw_spmd`: runs `body` on `n_pes` threads, each of which is a PE of one world.
#[unsafe(no_mangle)]
extern "C" fn nvshmem_cw_spmd(
    n_pes: c_int,
    body: Option<extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    const NAME: &str = "nvshmem_cw_spmd";
    let fail = |status: Status, reason: String| {
        say(format_args!("{NAME}: {reason}"));
        status as c_int
    };
    let n = usize::try_from(n_pes).ok().filter(|&n| n > 0);
    let (Some(n), Some(body)) = (n, body) else {
        let reason = format!("{n_pes} PEs, or no function, but both are needed");
        return fail(Status::InvalidValue, reason);
    };
    if is_thread() || world().is_some() {
        let reason = "this thread or process is a PE already".to_owned();
        return fail(Status::InvalidValue, reason);
    }
    let argument = &Argument(argument);
    let ended = ThreadWorld::new(n).spmd_owned(|pe| {
        let left = with_thread(pe, || body(argument.0));
        // Others may wait for it: their waits end with an error, by name.
        if let Some(world) = left {
            world.pe.leave();
            world.close_gpu();
        }
    });
    match ended {
        Ok(_) => 0,
        Err(error) => fail(Status::Internal, error.to_string()),
    }
}
