//! Locks by address.

use super::Raw;
use crate::verbs::lock::{PeLock, Queue};
use crate::wait::waiter::WaitError;

/// Locks in symmetric words that are 0 at first; ordered and served as [`Lock`](crate::Lock)s.
///
/// # Safety of all
/// See the [module](super); `lock` is symmetric, aligned to 8, and used for nothing else.
impl Raw<'_> {
    /// As [`Pe::lock`](crate::Pe::lock).
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Safety
    /// See above.
    #[inline]
    pub unsafe fn set_lock(self, lock: *mut i64) -> Result<(), WaitError> {
        // SAFETY: by the caller.
        unsafe { PeLock::at(self.pe, lock.addr()) }.acquire()
    }

    /// As [`Pe::try_lock`](crate::Pe::try_lock): whether the lock was free and is held now.
    ///
    /// # Safety
    /// See above.
    #[inline]
    pub unsafe fn test_lock(self, lock: *mut i64) -> bool {
        // SAFETY: by the caller.
        unsafe { PeLock::at(self.pe, lock.addr()) }.try_acquire()
    }

    /// Completes all puts and gives the lock up. Returns false, having done nothing, if no thread of this PE
    /// has it.
    ///
    /// # Safety
    /// See above.
    #[inline]
    pub unsafe fn clear_lock(self, lock: *mut i64) -> bool {
        self.pe.complete();
        // SAFETY: by the caller.
        unsafe { PeLock::at(self.pe, lock.addr()) }.release()
    }
}
