//! Which signals a thread takes, by what rustix leaves to the C library, and which the process ignores.
#![allow(unsafe_code)] // the C library's signal sets

use std::mem::MaybeUninit;
use std::ptr;

/// Lets `signals` come to the calling thread.
pub(super) fn unblock(signals: &[i32]) {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` writes the whole set, before it is read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
    }
}

/// For a child between fork and exec: gives `handled` their default action and takes every signal,
/// those that have come meanwhile at once. What is ignored stays ignored.
pub(super) fn as_new(handled: &[i32]) {
    let mut none = MaybeUninit::uninit();
    // SAFETY: all are async-signal-safe; `sigemptyset` writes the whole set.
    unsafe {
        for &signal in handled {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::sigemptyset(none.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

/// Whether this process ignores `signal` (`SigIgn` of proc(5), signal 1 in bit 0). Not where that can not be read.
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
