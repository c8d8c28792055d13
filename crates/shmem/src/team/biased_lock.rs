//! One thread of a PE at a time in the collectives of a team: a lock biased towards the first thread.
//!
//! What a PE shows to a team (`TeamControl`) is written as if the PE had one thread. Two threads in collectives of one
//! team at once would overwrite each other's; so each collective takes the *turn* there first, and who
//! finds it taken gets an error.
//!
//! Nearly always one thread makes all collectives of a team, and pays nothing but plain loads and stores:
//! the turn has an `owner`, the first thread that took it, which says `inside` without a read-modify-write.
//! Another thread that comes takes the turn away from its owner for good, once, by an
//! [asymmetric fence](crate::wait::sync::light_fence); from then on all take it under the PE's `gate`.
//!
//! Access rules
//! 1. `owner` and `taken` = 1 are written under the gate.
//! 2. `inside` is written by the owner only; by a thread that no longer is the owner only to take back what
//!    it wrote as such. While another thread is the owner, or none, it becomes 0 and stays 0.
//! 3. `taken` is 1 from when a thread that is not the owner enters, which it does only while there is no
//!    owner and `inside` is 0, to when that thread leaves, which writes 0.

use crate::wait::sync::{AtomicU32, AtomicU64, Mutex, Ordering, heavy_fence, light_fence};

/// No thread has come yet.
const NOBODY: u64 = 0;
/// Several threads come; there is no owner any more.
const SHARED: u64 = u64::MAX;

/// The turn of one PE in one team. Zero at first.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Turn {
    owner: AtomicU64,
    inside: AtomicU32,
    taken: AtomicU32,
}

/// A turn taken, given up on drop.
#[must_use = "the turn is given up when this is dropped"]
#[derive(Debug)]
pub(crate) struct Held<'a> {
    flag: &'a AtomicU32,
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the thread that comes next, if it is another.
        self.flag.store(0, Ordering::Release);
    }
}

impl Turn {
    /// Takes the turn for the thread `me`; `None` if a thread, maybe this one, has it.
    ///
    /// Memory ordering: what the thread did that had it before is visible.
    #[inline(always)]
    pub(crate) fn enter(&self, me: u64, shared: bool, gate: &Mutex<()>) -> Option<Held<'_>> {
        if self.owner.load(Ordering::Relaxed) == me {
            if self.inside.load(Ordering::Relaxed) != 0 {
                return None;
            }
            self.inside.store(1, Ordering::Relaxed);
            // Race prevented: a thread that takes the turn away while I come in. Either it sees me inside,
            // after its heavy fence, or I see that I am not the owner any more.
            light_fence();
            if self.owner.load(Ordering::Relaxed) == me {
                return Some(Held { flag: &self.inside });
            }
            self.inside.store(0, Ordering::Release);
        }
        self.enter_slowly(me, shared, gate)
    }

    #[cold]
    #[inline(never)]
    fn enter_slowly(&self, me: u64, shared: bool, gate: &Mutex<()>) -> Option<Held<'_>> {
        // Nothing panics while it is locked.
        let _gate = gate.lock().ok()?;
        match self.owner.load(Ordering::Relaxed) {
            // Where the kernel has no such fence, nobody can be an owner.
            NOBODY if heavy_fence(shared) => {
                self.inside.store(1, Ordering::Relaxed);
                self.owner.store(me, Ordering::Relaxed);
                return Some(Held { flag: &self.inside });
            }
            NOBODY => self.owner.store(SHARED, Ordering::Relaxed),
            SHARED => {}
            owner => {
                self.owner.store(SHARED, Ordering::Relaxed);
                // Pairs with the light fence in `enter`. It worked when the owner became one.
                if !heavy_fence(shared) {
                    self.owner.store(owner, Ordering::Relaxed);
                    return None;
                }
            }
        }
        // Acquire: pair with the Release of whoever left.
        let inside = self.inside.load(Ordering::Acquire);
        if inside != 0 || self.taken.load(Ordering::Acquire) != 0 {
            return None;
        }
        self.taken.store(1, Ordering::Relaxed);
        Some(Held { flag: &self.taken })
    }
}

/// A number of the calling thread that no other thread alive has. It is no owner's constant.
#[inline(always)]
#[allow(unsafe_code)] // reads a register
pub(crate) fn this_thread() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let here: u64;
        // SAFETY: by the system's binary interface the word at fs:0 is its own address, in the thread's
        // control block. (A thread-local's address is a function call in a shared library.)
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) here, options(pure, readonly, nostack, preserves_flags));
        }
        here
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        thread_local!(static HERE: u8 = const { 0 });
        HERE.with(|here| std::ptr::from_ref(here).addr() as u64)
    }
}
