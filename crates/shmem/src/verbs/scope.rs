//! Non-blocking operations: those of a scope, which ends when they are complete.
//!
//! What they read and write is borrowed until then, so that nothing need be copied or waited for before. Between mapped
//! heaps there is nothing to overlap them with, and each is done when its call returns. What comes from other hosts is
//! under way together, up to 1024 operations or 4 MiB; who asks for more waits for some of it.
#![allow(unsafe_code)] // has what is borrowed written after its call has returned

use crate::memory::symmetric::SymRef;
use crate::team::Team;
use crate::transport::remote::DeliveryError;
use crate::verbs::raw::atomic::{AtomicInt, AtomicValue};
use crate::verbs::raw::signal::SignalOp;
use crate::world::pe::Pe;
use bytemuck::Pod;
use std::cell::Cell;
use std::marker::PhantomData;

impl Pe {
    /// Issues non-blocking operations in `work`. When this returns, they are complete, as after
    /// [`quiet`](Self::quiet), whatever `work` returned.
    ///
    /// # Errors
    /// What `work` returns; else that what was issued can not be delivered.
    ///
    /// ```
    /// let got = crosswarp_shmem::spmd(2, |pe| {
    ///     let words = pe.alloc_zeroed::<u32>(4)?;
    ///     let mine = [pe.my_pe() as u32 + 1; 4];
    ///     let mut counted = 0;
    ///     let ticket = pe.alloc_zeroed::<u64>(1)?;
    ///     pe.scope(|ops| {
    ///         ops.put(&words, &mine, 1 - pe.my_pe());
    ///         ops.atomic_fetch_add(&mut counted, &ticket, 1, 0);
    ///         Ok::<_, crosswarp_shmem::Error>(())
    ///     })?;
    ///     assert!(counted < 2);
    ///     pe.barrier()?;
    ///     Ok::<_, crosswarp_shmem::Error>(pe.g(words.range(3..4), pe.my_pe()))
    /// });
    /// assert_eq!(got.unwrap(), [Ok(2), Ok(1)]);
    /// ```
    pub fn scope<'env, R, E: From<DeliveryError>>(
        &self,
        work: impl FnOnce(&Operations<'_, 'env>) -> Result<R, E>,
    ) -> Result<R, E> {
        scoped(self, None, work)
    }
}

/// The scope of a PE or, with a team, of a context.
pub(crate) fn scoped<'env, R, E: From<DeliveryError>>(
    pe: &Pe,
    team: Option<&Team<'_>>,
    work: impl FnOnce(&Operations<'_, 'env>) -> Result<R, E>,
) -> Result<R, E> {
    let operations = Operations {
        pe,
        team,
        memory: PhantomData,
    };
    let result = work(&operations);
    // On a panic the drop completes them.
    let delivered = pe.quiet();
    let value = result?;
    delivered?;
    Ok(value)
}

/// Non-blocking operations of one [scope](Pe::scope). A `pe` is numbered as in the world or, in the scope of a
/// [`Context`](crate::Context), as in its team.
///
/// All panic as the operations of the same names of [`Pe`] do.
// What is to be written later is borrowed exclusively for `'env`, which outlives the call of `scoped`; and `scoped` does
// not return, nor unwind, before it has dropped this, with a quiet, after which nothing is written any more. `work` gets
// a reference only, so it can't keep this from being dropped.
pub struct Operations<'scope, 'env> {
    pe: &'scope Pe,
    team: Option<&'scope Team<'scope>>,
    /// Invariant: were `'env` allowed to shrink, memory local to the scope's closure could be borrowed.
    memory: PhantomData<Cell<&'env ()>>,
}

impl Drop for Operations<'_, '_> {
    fn drop(&mut self) {
        self.pe.endpoint.quiet();
    }
}

