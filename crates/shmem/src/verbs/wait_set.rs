//! Waiting for some of several values.

use crate::memory::symmetric::SymRef;
use crate::verbs::raw::atomic::AtomicInt;
use crate::verbs::raw::wait::Set;
use crate::wait::waiter::{Cmp, Wait, WaitError};
use crate::world::pe::Pe;

/// Several of a PE's own symmetric integers, each with the condition waited for.
///
/// ```
/// use crosswarp_shmem::{Cmp, WaitSet};
/// let order = crosswarp_shmem::spmd(3, |pe| {
///     let flags = pe.alloc_zeroed::<u32>(pe.n_pes())?;
///     for other in 0..pe.n_pes() {
///         pe.atomic_set(flags.at(pe.my_pe()), 1, other);
///     }
///     // Whoever comes first is served first, until all have been.
///     let mut done = vec![false; pe.n_pes()];
///     while let Some(next) =
///         pe.wait_until_any(&WaitSet::new(&flags, Cmp::Eq, 1).without(&done))?
///     {
///         done[next] = true;
///     }
///     Ok::<_, crosswarp_shmem::Error>(done)
/// })
/// .unwrap();
/// assert_eq!(order, vec![Ok(vec![true; 3]); 3]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WaitSet<'a, T> {
    objects: SymRef<'a, T>,
    without: &'a [bool],
    cmp: Cmp,
    values: Values<'a, T>,
}

#[derive(Clone, Copy, Debug)]
enum Values<'a, T> {
    One(T),
    Each(&'a [T]),
}

impl<'a, T: AtomicInt> WaitSet<'a, T> {
    /// All elements of `objects`, compared with one `value`.
    pub fn new(objects: impl Into<SymRef<'a, T>>, cmp: Cmp, value: T) -> Self {
        Self {
            objects: objects.into(),
            without: &[],
            cmp,
            values: Values::One(value),
        }
    }

    /// All elements of `objects`, each compared with its own value.
    ///
    /// # Panics
    /// If there are not as many values as elements.
    pub fn each(objects: impl Into<SymRef<'a, T>>, cmp: Cmp, values: &'a [T]) -> Self {
        let objects = objects.into();
        assert!(
            values.len() == objects.len(),
            "{} values for {} elements",
            values.len(),
            objects.len()
        );
        Self {
            objects,
            without: &[],
            cmp,
            values: Values::Each(values),
        }
    }

    /// Leaves out the elements marked `true`.
    ///
    /// # Panics
    /// If there are not as many marks as elements.
    pub fn without(self, marks: &'a [bool]) -> Self {
        assert!(
            marks.len() == self.objects.len(),
            "{} marks for {} elements",
            marks.len(),
            self.objects.len()
        );
        Self {
            without: marks,
            ..self
        }
    }

    fn value(&self, i: usize) -> T {
        match self.values {
            Values::One(value) => value,
            Values::Each(values) => values[i],
        }
    }
}

/// A set in this PE's own memory.
struct LocalSet<'s, 'a, T> {
    pe: &'s Pe,
    set: &'s WaitSet<'a, T>,
}

impl<T: AtomicInt> Set for LocalSet<'_, '_, T> {
    fn len(&self) -> usize {
        self.set.objects.len()
    }

    fn includes(&self, i: usize) -> bool {
        self.set.without.get(i) != Some(&true)
    }

    fn holds(&self, i: usize) -> bool {
        let object = self.set.objects.at(i);
        self.pe.test(object, self.set.cmp, self.set.value(i))
    }

    fn wait_for(&self, i: usize) -> Result<(), WaitError> {
        let object = self.set.objects.at(i);
        let value = self.set.value(i);
        self.pe.wait_until(object, self.set.cmp, value).map(drop)
    }

    fn address(&self) -> usize {
        // No two objects of a heap begin at one offset. One more, since no address is 0.
        self.set.objects.offset() + 1
    }

    fn name(&self) -> Wait {
        Wait::Values {
            offset: self.set.objects.offset(),
            count: self.len(),
            cmp: self.set.cmp,
        }
    }
}

/// Waiting for and testing several values, ordered as [`wait_until`](Self::wait_until).
impl Pe {
    /// Waits until every element of `set` has compared as asked, each at some time.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub fn wait_until_all<T: AtomicInt>(&self, set: &WaitSet<'_, T>) -> Result<(), WaitError> {
        LocalSet { pe: self, set }.wait_all()
    }

    /// Waits until some element of `set` compares as asked and returns its index; `None` at once if the
    /// set is empty. If several do, a series of calls returns each of them.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub fn wait_until_any<T: AtomicInt>(
        &self,
        set: &WaitSet<'_, T>,
    ) -> Result<Option<usize>, WaitError> {
        LocalSet { pe: self, set }.wait_any(&self.endpoint)
    }

    /// Waits until at least one element of `set` compares as asked and returns the indices of all that do,
    /// ascending; nothing, at once, if the set is empty.
    ///
    /// # Errors
    /// As [`wait_until`](Self::wait_until).
    pub fn wait_until_some<T: AtomicInt>(
        &self,
        set: &WaitSet<'_, T>,
    ) -> Result<Vec<usize>, WaitError> {
        let mut found = Vec::new();
        LocalSet { pe: self, set }.wait_some(&self.endpoint, |i| found.push(i))?;
        Ok(found)
    }

    /// Whether every element of `set` compares as asked; so for an empty set.
    pub fn test_all<T: AtomicInt>(&self, set: &WaitSet<'_, T>) -> bool {
        LocalSet { pe: self, set }.all_hold()
    }

    /// The index of an element of `set` that compares as asked. If several do, a series of calls returns
    /// each of them.
    pub fn test_any<T: AtomicInt>(&self, set: &WaitSet<'_, T>) -> Option<usize> {
        LocalSet { pe: self, set }.find()
    }

    /// The indices of all elements of `set` that compare as asked, ascending.
    pub fn test_some<T: AtomicInt>(&self, set: &WaitSet<'_, T>) -> Vec<usize> {
        let mut found = Vec::new();
        LocalSet { pe: self, set }.find_all(|i| found.push(i));
        found
    }
}
