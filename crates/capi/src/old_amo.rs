//! The atomics' names from before 1.4.
#![allow(unsafe_code)] // passes C's arguments on to `amo`

use crate::amo;
use crate::context::Context;
use crate::world::Name;
use crosswarp_shmem::{AtomicInt, AtomicValue};
use std::ffi::c_int;

macro_rules! old_names {
    ($($old:ident<$bound:ident>($($argument:ident: $ty:ty),*) $(-> $result:ty)? = $new:ident),* $(,)?) => {$(
        #[inline(always)]
        pub(crate) unsafe fn $old<T: $bound>(name: Name, $($argument: $ty),*) $(-> $result)? {
            // SAFETY: by the caller.
            unsafe { amo::$new(name, Context::DEFAULT, $($argument),*) }
        }
    )*};
}
old_names!(
    cswap<AtomicInt>(dest: *mut T, cond: T, value: T, pe: c_int) -> T = compare_swap,
    fadd<AtomicInt>(dest: *mut T, value: T, pe: c_int) -> T = fetch_add,
    finc<AtomicInt>(dest: *mut T, pe: c_int) -> T = fetch_inc,
    add<AtomicInt>(dest: *mut T, value: T, pe: c_int) = add,
    inc<AtomicInt>(dest: *mut T, pe: c_int) = inc,
    swap<AtomicValue>(dest: *mut T, value: T, pe: c_int) -> T = swap,
    fetch<AtomicValue>(source: *const T, pe: c_int) -> T = fetch,
    set<AtomicValue>(dest: *mut T, value: T, pe: c_int) = set,
);