impl<'env> Operations<'_, 'env> {
    fn world_pe(&self, pe: usize) -> usize {
        self.team.map_or(pe, |team| team.world_pe(pe))
    }

    /// [`put`](Pe::put); `source` is read until the scope ends.
    #[inline]
    pub fn put<'a, T: Pod>(&self, dest: impl Into<SymRef<'a, T>>, source: &'env [T], pe: usize) {
        self.pe.put(dest, source, self.world_pe(pe));
    }

    /// [`get`](Pe::get); `dest` is written until the scope ends.
    #[inline]
    pub fn get<'a, T: Pod>(
        &self,
        dest: &'env mut [T],
        source: impl Into<SymRef<'a, T>>,
        pe: usize,
    ) {
        // SAFETY: see `Operations`.
        unsafe { self.pe.get_nbi(dest, source, self.world_pe(pe)) };
    }

    /// [`put_signal`](Pe::put_signal); `source` is read until the scope ends.
    #[inline]
    pub fn put_signal<'a, 'b, T: Pod>(
        &self,
        dest: impl Into<SymRef<'a, T>>,
        source: &'env [T],
        signal: impl Into<SymRef<'b, u64>>,
        value: u64,
        op: SignalOp,
        pe: usize,
    ) {
        let pe = self.world_pe(pe);
        self.pe.put_signal(dest, source, signal, value, op, pe);
    }

    /// [`atomic_fetch`](Pe::atomic_fetch) into `fetched`.
    #[inline]
    pub fn atomic_fetch<'a, T: AtomicValue>(
        &self,
        fetched: &'env mut T,
        source: impl Into<SymRef<'a, T>>,
        pe: usize,
    ) {
        // SAFETY: see `Operations`.
        unsafe { (self.pe).atomic_fetch_nbi(fetched, source, self.world_pe(pe)) };
    }

    /// [`atomic_swap`](Pe::atomic_swap), what was there into `fetched`.
    #[inline]
    pub fn atomic_swap<'a, T: AtomicValue>(
        &self,
        fetched: &'env mut T,
        dest: impl Into<SymRef<'a, T>>,
        value: T,
        pe: usize,
    ) {
        // SAFETY: see `Operations`.
        unsafe { (self.pe).atomic_swap_nbi(fetched, dest, value, self.world_pe(pe)) };
    }

    /// [`atomic_compare_swap`](Pe::atomic_compare_swap), what was there into `fetched`.
    #[inline]
    pub fn atomic_compare_swap<'a, T: AtomicInt>(
        &self,
        fetched: &'env mut T,
        dest: impl Into<SymRef<'a, T>>,
        expected: T,
        value: T,
        pe: usize,
    ) {
        let pe = self.world_pe(pe);
        // SAFETY: see `Operations`.
        unsafe { (self.pe).atomic_compare_swap_nbi(fetched, dest, expected, value, pe) };
    }

    /// [`atomic_fetch_inc`](Pe::atomic_fetch_inc), what was there into `fetched`.
    #[inline]
    pub fn atomic_fetch_inc<'a, T: AtomicInt>(
        &self,
        fetched: &'env mut T,
        dest: impl Into<SymRef<'a, T>>,
        pe: usize,
    ) {
        self.atomic_fetch_add(fetched, dest, T::ONE, pe);
    }
}

macro_rules! read_modify_write {
    ($($name:ident $nbi:ident)*) => {
        /// The operations with an operand.
        impl<'env> Operations<'_, 'env> {$(
            #[doc = concat!("[`", stringify!($name), "`](Pe::", stringify!($name), "), what was there into `fetched`.")]
            #[inline]
            pub fn $name<'a, T: AtomicInt>(
                &self,
                fetched: &'env mut T,
                dest: impl Into<SymRef<'a, T>>,
                value: T,
                pe: usize,
            ) {
                // SAFETY: see `Operations`.
                unsafe { self.pe.$nbi(fetched, dest, value, self.world_pe(pe)) };
            }
        )*}
    };
}
read_modify_write!(
    atomic_fetch_add atomic_fetch_add_nbi
    atomic_fetch_and atomic_fetch_and_nbi
    atomic_fetch_or atomic_fetch_or_nbi
    atomic_fetch_xor atomic_fetch_xor_nbi
);
