//! Sleeping until another PE has written to this PE's memory.
//!
//! Access rules: `sleepers` is changed by threads of the owning PE only and read by everyone; `wake`
//! is incremented by anyone who wakes the owner.
//!
//! The problem to solve is the lost wake-up. A writer stores its value and then looks whether anyone
//! sleeps; a sleeper announces itself and then looks at the value once more. If both looks could
//! happen before the other side's store is visible, the sleeper would sleep for ever. The cure is a
//! store-load fence on both sides; an [asymmetric one](crate::wait::sync::light_fence) keeps it off the
//! writer's path, which is every put.

use crate::wait::sync::{AtomicU32, AtomicU64, Ordering, heavy_fence, light_fence};
use std::time::Duration;

/// How long to sleep where the kernel has no `membarrier`: a lost wake-up then costs at most this.
const UNFENCED_SLEEP: Duration = Duration::from_millis(1);

/// What a sleeper's awakening depends on, so that stores elsewhere need not wake it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Arrivals of other PEs.
    Arrivals,
    /// The word at this symmetric position (a heap offset, or beyond the heap in a segment).
    Word(usize),
    /// Several words: every store wakes.
    Anything,
}

/// The watch, beside the number of sleepers, in one word.
const SLEEPERS: u64 = 0xffff;
/// Sleepers of one PE that watch different things: every store wakes them.
const SEVERAL: u64 = 1 << 16;

impl Watched {
    fn bits(self) -> u64 {
        match self {
            Self::Arrivals => 0,
            Self::Word(offset) => (offset as u64 + 2) << 16,
            Self::Anything => SEVERAL,
        }
    }
}

/// Per PE: who sleeps on what, and the futex word they sleep on.
#[repr(C)]
pub(crate) struct Parker {
    /// Number of sleepers in the low 16 bits, above them what they watch.
    sleepers: AtomicU64,
    wake: AtomicU32,
    #[cfg(loom)]
    model: (loom::sync::Mutex<()>, loom::sync::Condvar),
}

impl Parker {
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            sleepers: AtomicU64::new(0),
            wake: AtomicU32::new(0),
            model: (loom::sync::Mutex::new(()), loom::sync::Condvar::new()),
        }
    }

    /// Sleeps for at most `limit` unless `ready` already holds or a store to what is watched comes.
    /// May return early; the caller looks again.
    ///
    /// `shared`: the word lies in memory shared between processes.
    pub(crate) fn sleep(
        &self,
        watched: Watched,
        shared: bool,
        limit: Duration,
        mut ready: impl FnMut() -> bool,
    ) {
        // Announce. Relaxed: the heavy fence below orders it before the look.
        let announce = |word: u64| match word & SLEEPERS {
            0 => Some(watched.bits() + 1),
            n if word - n == watched.bits() => Some(word + 1),
            n => Some(SEVERAL + n + 1),
        };
        let _ = self
            .sleepers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, announce);
        // Read before the look, so that a notification after the look changes the word under us
        // and the futex refuses to sleep.
        let seen = self.wake.load(Ordering::Acquire);
        // Race prevented: a writer whose store we miss below has, after this fence, either not yet
        // read `sleepers` (it will see us) or has drained its store (we will see it).
        let fenced = heavy_fence(shared);
        if !ready() {
            let limit = if fenced {
                limit
            } else {
                limit.min(UNFENCED_SLEEP)
            };
            self.futex_wait(seen, shared, limit);
        }
        // The last to leave takes the watch along; those who stay keep it as it is.
        let leave = |word: u64| Some(if word & SLEEPERS == 1 { 0 } else { word - 1 });
        let _ = self
            .sleepers
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, leave);
    }

    /// Wakes those who wait for arrivals. Called after an arrival.
    #[inline(always)]
    pub(crate) fn notify_arrival(&self, shared: bool) {
        // Pairs with the heavy fence in `sleep`: the caller's store comes before this load.
        light_fence();
        let word = self.sleepers.load(Ordering::Relaxed);
        // Arrivals are watched as 0, so this is "someone sleeps, on arrivals or on several things".
        if word != 0 && word <= SEVERAL + SLEEPERS {
            self.wake_all(shared);
        }
    }

    /// Wakes those who wait for a word in `start..end` (heap offsets). Called after storing there.
    #[inline(always)]
    pub(crate) fn notify_store(&self, start: usize, end: usize, shared: bool) {
        light_fence();
        let word = self.sleepers.load(Ordering::Relaxed);
        if word != 0 {
            self.notify_sleepers(word, start, end, shared);
        }
    }

    /// Whether anyone sleeps; the first half of `notify_store`, whose `start` and `end` may take a
    /// while to find out. Called after storing.
    #[inline(always)]
    pub(crate) fn has_sleepers(&self) -> bool {
        light_fence();
        self.sleepers.load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn notify_sleepers(&self, word: u64, start: usize, end: usize, shared: bool) {
        let watched = word & !SLEEPERS;
        let several = watched == SEVERAL;
        // A watched word has 4 or 8 bytes; whoever stores into any of them stores into 8 from there.
        let touched = (start as u64).saturating_sub(7)..end as u64;
        let hit = watched > SEVERAL && touched.contains(&((watched >> 16) - 2));
        if several || hit {
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
