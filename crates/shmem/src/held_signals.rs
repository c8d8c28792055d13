//! Signals held back from a thread, by what rustix leaves to the C library.
#![allow(unsafe_code)] // the C library's signal sets

use std::mem::MaybeUninit;
use std::ptr;

/// What a thread does wrong itself comes to that thread; its handlers say what it was.
const FAULTS: [i32; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Signals held back from this thread, until dropped.
///
/// What it starts meanwhile, threads and children, inherits that.
pub struct HeldSignals {
    before: libc::sigset_t,
    /// The mask is this thread's.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl HeldSignals {
    /// Every one of them.
    pub fn all() -> Self {
        Self::but(&[])
    }

    /// All but those of faults: for threads that work for others, which get the program's signals.
    pub fn but_faults() -> Self {
        Self::but(&FAULTS)
    }

    fn but(these: &[i32]) -> Self {
        let mut held = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: `sigfillset` writes the whole set, before it is changed and read, and `pthread_sigmask` the old one; it
        // fails for an unknown first argument only.
        let before = unsafe {
            libc::sigfillset(held.as_mut_ptr());
            for &signal in these {
                libc::sigdelset(held.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, held.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        Self {
            before,
            _not_send: std::marker::PhantomData,
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: a set that `pthread_sigmask` has written.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}
