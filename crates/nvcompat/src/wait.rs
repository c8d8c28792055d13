//! Waits in stream order.
#![allow(unsafe_code)] // C's functions: the caller promises what NVSHMEM asks of the arguments

use crate::on::On;
use bytemuck::Pod;
use std::ffi::c_int;

/// What words can be waited for: their bytes, negative if signed.
pub(crate) trait Word: Pod {
    const KIND: i32;
    fn word(self) -> u64;
}

macro_rules! words {
    ($($word:ty = $kind:literal),*) => {$(
        impl Word for $word {
            const KIND: i32 = $kind;
            fn word(self) -> u64 {
                self as u64
            }
        }
    )*};
}
words!(i16 = -2, u16 = 2, i32 = -4, u32 = 4, i64 = -8, u64 = 8);

/// Refuses what is none of `NVSHMEM_CMP_…`.
pub(crate) fn comparison(cmp: c_int) -> Result<(), String> {
    match cmp {
        0..=5 => Ok(()),
        _ => Err(format!("the comparison is {cmp}, none of NVSHMEM_CMP_*")),
    }
}

pub(crate) unsafe fn until<T: Word>(on: On, ivar: *mut T, cmp: c_int, value: T) {
    let _ = on.give(|gpu, stream| {
        comparison(cmp)?;
        gpu.wait_word(stream, ivar.addr() as u64, (T::KIND, cmp, value.word()))
    });
}

pub(crate) unsafe fn until_all<T: Word>(
    on: On,
    ivars: *mut T,
    n: usize,
    status: *const c_int,
    cmp: c_int,
    value: T,
) {
    let _ = on.give(|gpu, stream| {
        comparison(cmp)?;
        let words = (ivars.addr() as u64, n, status.addr() as u64);
        gpu.wait_words(stream, words, (T::KIND, cmp, value.word(), true))
    });
}

pub(crate) unsafe fn until_all_vector<T: Word>(
    on: On,
    ivars: *mut T,
    n: usize,
    status: *const c_int,
    cmp: c_int,
    values: *mut T,
) {
    let _ = on.give(|gpu, stream| {
        comparison(cmp)?;
        let words = (ivars.addr() as u64, n, status.addr() as u64);
        gpu.wait_words(stream, words, (T::KIND, cmp, values.addr() as u64, false))
    });
}
