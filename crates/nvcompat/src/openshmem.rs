//! The program's OpenSHMEM, found in the program: PE, how many there are, and an id that all get from PE 0.
#![allow(unsafe_code)] // Calls functions of the program's OpenSHMEM.

use crate::driver::of_program;
use std::ffi::{CStr, c_int, c_void};

/// This process's PE in the program's OpenSHMEM, how many there are, and PE 0's `id`.
///
/// # Safety
/// The program is linked with an OpenSHMEM that it has begun. Collective over all its PEs.
pub(crate) unsafe fn agree(id: [u8; 16]) -> Result<(c_int, c_int, [u8; 16]), String> {
    let find = |name: &CStr| {
        of_program(name).ok_or_else(|| {
            let name = name.to_string_lossy();
            format!("the program has no OpenSHMEM: {name} is not in it")
        })
    };
    let (my_pe, n_pes) = (find(c"shmem_my_pe")?, find(c"shmem_n_pes")?);
    let (malloc, free) = (find(c"shmem_malloc")?, find(c"shmem_free")?);
    let (getmem, barrier_all) = (find(c"shmem_getmem")?, find(c"shmem_barrier_all")?);
    // SAFETY: OpenSHMEM's functions, with its signatures. The word is there on all PEs from `shmem_malloc` on; PE 0 writes
    // its own part before a barrier, and the others read it after that one and before the next.
    unsafe {
        let my_pe: unsafe extern "C" fn() -> c_int = std::mem::transmute(my_pe);
        let n_pes: unsafe extern "C" fn() -> c_int = std::mem::transmute(n_pes);
        let malloc: unsafe extern "C" fn(usize) -> *mut c_void = std::mem::transmute(malloc);
        let free: unsafe extern "C" fn(*mut c_void) = std::mem::transmute(free);
        let getmem: unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) =
            std::mem::transmute(getmem);
        let barrier_all: unsafe extern "C" fn() = std::mem::transmute(barrier_all);

        let place = malloc(id.len());
        if place.is_null() {
            return Err("shmem_malloc of the program's OpenSHMEM gives no 16 bytes".into());
        }
        let me = my_pe();
        if me == 0 {
            place.cast::<[u8; 16]>().write_unaligned(id);
        }
        barrier_all();
        let mut common = [0; 16];
        getmem(common.as_mut_ptr().cast(), place, common.len(), 0);
        barrier_all();
        free(place);
        Ok((me, n_pes(), common))
    }
}
