//! Waiting for values and testing them.
#![allow(unsafe_code)] // addresses come from C, whose caller promises that they are what the function asks for

use crate::misuse;
use crate::world::{self, Name, bytes_of, enter};
use crosswarp_shmem::raw::{Values, WaitSet};
use crosswarp_shmem::{AtomicInt, Cmp, Pe, WaitError};
use std::ffi::c_int;

fn comparison(name: Name, cmp: c_int) -> Cmp {
    match cmp {
        0 => Cmp::Eq,
        1 => Cmp::Ne,
        2 => Cmp::Gt,
        3 => Cmp::Ge,
        4 => Cmp::Lt,
        5 => Cmp::Le,
        _ => misuse::end(name, format_args!("cmp is {cmp}, none of SHMEM_CMP_*")),
    }
}

/// What was waited for can not come any more: the process ends.
fn come<R>(name: Name, waited: Result<R, WaitError>) -> R {
    waited.unwrap_or_else(|error| misuse::end(name, format_args!("{error}")))
}

/// Waits for one value, which the function calls `argument`.
#[inline]
pub(crate) unsafe fn wait<T: AtomicInt>(
    name: Name,
    argument: Name,
    ivar: *const T,
    cmp: c_int,
    value: T,
) -> T {
    let me = enter(name, |check| check.atomic(argument, ivar));
    let cmp = comparison(name, cmp);
    // SAFETY: by the caller.
    come(name, unsafe { me.raw().wait_until(ivar, cmp, value) })
}

/// `shmem_wait_until`.
#[inline]
pub(crate) unsafe fn until<T: AtomicInt>(name: Name, ivar: *mut T, cmp: c_int, value: T) {
    // SAFETY: by the caller.
    unsafe { wait(name, "ivar", ivar, cmp, value) };
}

/// `shmem_wait`: until the value is another one.
#[inline]
pub(crate) unsafe fn differs<T: AtomicInt>(name: Name, ivar: *mut T, value: T) {
    // SAFETY: by the caller.
    unsafe { wait(name, "ivar", ivar, 1, value) };
}

/// `shmem_test`.
#[inline]
pub(crate) unsafe fn test<T: AtomicInt>(name: Name, ivar: *mut T, cmp: c_int, value: T) -> c_int {
    let me = enter(name, |check| check.atomic("ivar", ivar));
    let cmp = comparison(name, cmp);
    // SAFETY: by the caller.
    unsafe { me.raw().test(ivar, cmp, value) }.into()
}

#[inline]
fn set<T: AtomicInt>(
    name: Name,
    ivars: *const T,
    n: usize,
    status: *const c_int,
    cmp: c_int,
    values: Values<T>,
) -> (&'static Pe, WaitSet<T>) {
    let me = enter(name, |check| {
        check.symmetric("ivars", ivars, bytes_of::<T>(n));
    });
    if bytes_of::<T>(n) > isize::MAX as usize {
        world::symmetric(name, me, "ivars", ivars, bytes_of::<T>(n));
    }
    let cmp = comparison(name, cmp);
    let set = WaitSet {
        ivars,
        n,
        status,
        cmp,
        values,
    };
    (me, set)
}

/// Each of the set functions, with one value for all elements and with one for each.
macro_rules! of_sets {
    ($($one:ident $each:ident ($($indices:ident)?) -> $result:ty: |$name:ident, $raw:ident, $set:ident| $body:expr;)*) => {$(
        #[inline]
        pub(crate) unsafe fn $one<T: AtomicInt>(
            $name: Name, ivars: *mut T, n: usize, $($indices: *mut usize,)?
            status: *const c_int, cmp: c_int, value: T,
        ) -> $result {
            let (me, $set) = set($name, ivars, n, status, cmp, Values::One(value));
            let $raw = me.raw();
            // SAFETY: by the caller, who passes arrays as long as the function asks for.
            unsafe { $body }
        }

        #[inline]
        pub(crate) unsafe fn $each<T: AtomicInt>(
            $name: Name, ivars: *mut T, n: usize, $($indices: *mut usize,)?
            status: *const c_int, cmp: c_int, values: *mut T,
        ) -> $result {
            let (me, $set) = set($name, ivars, n, status, cmp, Values::Each(values));
            let $raw = me.raw();
            // SAFETY: as above.
            unsafe { $body }
        }
    )*};
}
of_sets! {
    until_all until_all_vector () -> (): |name, raw, set| come(name, raw.wait_until_all(set));
    until_any until_any_vector () -> usize: |name, raw, set| come(name, raw.wait_until_any(set));
    until_some until_some_vector (indices) -> usize:
        |name, raw, set| come(name, raw.wait_until_some(set, indices));
    test_all test_all_vector () -> c_int: |_name, raw, set| raw.test_all(set).into();
    test_any test_any_vector () -> usize: |_name, raw, set| raw.test_any(set);
    test_some test_some_vector (indices) -> usize: |_name, raw, set| raw.test_some(set, indices);
}
