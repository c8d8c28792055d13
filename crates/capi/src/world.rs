//! This process's PE as every function finds it, and the checks of arguments.

use crate::library_state::unchecked;
pub(crate) use crate::library_state::{Name, any, close, finalized, open};
use crate::misuse;
use crosswarp_shmem::Pe;
use std::ffi::c_int;

/// This process's PE, for the function `name`, whose arguments `check` checks if checking is on.
///
/// Ends the process with a message outside of `shmem_init` … `shmem_finalize`.
#[inline(always)]
pub(crate) fn enter(name: Name, check: impl FnOnce(&Check)) -> &'static Pe {
    match unchecked() {
        Some(pe) => pe,
        None => enter_slowly(name, check),
    }
}

/// Runs `op` with this process's PE, as [`enter`] finds it. For functions of a few instructions: `op` is
/// the last thing done on either way, so the usual one need not keep anything for the other. (Closures
/// that `move` what they need: a borrow would put it on the stack first.)
#[inline(always)]
pub(crate) fn run<R>(
    name: Name,
    check: impl FnOnce(&Check),
    op: impl FnOnce(&'static Pe) -> R,
) -> R {
    match unchecked() {
        Some(pe) => op(pe),
        None => run_slowly(name, check, op),
    }
}

#[cold]
#[inline(never)]
fn run_slowly<R>(name: Name, check: impl FnOnce(&Check), op: impl FnOnce(&'static Pe) -> R) -> R {
    op(enter_slowly(name, check))
}

/// [`enter`] for functions without arguments to check.
#[inline(always)]
pub(crate) fn enter_unchecked(name: Name) -> &'static Pe {
    enter(name, |_| ())
}

#[cold]
#[inline(never)]
fn enter_slowly(name: Name, check: impl FnOnce(&Check)) -> &'static Pe {
    if finalized() {
        misuse::end(name, format_args!("called after shmem_finalize"));
    }
    let Some(pe) = any() else {
        misuse::end(name, format_args!("called before shmem_init"));
    };
    check(&Check { name, pe });
    pe
}

/// The checks of one call's arguments, each of which ends the process with a message that names them.
pub(crate) struct Check {
    name: Name,
    pe: &'static Pe,
}

impl Check {
    /// `pe` is a PE of the world.
    pub(crate) fn pe(&self, argument: Name, pe: usize) {
        let n = self.pe.n_pes();
        if pe >= n {
            let pe = pe as isize;
            misuse::end(
                self.name,
                format_args!("{argument} is {pe}, but there are PEs 0 to {}", n - 1),
            );
        }
    }

    /// See [`symmetric`].
    pub(crate) fn symmetric<T>(&self, argument: Name, addr: *const T, bytes: usize) {
        symmetric(self.name, self.pe, argument, addr, bytes);
    }

    /// As [`symmetric`](Self::symmetric), and aligned as an atomic has to be.
    pub(crate) fn atomic<T>(&self, argument: Name, addr: *const T) {
        self.symmetric(argument, addr, size_of::<T>());
        if !addr.is_aligned() {
            misuse::end(
                self.name,
                format_args!(
                    "{argument} is {}, not a multiple of {}",
                    place(self.pe, addr),
                    size_of::<T>()
                ),
            );
        }
    }

    /// Strides are at least 1.
    pub(crate) fn stride(&self, argument: Name, stride: isize) {
        if stride < 1 {
            misuse::end(
                self.name,
                format_args!("{argument} is {stride}, but a stride is at least 1"),
            );
        }
    }
}

/// Ends the process unless the `bytes` bytes at `addr` are symmetric; nothing is asked of none.
pub(crate) fn symmetric<T>(name: Name, me: &Pe, argument: Name, addr: *const T, bytes: usize) {
    if bytes > 0 && !me.raw().contains(addr, bytes) {
        misuse::end(
            name,
            format_args!(
                "{argument} is {}, and its {bytes} bytes are not in symmetric memory",
                place(me, addr)
            ),
        );
    }
}

/// An address, with the static variable there.
fn place<T>(me: &Pe, addr: *const T) -> String {
    match me.raw().static_name(addr) {
        Some(name) => format!("{:#x} ('{name}')", addr.addr()),
        None => format!("{:#x}", addr.addr()),
    }
}

/// Bytes of `n` elements. What overflows becomes `usize::MAX`, more than any memory, which every check of a
/// range refuses.
#[inline(always)]
pub(crate) fn bytes_of<T>(n: usize) -> usize {
    n.saturating_mul(size_of::<T>())
}

/// A PE number from C. One that does not exist stays one that does not exist.
#[inline(always)]
pub(crate) fn number(pe: c_int) -> usize {
    pe as isize as usize
}
