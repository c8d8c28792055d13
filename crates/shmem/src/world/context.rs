//! Contexts: one-sided access with ordering and completion of its own, relative to a team.

use crate::memory::symmetric::SymRef;
use crate::team::Team;
use crate::transport::remote::DeliveryError;
use crate::verbs::raw::atomic::{AtomicInt, AtomicValue};
use crate::verbs::raw::signal::SignalOp;
use crate::verbs::scope::{Operations, scoped};
use crate::world::pe::Pe;
use bytemuck::Pod;
use std::fmt;

/// What a program promises about its use of a [`Context`], as OpenSHMEM names it. On one host operations
/// are complete when they return, so there is nothing to be gained from any of them: a context is always
/// usable from all threads, for all operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContextOptions {
    /// Not used by two threads at a time.
    pub serialized: bool,
    /// Used by the thread that made it only.
    pub private: bool,
    /// No stores of any kind before its `quiet` and `fence` need be ordered by them.
    pub nostore: bool,
}

/// One-sided access relative to a team: PEs are numbered as in the team, and `fence` and `quiet` order and
/// complete what was issued through this context. The `Pe` itself is the default context, of the world.
///
/// ```
/// let got = crosswarp_shmem::spmd(4, |pe| {
///     let word = pe.alloc_zeroed::<u32>(1)?;
///     // Of the odd PEs: each writes to the next.
///     if let Some(odd) = pe.world().split_strided(1, 2, 2)? {
///         let context = odd.context(Default::default());
///         context.p(&word, 10 + pe.my_pe() as u32, 1 - odd.my_pe());
///         context.quiet()?;
///     }
///     pe.barrier()?;
///     Ok::<_, crosswarp_shmem::Error>(pe.g(&word, pe.my_pe()))
/// });
/// assert_eq!(got.unwrap(), [Ok(0), Ok(13), Ok(0), Ok(11)]);
/// ```
pub struct Context<'t> {
    team: &'t Team<'t>,
    options: ContextOptions,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context of {:?}", self.team)
    }
}

impl<'a> Team<'a> {
    /// A context of this team. Not collective.
    pub fn context<'t>(&'t self, options: ContextOptions) -> Context<'t> {
        Context {
            team: self,
            options,
        }
    }
}

impl Context<'_> {
    #[inline(always)]
    fn pe(&self) -> &Pe {
        Pe::of(self.team.endpoint)
    }

    /// Its team.
    pub fn team(&self) -> &Team<'_> {
        self.team
    }

    /// What was promised.
    pub fn options(&self) -> ContextOptions {
        self.options
    }

    /// Orders what was issued through this context; see [`Pe::fence`](crate::Pe::fence).
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn fence(&self) -> Result<(), DeliveryError> {
        self.pe().fence()
    }

    /// Completes what was issued through this context; see [`Pe::quiet`](crate::Pe::quiet).
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn quiet(&self) -> Result<(), DeliveryError> {
        self.pe().quiet()
    }

    /// Issues non-blocking operations, complete on return; see [`Pe::scope`](crate::Pe::scope).
    ///
    /// # Errors
    /// As there.
    pub fn scope<'env, R, E: From<DeliveryError>>(
        &self,
        work: impl FnOnce(&Operations<'_, 'env>) -> Result<R, E>,
    ) -> Result<R, E> {
        scoped(self.pe(), Some(self.team), work)
    }
}

/// The operations of `Pe` that name a PE, numbered as in the team.
macro_rules! forward {
    ($(fn $name:ident<$($lifetime:lifetime,)* $T:ident: $bound:ident>
        ($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        /// As the methods of the same names of [`Pe`](crate::Pe), with `pe` numbered as in the team; all panic if the
        /// team has no such PE.
        impl Context<'_> {$(
            #[doc = concat!("See [`Pe::", stringify!($name), "`](crate::Pe::", stringify!($name), ").")]
            #[inline]
            #[allow(clippy::too_many_arguments)] // those of the operation
            pub fn $name<$($lifetime,)* $T: $bound>(&self, $($arg: $type,)* pe: usize) $(-> $result)? {
                self.pe().$name($($arg,)* self.team.world_pe(pe))
            }
        )*}
    };
}
forward! {
    fn put<'a, T: Pod>(dest: impl Into<SymRef<'a, T>>, source: &[T]);
    fn get<'a, T: Pod>(dest: &mut [T], source: impl Into<SymRef<'a, T>>);
    fn p<'a, T: Pod>(dest: impl Into<SymRef<'a, T>>, value: T);
    fn g<'a, T: Pod>(source: impl Into<SymRef<'a, T>>) -> T;
    fn iput<'a, T: Pod>(
        dest: impl Into<SymRef<'a, T>>, dest_stride: usize, source: &[T], source_stride: usize, n: usize
    );
    fn iget<'a, T: Pod>(
        dest: &mut [T], dest_stride: usize, source: impl Into<SymRef<'a, T>>, source_stride: usize,
        n: usize
    );
    fn put_signal<'a, 'b, T: Pod>(
        dest: impl Into<SymRef<'a, T>>, source: &[T], signal: impl Into<SymRef<'b, u64>>, value: u64,
        op: SignalOp
    );
    fn atomic_fetch<'a, T: AtomicValue>(source: impl Into<SymRef<'a, T>>) -> T;
    fn atomic_set<'a, T: AtomicValue>(dest: impl Into<SymRef<'a, T>>, value: T);
    fn atomic_swap<'a, T: AtomicValue>(dest: impl Into<SymRef<'a, T>>, value: T) -> T;
    fn atomic_compare_swap<'a, T: AtomicInt>(
        dest: impl Into<SymRef<'a, T>>, expected: T, value: T
    ) -> T;
    fn atomic_fetch_inc<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>) -> T;
    fn atomic_inc<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>);
    fn atomic_fetch_add<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>, value: T) -> T;
    fn atomic_add<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>, value: T);
    fn atomic_fetch_and<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>, value: T) -> T;
    fn atomic_and<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>, value: T);
    fn atomic_fetch_or<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>, value: T) -> T;
    fn atomic_or<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>, value: T);
    fn atomic_fetch_xor<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>, value: T) -> T;
    fn atomic_xor<'a, T: AtomicInt>(dest: impl Into<SymRef<'a, T>>, value: T);
}
