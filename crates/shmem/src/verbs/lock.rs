//! Locks by handles.

use crate::memory::alloc::AllocError;
use crate::memory::symmetric::Sym;
use crate::verbs::raw::lock::{PeLock, Queue};
use crate::wait::waiter::WaitError;
use crate::world::pe::Pe;

/// A lock that all PEs of a world share, fair: PEs get it in the order in which they asked.
///
/// ```
/// let total = crosswarp_shmem::spmd(3, |pe| {
///     let (lock, sum) = (pe.alloc_lock()?, pe.alloc_zeroed::<u64>(1)?);
///     for _ in 0..100 {
///         let _held = pe.lock(&lock)?;
///         let seen = pe.g(&sum, 0);
///         pe.p(&sum, seen + 1, 0);
///     }
///     pe.barrier()?;
///     let total = pe.g(&sum, 0);
///     pe.free_lock(lock)?;
///     Ok::<_, crosswarp_shmem::Error>(total)
/// })
/// .unwrap();
/// assert_eq!(total, [Ok(300), Ok(300), Ok(300)]);
/// ```
#[derive(Debug)]
#[must_use = "dropping the handle does not free the lock; see Pe::free_lock"]
pub struct Lock {
    word: Sym<u64>,
}

/// Possession of a [`Lock`], given up on drop.
///
/// Memory ordering: giving it up completes all puts (a `quiet`), and whoever gets the lock next sees them.
#[must_use = "the lock is given up when this is dropped"]
pub struct LockGuard<'a> {
    lock: PeLock<'a>,
}

impl std::fmt::Debug for LockGuard<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "lock held by PE {}", self.lock.endpoint.my_pe())
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        self.lock.endpoint.quiet();
        let held = self.lock.release();
        debug_assert!(held, "a guard is there while the lock is held");
    }
}

/// Locks.
impl Pe {
    /// A new lock, free. Collective, as [`alloc`](Self::alloc).
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc).
    pub fn alloc_lock(&self) -> Result<Lock, AllocError> {
        let word = self.alloc_zeroed(1)?;
        Ok(Lock { word })
    }

    /// Frees a lock that nobody holds or waits for. Collective, as [`free`](Self::free).
    ///
    /// # Errors
    /// As [`free`](Self::free).
    pub fn free_lock(&self, lock: Lock) -> Result<(), AllocError> {
        self.free(lock.word)
    }

    /// Waits for `lock` and takes it. A thread that holds it must not ask for it again. PEs are served in the
    /// order of asking, threads of one PE in any order.
    ///
    /// # Errors
    /// [`WaitError`]. Others then get the lock past this PE, which may ask again; if it does so before its turn
    /// has passed, it has kept its place.
    pub fn lock<'a>(&'a self, lock: &'a Lock) -> Result<LockGuard<'a>, WaitError> {
        let lock = self.at_lock(lock);
        lock.acquire()?;
        Ok(LockGuard { lock })
    }

    /// Takes `lock` if it is free.
    pub fn try_lock<'a>(&'a self, lock: &'a Lock) -> Option<LockGuard<'a>> {
        let lock = self.at_lock(lock);
        lock.try_acquire().then(|| LockGuard { lock })
    }

    fn at_lock<'a>(&'a self, lock: &'a Lock) -> PeLock<'a> {
        let addr = self.endpoint.own(lock.word.all()).addr();
        // SAFETY: `address` checked the place; the word was zeroed before any PE had the handle, which
        // gives no other access to it.
        #[allow(unsafe_code)]
        unsafe {
            PeLock::at(&self.endpoint, addr)
        }
    }
}
