//! Signals from the host.
#![allow(unsafe_code)] // C's functions: the caller promises what NVSHMEM asks of the arguments

use crate::on::On;
use crate::rma;
use std::ffi::c_int;

/// Whether `NVSHMEM_SIGNAL_…` adds.
pub(crate) fn adds(sig_op: c_int) -> Result<bool, String> {
    match sig_op {
        9 => Ok(false),
        10 => Ok(true),
        _ => Err(format!(
            "the operation is {sig_op}, neither NVSHMEM_SIGNAL_SET nor NVSHMEM_SIGNAL_ADD"
        )),
    }
}

pub(crate) unsafe fn op(on: On, sig_addr: *mut u64, value: u64, sig_op: c_int, pe: c_int) {
    let _ = on.give(|gpu, stream| {
        let adds = adds(sig_op)?;
        gpu.signal(stream, sig_addr.addr() as u64, (value, adds), pe)
    });
}

pub(crate) unsafe fn fetch(sig_addr: *mut u64) -> u64 {
    let pe = crate::state::world().map_or(0, |world| world.pe.my_pe() as c_int);
    // SAFETY: by the caller; the address is checked.
    unsafe { rma::g::<u64>(On::Host("nvshmem_signal_fetch"), sig_addr, pe) }
}

pub(crate) unsafe fn wait_until(on: On, sig_addr: *mut u64, cmp: c_int, value: u64) {
    let _ = on.give(|gpu, stream| {
        crate::wait::comparison(cmp)?;
        gpu.wait_word(stream, sig_addr.addr() as u64, (8, cmp, value))
    });
}

#[allow(clippy::too_many_arguments)] // C's
pub(crate) unsafe fn put_signal<T>(
    on: On,
    dest: *mut T,
    source: *const T,
    n: usize,
    sig_addr: *mut u64,
    value: u64,
    sig_op: c_int,
    pe: c_int,
) {
    let _ = on.give(|gpu, stream| {
        let adds = adds(sig_op)?;
        let signal = sig_addr.addr() as u64;
        let copied = (
            dest.addr() as u64,
            source.addr() as u64,
            rma::bytes_of::<T>(n),
        );
        if gpu.put_signal(stream, copied, signal, (value, adds), pe)? {
            return Ok(());
        }
        // SAFETY: by the caller.
        unsafe { rma::put_to(gpu, stream, dest, source, n, pe) }?;
        gpu.signal(stream, signal, (value, adds), pe)
    });
}
