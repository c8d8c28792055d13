//! Waiting for and testing values by address, one or several.

use super::Raw;
use crate::atomic::AtomicInt;
use crate::wait::{Cmp, Wait, WaitError};
use std::sync::atomic::Ordering;

/// What the elements of a set are compared with.
#[derive(Clone, Copy, Debug)]
pub enum Values<T> {
    /// All with one value.
    One(T),
    /// Each with its own: as many as there are elements.
    Each(*const T),
}

/// A set of symmetric integers to wait for: `n` elements at `ivars`, of which those with a nonzero
/// `status` are left out (null: none is).
#[derive(Clone, Copy, Debug)]
pub struct WaitSet<T> {
    /// The first element.
    pub ivars: *const T,
    /// How many.
    pub n: usize,
    /// One entry for each element, or null.
    pub status: *const i32,
    /// How to compare.
    pub cmp: Cmp,
    /// With what.
    pub values: Values<T>,
}

impl<T: AtomicInt> WaitSet<T> {
    /// # Safety
    /// `i < n` and the pointers are as [`WaitSet`] says.
    unsafe fn includes(&self, i: usize) -> bool {
        // SAFETY: by the caller.
        self.status.is_null() || unsafe { *self.status.add(i) } == 0
    }

    /// # Safety
    /// As for `includes`.
    unsafe fn value(&self, i: usize) -> T {
        match self.values {
            Values::One(value) => value,
            // SAFETY: by the caller.
            Values::Each(values) => unsafe { *values.add(i) },
        }
    }
}

/// What this PE's own integer holds. Own symmetric memory is where its address says.
///
/// # Safety
/// `ivar` is valid and aligned, and only accessed atomically while others write it.
#[inline(always)]
unsafe fn own<T: AtomicInt>(ivar: *const T) -> T {
    // SAFETY: by the caller; atomics may be shared.
    T::load(unsafe { &*ivar.cast::<T::Atomic>() }, Ordering::Acquire)
}

/// Point-to-point synchronisation on this PE's own integers, ordered as
/// [`Pe::wait_until`](crate::Pe::wait_until). Waits end with an error only as described there.
impl Raw<'_> {
    /// Waits until the symmetric `ivar` of this PE compares as asked; returns the value that did.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Safety
    /// See the [module](super).
    #[inline]
    pub unsafe fn wait_until<T: AtomicInt>(
        self,
        ivar: *const T,
        cmp: Cmp,
        value: T,
    ) -> Result<T, WaitError> {
        let wait = || Wait::Value {
            offset: self.pe.position(ivar.addr()),
            cmp,
            expected: value.to_u64(),
        };
        self.pe.waiter().until(wait, || {
            // SAFETY: by the caller.
            let seen = unsafe { own(ivar) };
            cmp.holds(seen, value).then_some(seen)
        })
    }

    /// Whether the symmetric `ivar` of this PE compares as asked.
    ///
    /// # Safety
    /// See the [module](super).
    #[inline]
    pub unsafe fn test<T: AtomicInt>(self, ivar: *const T, cmp: Cmp, value: T) -> bool {
        // SAFETY: by the caller.
        cmp.holds(unsafe { own(ivar) }, value)
    }

    /// Waits until every element of `set` has compared as asked, each at some time.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`].
    pub unsafe fn wait_until_all<T: AtomicInt>(self, set: WaitSet<T>) -> Result<(), WaitError> {
        for i in 0..set.n {
            // SAFETY: by the caller.
            unsafe {
                if set.includes(i) {
                    self.wait_until(set.ivars.add(i), set.cmp, set.value(i))?;
                }
            }
        }
        Ok(())
    }

    /// Waits until an element of `set` compares as asked and returns its index; `usize::MAX` at once if
    /// the set is empty.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`].
    pub unsafe fn wait_until_any<T: AtomicInt>(self, set: WaitSet<T>) -> Result<usize, WaitError> {
        // SAFETY: by the caller.
        if (0..set.n).all(|i| unsafe { !set.includes(i) }) {
            return Ok(usize::MAX);
        }
        let look = || {
            // SAFETY: by the caller.
            let found = unsafe { self.test_any(set) };
            (found != usize::MAX).then_some(found)
        };
        self.pe.waiter().until(|| self.name(&set), look)
    }

    /// Waits until at least one element of `set` compares as asked; writes the indices of all that do to
    /// the beginning of `indices`, ascending, and returns how many; 0 at once if the set is empty.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`]; `indices` has room for `n`.
    pub unsafe fn wait_until_some<T: AtomicInt>(
        self,
        set: WaitSet<T>,
        indices: *mut usize,
    ) -> Result<usize, WaitError> {
        // SAFETY: by the caller.
        if (0..set.n).all(|i| unsafe { !set.includes(i) }) {
            return Ok(0);
        }
        let look = || {
            // SAFETY: by the caller.
            let found = unsafe { self.test_some(set, indices) };
            (found != 0).then_some(found)
        };
        self.pe.waiter().until(|| self.name(&set), look)
    }

    /// Whether every element of `set` compares as asked; true for an empty set.
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`].
    pub unsafe fn test_all<T: AtomicInt>(self, set: WaitSet<T>) -> bool {
        // SAFETY: by the caller.
        (0..set.n).all(|i| unsafe { !set.includes(i) || self.holds(&set, i) })
    }

    /// Index of an element of `set` that compares as asked; `usize::MAX` if none does.
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`].
    pub unsafe fn test_any<T: AtomicInt>(self, set: WaitSet<T>) -> usize {
        // SAFETY: by the caller.
        let holds = |&i: &usize| unsafe { set.includes(i) && self.holds(&set, i) };
        (0..set.n).find(holds).unwrap_or(usize::MAX)
    }

    /// Writes the indices of all elements of `set` that compare as asked to the beginning of `indices`,
    /// ascending, and returns how many.
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`]; `indices` has room for `n`.
    pub unsafe fn test_some<T: AtomicInt>(self, set: WaitSet<T>, indices: *mut usize) -> usize {
        let mut found = 0;
        for i in 0..set.n {
            // SAFETY: by the caller; `found <= i < n`.
            unsafe {
                if set.includes(i) && self.holds(&set, i) {
                    indices.add(found).write(i);
                    found += 1;
                }
            }
        }
        found
    }

    /// # Safety
    /// `i < n` and the set is valid.
    unsafe fn holds<T: AtomicInt>(self, set: &WaitSet<T>, i: usize) -> bool {
        // SAFETY: by the caller.
        unsafe { self.test(set.ivars.add(i), set.cmp, set.value(i)) }
    }

    fn name<T>(self, set: &WaitSet<T>) -> Wait {
        Wait::Values {
            offset: self.pe.position(set.ivars.addr()),
            count: set.n,
            cmp: set.cmp,
        }
    }
}
