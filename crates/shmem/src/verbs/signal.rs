//! Signals, and waiting for values that other PEs write.

use crate::memory::symmetric::SymRef;
use crate::verbs::raw::atomic::AtomicInt;
use crate::verbs::raw::signal::SignalOp;
use crate::wait::waiter::{Cmp, Wait, WaitError};
use crate::world::pe::Pe;
use bytemuck::Pod;

/// The signal word.
fn single(signal: SymRef<'_, u64>) -> SymRef<'_, u64> {
    assert_eq!(signal.len(), 1, "words of the signal");
    signal
}

/// Point-to-point synchronisation.
impl Pe {
    /// Copies `source` into `dest` on `pe`, then changes the one word `signal` there.
    ///
    /// Memory ordering: whoever sees the new signal through [`signal_wait_until`] (or any Acquire
    /// read) also sees the data. Other puts are not ordered by it.
    ///
    /// ```
    /// use crosswarp_shmem::{Cmp, SignalOp};
    /// // A ring: everyone hands its number to the right and learns its left neighbour's.
    /// let got = crosswarp_shmem::spmd(3, |pe| {
    ///     let (number, signal) = (pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    ///     let right = (pe.my_pe() + 1) % pe.n_pes();
    ///     pe.put_signal(&number, &[pe.my_pe() as u32], &signal, 1, SignalOp::Set, right);
    ///     pe.signal_wait_until(&signal, Cmp::Eq, 1)?;
    ///     Ok::<_, crosswarp_shmem::Error>(pe.g(&number, pe.my_pe()))
    /// })
    /// .unwrap();
    /// assert_eq!(got, [Ok(2), Ok(0), Ok(1)]);
    /// ```
    ///
    /// [`signal_wait_until`]: Self::signal_wait_until
    ///
    /// # Panics
    /// If `pe` does not exist, the lengths differ, or `signal` is not one single word.
    #[inline]
    pub fn put_signal<'a, 'b, T: Pod>(
        &self,
        dest: impl Into<SymRef<'a, T>>,
        source: &[T],
        signal: impl Into<SymRef<'b, u64>>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) {
        let (dest, signal) = (dest.into(), signal.into());
        if self.endpoint.peer(pe).heap.is_mapped() {
            self.put(dest, source, pe);
            return self.signal(signal, value, op, pe);
        }
        assert_eq!(
            dest.len(),
            source.len(),
            "elements of the destination and of the source"
        );
        let data = (dest.offset(), source.as_ptr().cast(), size_of_val(source));
        let signal = (single(signal).offset(), op.into(), value);
        // SAFETY: the source is a valid slice of so many bytes.
        #[allow(unsafe_code)]
        unsafe {
            self.endpoint.remote_put_signal(pe, data, signal);
        }
    }

    /// Changes the one word `signal` on `pe`. Ordered like [`put_signal`](Self::put_signal): data put
    /// to `pe` before are visible to whoever sees the new signal.
    ///
    /// # Panics
    /// If `pe` does not exist or `signal` is not one single word.
    #[inline]
    pub fn signal<'a>(
        &self,
        signal: impl Into<SymRef<'a, u64>>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) {
        let signal = signal.into();
        if !self.endpoint.peer(pe).heap.is_mapped() {
            let signal = (single(signal).offset(), op.into(), value);
            return self.endpoint.remote_signal(pe, signal);
        }
        // Both are at least Release: the data stored before are visible before the signal. Both are
        // atomic, so a Set and an Add from different PEs never tear or lose each other.
        match op {
            SignalOp::Set => self.atomic_set(signal, value, pe),
            SignalOp::Add => self.atomic_add(signal, value, pe),
        }
    }

    /// Reads this PE's own signal word.
    ///
    /// # Panics
    /// If `signal` is not one single word.
    #[inline]
    pub fn signal_fetch<'a>(&self, signal: impl Into<SymRef<'a, u64>>) -> u64 {
        self.atomic_fetch(signal, self.my_pe())
    }

    /// Waits until this PE's own signal word compares as asked; returns the word that did.
    ///
    /// Memory ordering: Acquire; the data of the [`put_signal`](Self::put_signal) that wrote it are
    /// visible.
    ///
    /// # Errors
    /// [`WaitError`] when the configured time is over or nobody can write the word any more.
    ///
    /// # Panics
    /// If `signal` is not one single word.
    #[inline]
    pub fn signal_wait_until<'a>(
        &self,
        signal: impl Into<SymRef<'a, u64>>,
        cmp: Cmp,
        value: u64,
    ) -> Result<u64, WaitError> {
        self.wait_until(signal, cmp, value)
    }

    /// Waits until this PE's own integer `object` compares as asked; returns the value that did.
    /// Any put, atomic or signal of another PE may write it.
    ///
    /// Memory ordering: Acquire. The value is ordered after what its writer issued before a
    /// [`fence`](Self::fence) or [`quiet`](Self::quiet).
    ///
    /// # Errors
    /// [`WaitError`] when the configured time is over or nobody can write the value any more.
    ///
    /// # Panics
    /// If `object` is not one single element.
    #[inline]
    pub fn wait_until<'a, T: AtomicInt>(
        &self,
        object: impl Into<SymRef<'a, T>>,
        cmp: Cmp,
        value: T,
    ) -> Result<T, WaitError> {
        let object = object.into();
        let wait = || Wait::Value {
            offset: object.offset(),
            cmp,
            expected: value.to_u64(),
            signed: T::SIGNED,
        };
        self.endpoint.waiter().until(wait, || {
            let seen = self.atomic_fetch(object, self.my_pe());
            cmp.holds(seen, value).then_some(seen)
        })
    }

    /// Whether this PE's own integer `object` compares as asked; does not wait. Ordered like
    /// [`wait_until`](Self::wait_until) when it does.
    ///
    /// # Panics
    /// If `object` is not one single element.
    #[inline]
    pub fn test<'a, T: AtomicInt>(
        &self,
        object: impl Into<SymRef<'a, T>>,
        cmp: Cmp,
        value: T,
    ) -> bool {
        let holds = cmp.holds(self.atomic_fetch(object, self.my_pe()), value);
        if !holds {
            self.endpoint.send_waiting();
        }
        holds
    }
}
