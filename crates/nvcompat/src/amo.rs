//! Atomic operations from the host: a kernel of one thread each, since the host's own are not atomic with a GPU's.
#![allow(unsafe_code)] // C's functions: the caller promises what NVSHMEM asks of the arguments

use crate::say::say;
use crate::state::world_for;
use bytemuck::Pod;
use std::ffi::c_int;

// As in kernels/words.cu.
const FETCH: i32 = 0;
const SET: i32 = 1;
const SWAP: i32 = 2;
const COMPARE_SWAP: i32 = 3;
const ADD: i32 = 4;
const AND: i32 = 5;
const OR: i32 = 6;
const XOR: i32 = 7;

fn word<T: Pod>(value: T) -> u64 {
    let mut word = [0; 8];
    word[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    u64::from_ne_bytes(word)
}

/// What was there before; zero, and a line, if it failed.
fn atomic<T: Pod>(address: *const T, op: i32, value: T, cond: T, pe: c_int) -> T {
    const NAME: &str = "an atomic operation of the host";
    let bytes = size_of::<T>();
    let old = world_for(NAME).and_then(|world| world.gpu()).map(|gpu| {
        let operands = (op, word(value), word(cond));
        gpu.atomic(address.addr() as u64, bytes, operands, pe)
            .unwrap_or_else(|error| {
                say(format_args!("{NAME}: {error}"));
                0
            })
    });
    let old = old.unwrap_or(0).to_ne_bytes();
    bytemuck::pod_read_unaligned(&old[..bytes])
}

pub(crate) unsafe fn fetch<T: Pod>(source: *const T, pe: c_int) -> T {
    atomic(source, FETCH, T::zeroed(), T::zeroed(), pe)
}
pub(crate) unsafe fn set<T: Pod>(dest: *mut T, value: T, pe: c_int) {
    atomic(dest, SET, value, T::zeroed(), pe);
}
pub(crate) unsafe fn swap<T: Pod>(dest: *mut T, value: T, pe: c_int) -> T {
    atomic(dest, SWAP, value, T::zeroed(), pe)
}
pub(crate) unsafe fn compare_swap<T: Pod>(dest: *mut T, cond: T, value: T, pe: c_int) -> T {
    atomic(dest, COMPARE_SWAP, value, cond, pe)
}
/// One, of an integer of any width, little-endian.
fn one<T: Pod>() -> T {
    bytemuck::pod_read_unaligned(&1u64.to_ne_bytes()[..size_of::<T>()])
}
pub(crate) unsafe fn fetch_inc<T: Pod>(dest: *mut T, pe: c_int) -> T {
    atomic(dest, ADD, one(), T::zeroed(), pe)
}
pub(crate) unsafe fn inc<T: Pod>(dest: *mut T, pe: c_int) {
    atomic(dest, ADD, one(), T::zeroed(), pe);
}

macro_rules! operations {
    ($($fetch:ident $plain:ident = $op:ident),*) => {$(
        pub(crate) unsafe fn $fetch<T: Pod>(dest: *mut T, value: T, pe: c_int) -> T {
            atomic(dest, $op, value, T::zeroed(), pe)
        }
        pub(crate) unsafe fn $plain<T: Pod>(dest: *mut T, value: T, pe: c_int) {
            atomic(dest, $op, value, T::zeroed(), pe);
        }
    )*};
}
operations!(
    fetch_add add = ADD,
    fetch_and and = AND,
    fetch_or or = OR,
    fetch_xor xor = XOR
);
