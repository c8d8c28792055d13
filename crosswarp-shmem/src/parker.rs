//! Sleeping until another PE has written to this PE's memory.
//!
//! Access rules: `waiters` is incremented and decremented by threads of the owning PE only and read
//! by everyone; `wake` is incremented by anyone who wakes the owner.
//!
//! The problem to solve is the lost wake-up. A writer stores its value and then looks whether anyone
//! sleeps; a sleeper announces itself and then looks at the value once more. If both looks could
//! happen before the other side's store is visible, the sleeper would sleep for ever. The cure is a
//! store-load fence on both sides; an [asymmetric one](crate::sync::light_fence) keeps it off the
//! writer's path, which is every put.

use crate::sync::{AtomicU32, Ordering, heavy_fence, light_fence};
use std::time::Duration;

/// How long to sleep where the kernel has no `membarrier`: a lost wake-up then costs at most this.
const UNFENCED_SLEEP: Duration = Duration::from_millis(1);

/// Per PE: who sleeps, and the futex word they sleep on.
#[repr(C)]
pub(crate) struct Parker {
    waiters: AtomicU32,
    wake: AtomicU32,
    #[cfg(loom)]
    model: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl Parker {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            waiters: AtomicU32::new(0),
            wake: AtomicU32::new(0),
            model: (loom::sync::Mutex::new(()), loom::sync::Condvar::new()),
        }
    }

    /// Sleeps for at most `limit` unless `ready` already holds or a notification comes.
    /// May return early; the caller looks again.
    ///
    /// `shared`: the word lies in memory shared between processes.
    pub(crate) fn sleep(&self, shared: bool, limit: Duration, mut ready: impl FnMut() -> bool) {
        // The announcement is a plain increment: the heavy fence below orders it before the look.
        self.waiters.fetch_add(1, Ordering::Relaxed);
        // Read before the look, so that a notification after the look changes the word under us
        // and the futex refuses to sleep.
        let seen = self.wake.load(Ordering::Acquire);
        // Race prevented: a writer whose store we miss below has, after this fence, either not yet
        // read `waiters` (it will see us) or has drained its store (we will see it).
        let fenced = heavy_fence(shared);
        if !ready() {
            let limit = if fenced {
                limit
            } else {
                limit.min(UNFENCED_SLEEP)
            };
            self.futex_wait(seen, shared, limit);
        }
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes the owner if it sleeps. Called after a store the owner may be waiting for.
    #[inline(always)]
    pub(crate) fn notify(&self, shared: bool) {
        // Pairs with the heavy fence in `sleep`: the caller's store comes before this load.
        light_fence();
        if self.waiters.load(Ordering::Relaxed) != 0 {
            self.wake_all(shared);
        }
    }

    #[cold]
    pub(crate) fn wake_all(&self, shared: bool) {
        // Release: whoever sees the new word (Acquire in `sleep`) also sees the store before it.
        self.wake.fetch_add(1, Ordering::Release);
        self.futex_wake(shared);
    }

    #[cfg(not(loom))]
    fn futex_wait(&self, seen: u32, shared: bool, limit: Duration) {
        use rustix::thread::futex;
        let limit = futex::Timespec::try_from(limit).unwrap_or(futex::Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        // Every outcome (woken, word changed, timed out, interrupted) means: look again.
        let _ = futex::wait(&self.wake, flags(shared), seen, Some(&limit));
    }

    #[cfg(not(loom))]
    fn futex_wake(&self, shared: bool) {
        // Fails only for an invalid address, and ours is a live atomic.
        let _ = rustix::thread::futex::wake(&self.wake, flags(shared), i32::MAX as u32);
    }

    // A futex compares and sleeps in one step; a lock around both models that. Time does not pass
    // in the model, so a lost wake-up is a deadlock that loom reports.
    #[cfg(loom)]
    fn futex_wait(&self, seen: u32, _shared: bool, _limit: Duration) {
        let mut guard = self.model.0.lock().unwrap();
        while self.wake.load(Ordering::Relaxed) == seen {
            guard = self.model.1.wait(guard).unwrap();
        }
    }

    #[cfg(loom)]
    fn futex_wake(&self, _shared: bool) {
        let _guard = self.model.0.lock().unwrap();
        self.model.1.notify_all();
    }
}

#[cfg(not(loom))]
fn flags(shared: bool) -> rustix::thread::futex::Flags {
    if shared {
        rustix::thread::futex::Flags::empty()
    } else {
        rustix::thread::futex::Flags::PRIVATE
    }
}
