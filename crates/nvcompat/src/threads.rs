//! Worlds whose PEs are threads of the program.
//!
//! Each thread has a world of its own to look at (`state`), and a GPU. A unit's variable, in which its kernels find out
//! which PE they are, is one for a GPU and a process, so threads whose kernels are the program's units need a GPU each.
//! Kernels of modules that each thread loads for itself have a variable each, and may share one.
#![allow(unsafe_code)] // Exports a function of the header's; calls the program's.

use crate::say::say;
use crate::state::{ThreadsRun, with_thread};
use crate::types::Status;
use crosswarp_shmem::ThreadWorld;
use std::ffi::{c_int, c_void};

/// What is passed to every thread.
struct Argument(*mut c_void);
// SAFETY: it is not looked at here; that threads share what it leads to is the program's wish.
unsafe impl Sync for Argument {}

/// Bytes of a PE's stack: those of `main`, which the program was written in.
fn stack_bytes() -> usize {
    /// Where the system sets no limit, or does not say.
    const USUAL: usize = 8 << 20;
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: writes one structure.
    let _ = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) };
    match usize::try_from(limit.rlim_cur) {
        Ok(bytes) if limit.rlim_cur != libc::RLIM_INFINITY => bytes,
        _ => USUAL,
    }
}

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
    let _run = match ThreadsRun::begin() {
        Ok(run) => run,
        Err(reason) => return fail(Status::InvalidValue, reason.to_owned()),
    };
    let argument = &Argument(argument);
    let threads = ThreadWorld::new(n).stack_bytes(stack_bytes());
    let ended = threads.spmd_owned(|pe| {
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
