//! Puts and gets from the host. What fails is said; these functions return nothing.
#![allow(unsafe_code)] // copies between the program's addresses

use crate::driver;
use crate::gpu::Gpu;
use crate::on::On;
use bytemuck::Pod;
use crosswarp_cuda::Stream;
use std::ffi::c_int;

/// Bytes of `n` elements; what overflows is more than any memory.
pub(crate) fn bytes_of<T>(n: usize) -> usize {
    n.saturating_mul(size_of::<T>())
}

/// `T_p`: one store.
pub(crate) unsafe fn p<T: Pod>(on: On, dest: *mut T, value: T, pe: c_int) {
    let mut word = [0; 8];
    word[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    let value = (u64::from_ne_bytes(word), size_of::<T>());
    let _ = on.give(|gpu, stream| gpu.store(stream, dest.addr() as u64, value, pe));
}

/// `T_g`: waits for the stream.
pub(crate) unsafe fn g<T: Pod>(on: On, source: *const T, pe: c_int) -> T {
    let mut value = T::zeroed();
    let _ = on.give(|gpu, stream| {
        let from = gpu.remote(source.addr() as u64, size_of::<T>(), pe)?;
        if gpu.is_far(pe) {
            let word = gpu.fetch(stream, source.addr() as u64, size_of::<T>(), pe)?;
            value = bytemuck::pod_read_unaligned(&word.to_ne_bytes()[..size_of::<T>()]);
            return Ok(());
        }
        let to = (&raw mut value).expose_provenance() as u64;
        // SAFETY: both are of this size, and the copy is waited for.
        unsafe { driver::copy(to, from, size_of::<T>(), stream.handle()) }
            .map_err(|error| error.to_string())?;
        stream.synchronize().map_err(|error| error.to_string())
    });
    value
}

pub(crate) unsafe fn put_to<T>(
    gpu: &Gpu,
    stream: &Stream,
    dest: *mut T,
    source: *const T,
    n: usize,
    pe: c_int,
) -> Result<(), String> {
    let bytes = bytes_of::<T>(n);
    let to = gpu.remote(dest.addr() as u64, bytes, pe)?;
    if gpu.is_far(pe) {
        let (to, from) = ((dest.addr() as u64, 1), (source.addr() as u64, 1));
        // SAFETY: as below.
        return unsafe { gpu.copy_over_hosts(stream, true, from, to, (bytes, 1), pe) };
    }
    // SAFETY: the destination is symmetric; the source is the program's, as long as it says.
    unsafe { driver::copy(to, source.addr() as u64, bytes, stream.handle()) }
        .map_err(|error| error.to_string())
}

unsafe fn get_from<T>(
    gpu: &Gpu,
    stream: &Stream,
    dest: *mut T,
    source: *const T,
    n: usize,
    pe: c_int,
) -> Result<(), String> {
    let bytes = bytes_of::<T>(n);
    let from = gpu.remote(source.addr() as u64, bytes, pe)?;
    if gpu.is_far(pe) {
        let (to, from) = ((dest.addr() as u64, 1), (source.addr() as u64, 1));
        // SAFETY: as below.
        return unsafe { gpu.copy_over_hosts(stream, false, to, from, (bytes, 1), pe) };
    }
    // SAFETY: as above, the other way round.
    unsafe { driver::copy(dest.addr() as u64, from, bytes, stream.handle()) }
        .map_err(|error| error.to_string())
}

pub(crate) unsafe fn put<T>(on: On, dest: *mut T, source: *const T, n: usize, pe: c_int) {
    // SAFETY: by the caller.
    let _ = on.give(|gpu, stream| unsafe { put_to(gpu, stream, dest, source, n, pe) });
}

pub(crate) unsafe fn put_nbi<T>(on: On, dest: *mut T, source: *const T, n: usize, pe: c_int) {
    // SAFETY: by the caller.
    let _ = on.give_nbi(|gpu, stream| unsafe { put_to(gpu, stream, dest, source, n, pe) });
}

pub(crate) unsafe fn get<T>(on: On, dest: *mut T, source: *const T, n: usize, pe: c_int) {
    // SAFETY: by the caller.
    let _ = on.give(|gpu, stream| unsafe { get_from(gpu, stream, dest, source, n, pe) });
}

pub(crate) unsafe fn get_nbi<T>(on: On, dest: *mut T, source: *const T, n: usize, pe: c_int) {
    // SAFETY: by the caller.
    let _ = on.give_nbi(|gpu, stream| unsafe { get_from(gpu, stream, dest, source, n, pe) });
}

/// Bytes between elements `stride` apart, which is positive.
fn apart<T>(stride: isize) -> usize {
    bytes_of::<T>(stride.unsigned_abs())
}

/// Bytes from the first of `n` elements `stride` apart to the last, that one included.
fn span<T>(n: usize, stride: isize) -> Result<usize, String> {
    let stride = usize::try_from(stride)
        .ok()
        .filter(|&stride| stride > 0)
        .ok_or_else(|| format!("a stride of {stride}, but it is at least 1"))?;
    Ok(match n {
        0 => 0,
        _ => bytes_of::<T>((n - 1).saturating_mul(stride).saturating_add(1)),
    })
}

pub(crate) unsafe fn iput<T>(
    on: On,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    n: usize,
    pe: c_int,
) {
    let _ = on.give(|gpu, stream| {
        span::<T>(n, sst)?;
        let to = gpu.remote(dest.addr() as u64, span::<T>(n, dst)?, pe)?;
        let from = source.addr() as u64;
        if gpu.is_far(pe) {
            let (to, from) = (
                (dest.addr() as u64, apart::<T>(dst)),
                (from, apart::<T>(sst)),
            );
            // SAFETY: the destination is symmetric; the source is the program's, as long as it says.
            return unsafe { gpu.copy_over_hosts(stream, true, from, to, (n, size_of::<T>()), pe) };
        }
        gpu.strided(stream, (to, dst), (from, sst), (n, size_of::<T>()))
    });
}

pub(crate) unsafe fn iget<T>(
    on: On,
    dest: *mut T,
    source: *const T,
    dst: isize,
    sst: isize,
    n: usize,
    pe: c_int,
) {
    let _ = on.give(|gpu, stream| {
        span::<T>(n, dst)?;
        let from = gpu.remote(source.addr() as u64, span::<T>(n, sst)?, pe)?;
        let to = dest.addr() as u64;
        if gpu.is_far(pe) {
            let (to, from) = (
                (to, apart::<T>(dst)),
                (source.addr() as u64, apart::<T>(sst)),
            );
            // SAFETY: as above, the other way round.
            return unsafe {
                gpu.copy_over_hosts(stream, false, to, from, (n, size_of::<T>()), pe)
            };
        }
        gpu.strided(stream, (to, dst), (from, sst), (n, size_of::<T>()))
    });
}
