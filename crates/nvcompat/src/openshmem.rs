//! The program's OpenSHMEM, found in the program: PE, how many there are, and exchanges of bytes, by which a world comes
//! about.
#![allow(unsafe_code)] // Calls functions of the program's OpenSHMEM.

use crate::driver::of_program;
use crosswarp_shmem::{Pe, init_by_exchange};
use std::ffi::{CStr, c_int, c_void};
use std::io;

/// Joins the world of the PEs of the program's OpenSHMEM.
///
/// # Safety
/// The program is linked with an OpenSHMEM that it has begun. Collective over all its PEs.
pub(crate) unsafe fn join() -> Result<Pe, String> {
    let find = |name: &CStr| {
        of_program(name).ok_or_else(|| {
            let name = name.to_string_lossy();
            format!("the program has no OpenSHMEM: {name} is not in it")
        })
    };
    let (my_pe, n_pes) = (find(c"shmem_my_pe")?, find(c"shmem_n_pes")?);
    let (malloc, free) = (find(c"shmem_malloc")?, find(c"shmem_free")?);
    let (putmem, barrier_all) = (find(c"shmem_putmem")?, find(c"shmem_barrier_all")?);
    // SAFETY: OpenSHMEM's functions, with its signatures.
    let (my_pe, n_pes, malloc, free, putmem, barrier_all) = unsafe {
        (
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(my_pe),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(n_pes),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize) -> *mut c_void>(malloc),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(free),
            std::mem::transmute::<
                *mut c_void,
                unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int),
            >(putmem),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(barrier_all),
        )
    };
    // SAFETY: it has been begun, by the caller.
    let (me, n) = unsafe { (my_pe(), n_pes()) };
    let numbers = usize::try_from(me).ok().zip(usize::try_from(n).ok());
    let (rank, pes) = numbers
        .filter(|(rank, pes)| rank < pes)
        .ok_or_else(|| format!("the program's OpenSHMEM says that this is PE {me} of {n}"))?;
    let mut gather = |mine: &[u8]| -> io::Result<Vec<Vec<u8>>> {
        let bytes = mine.len();
        // SAFETY: every PE has `pes` places of `bytes` bytes from `shmem_malloc` on, and writes its own one on all before
        // a barrier; they are read after it, and given back when all have read them.
        unsafe {
            let places = malloc(bytes * pes).cast::<u8>();
            if places.is_null() {
                let text = format!("shmem_malloc gives no {} bytes", bytes * pes);
                return Err(io::Error::other(text));
            }
            for pe in 0..n {
                let own = places.add(rank * bytes);
                putmem(own.cast(), mine.as_ptr().cast(), bytes, pe);
            }
            barrier_all();
            let all = std::slice::from_raw_parts(places, bytes * pes).to_vec();
            barrier_all();
            free(places.cast());
            Ok(all.chunks(bytes).map(<[u8]>::to_vec).collect())
        }
    };
    init_by_exchange(rank, pes, &mut gather).map_err(|error| error.to_string())
}
