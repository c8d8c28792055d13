//! Waiting for and testing values by address, one or several.

use super::Raw;
use super::atomic::AtomicInt;
use super::fair;
use crate::wait::waiter::{Cmp, Wait, WaitError};
use crate::world::endpoint::Endpoint;
use std::sync::atomic::Ordering;

/// What the verbs on sets need of one, whether it is given by handles or by addresses.
pub(crate) trait Set {
    /// Number of elements, those left out included.
    fn len(&self) -> usize;
    /// Whether element `i` counts.
    fn includes(&self, i: usize) -> bool;
    /// Whether element `i` compares as asked, now.
    fn holds(&self, i: usize) -> bool;
    /// Waits until it does.
    fn wait_for(&self, i: usize) -> Result<(), WaitError>;
    /// Where the first element lies, to tell sets apart.
    fn address(&self) -> usize;
    /// What to call a wait for any of them.
    fn name(&self) -> Wait;

    fn included(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|&i| self.includes(i))
    }

    /// All need not hold at the same time: each has to have held once.
    fn wait_all(&self) -> Result<(), WaitError> {
        self.included().try_for_each(|i| self.wait_for(i))
    }

    /// `None` for an empty set.
    fn wait_any(&self, endpoint: &Endpoint) -> Result<Option<usize>, WaitError> {
        if self.included().next().is_none() {
            return Ok(None);
        }
        let begin = fair::begin(self.address(), self.len());
        let look = || self.find_from(begin);
        let found = endpoint.waiter().until(|| self.name(), look)?;
        fair::returned(self.address(), found);
        Ok(Some(found))
    }

    /// Hands over those that hold, at least one unless the set is empty; their number.
    fn wait_some(
        &self,
        endpoint: &Endpoint,
        mut found: impl FnMut(usize),
    ) -> Result<usize, WaitError> {
        if self.included().next().is_none() {
            return Ok(0);
        }
        let look = || match self.find_all(&mut found) {
            0 => None,
            n => Some(n),
        };
        endpoint.waiter().until(|| self.name(), look)
    }

    fn all_hold(&self) -> bool {
        self.included().all(|i| self.holds(i))
    }

    /// One that holds; a series of calls finds each that keeps holding.
    fn find(&self) -> Option<usize> {
        if self.len() == 0 {
            return None;
        }
        let found = self.find_from(fair::begin(self.address(), self.len()))?;
        fair::returned(self.address(), found);
        Some(found)
    }

    fn find_from(&self, begin: usize) -> Option<usize> {
        let mut around = (begin..self.len()).chain(0..begin);
        around.find(|&i| self.includes(i) && self.holds(i))
    }

    fn find_all(&self, mut found: impl FnMut(usize)) -> usize {
        let holding = self.included().filter(|&i| self.holds(i));
        holding.inspect(|&i| found(i)).count()
    }
}

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

/// A set whose pointers are valid, by the caller of one of the functions below.
struct RawSet<'a, T> {
    raw: Raw<'a>,
    set: WaitSet<T>,
}

impl<T: AtomicInt> RawSet<'_, T> {
    fn element(&self, i: usize) -> (*const T, T) {
        let value = match self.set.values {
            Values::One(value) => value,
            // SAFETY: as many values as elements, by the maker of the set.
            Values::Each(values) => unsafe { *values.add(i) },
        };
        (self.set.ivars.wrapping_add(i), value)
    }
}

impl<T: AtomicInt> Set for RawSet<'_, T> {
    fn len(&self) -> usize {
        self.set.n
    }

    fn includes(&self, i: usize) -> bool {
        let status = self.set.status;
        // SAFETY: null, or as many entries as elements, by the maker of the set.
        status.is_null() || unsafe { *status.add(i) } == 0
    }

    fn holds(&self, i: usize) -> bool {
        let (ivar, value) = self.element(i);
        // SAFETY: by the maker of the set.
        unsafe { self.raw.test(ivar, self.set.cmp, value) }
    }

    fn wait_for(&self, i: usize) -> Result<(), WaitError> {
        let (ivar, value) = self.element(i);
        // SAFETY: by the maker of the set.
        unsafe { self.raw.wait_until(ivar, self.set.cmp, value) }.map(drop)
    }

    fn address(&self) -> usize {
        self.set.ivars.addr()
    }

    fn name(&self) -> Wait {
        Wait::Values {
            offset: self.raw.endpoint.position(self.set.ivars.addr()),
            count: self.set.n,
            cmp: self.set.cmp,
        }
    }
}

/// What this PE's own integer holds. Own symmetric memory is where its address says.
///
/// # Safety
/// `ivar` is valid and aligned, and only accessed atomically while others write it.
#[inline(always)]
unsafe fn load_own<T: AtomicInt>(ivar: *const T) -> T {
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
            offset: self.endpoint.position(ivar.addr()),
            cmp,
            expected: value.to_u64(),
            signed: T::SIGNED,
        };
        self.endpoint.waiter().until(wait, || {
            // SAFETY: by the caller.
            let seen = unsafe { load_own(ivar) };
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
        let holds = cmp.holds(unsafe { load_own(ivar) }, value);
        if !holds {
            self.endpoint.send_waiting();
        }
        holds
    }

    /// Waits until every element of `set` has compared as asked, each at some time.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`].
    pub unsafe fn wait_until_all<T: AtomicInt>(self, set: WaitSet<T>) -> Result<(), WaitError> {
        RawSet { raw: self, set }.wait_all()
    }

    /// Waits until an element of `set` compares as asked and returns its index; `usize::MAX` at once if
    /// the set is empty. If several do, a series of calls returns each of them.
    ///
    /// # Errors
    /// [`WaitError`].
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`].
    pub unsafe fn wait_until_any<T: AtomicInt>(self, set: WaitSet<T>) -> Result<usize, WaitError> {
        let found = RawSet { raw: self, set }.wait_any(self.endpoint)?;
        Ok(found.unwrap_or(usize::MAX))
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
        // SAFETY: by the caller. Looks that find nothing write nothing, so there is one list.
        let found = unsafe { writer(indices) };
        RawSet { raw: self, set }.wait_some(self.endpoint, found)
    }

    /// Whether every element of `set` compares as asked; true for an empty set.
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`].
    pub unsafe fn test_all<T: AtomicInt>(self, set: WaitSet<T>) -> bool {
        RawSet { raw: self, set }.all_hold()
    }

    /// Index of an element of `set` that compares as asked; `usize::MAX` if none does. If several do, a
    /// series of calls returns each of them.
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`].
    pub unsafe fn test_any<T: AtomicInt>(self, set: WaitSet<T>) -> usize {
        let found = RawSet { raw: self, set }.find();
        found.unwrap_or(usize::MAX)
    }

    /// Writes the indices of all elements of `set` that compare as asked to the beginning of `indices`,
    /// ascending, and returns how many.
    ///
    /// # Safety
    /// See the [module](super) and [`WaitSet`]; `indices` has room for `n`.
    pub unsafe fn test_some<T: AtomicInt>(self, set: WaitSet<T>, indices: *mut usize) -> usize {
        // SAFETY: by the caller.
        let found = unsafe { writer(indices) };
        RawSet { raw: self, set }.find_all(found)
    }
}

/// Writes one index after the other.
///
/// # Safety
/// `indices` has room for as many as the result is called with.
unsafe fn writer(indices: *mut usize) -> impl FnMut(usize) {
    let mut next = indices;
    move |i| {
        // SAFETY: by the caller.
        unsafe { next.write(i) };
        next = next.wrapping_add(1);
    }
}
