//! The program's MPI, found in the program: rank, size, and exchanges of bytes, by which a world comes about.
#![allow(unsafe_code)] // Calls functions of the program's MPI.

use crate::driver::of_program;
use crosswarp_shmem::{Pe, init_by_exchange};
use std::ffi::{c_int, c_void};
use std::io;

/// Joins the world of the communicator `comm` points to.
///
/// Open MPI's handles are pointers, MPICH's (and those of its kin, Intel's and Cray's) are integers.
///
/// # Safety
/// `comm` points to an `MPI_Comm` of the MPI that the program is linked with, which is initialised. Collective over it.
pub(crate) unsafe fn join(comm: *mut c_void) -> Result<Pe, String> {
    let find = |name| {
        of_program(name).ok_or_else(|| {
            format!(
                "the program has no MPI: {} is not in it",
                name.to_string_lossy()
            )
        })
    };
    let (rank, size, all_gather) = (
        find(c"MPI_Comm_rank")?,
        find(c"MPI_Comm_size")?,
        find(c"MPI_Allgather")?,
    );
    if comm.is_null() {
        return Err("mpi_comm is null; it points to a communicator".into());
    }
    // SAFETY: MPI's interface, with handles as this implementation has them.
    unsafe {
        match of_program(c"ompi_mpi_byte") {
            Some(byte) => {
                let comm = comm.cast::<*mut c_void>().read();
                let calls = Calls::<*mut c_void>::new(rank, size, all_gather);
                calls.join(comm, byte)
            }
            None => {
                /// `MPI_BYTE` in the binary interface that MPICH and its kin share.
                const BYTE: c_int = 0x4c00_010d;
                let comm = comm.cast::<c_int>().read();
                let calls = Calls::<c_int>::new(rank, size, all_gather);
                calls.join(comm, BYTE)
            }
        }
    }
}

struct Calls<H> {
    rank: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    size: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    all_gather: unsafe extern "C" fn(*const c_void, c_int, H, *mut c_void, c_int, H, H) -> c_int,
}

impl<H: Copy> Calls<H> {
    /// # Safety
    /// The functions are MPI's, and its handles are of type `H`.
    unsafe fn new(rank: *mut c_void, size: *mut c_void, all_gather: *mut c_void) -> Self {
        // SAFETY: by the caller.
        unsafe {
            Self {
                rank: std::mem::transmute_copy(&rank),
                size: std::mem::transmute_copy(&size),
                all_gather: std::mem::transmute_copy(&all_gather),
            }
        }
    }

    /// # Safety
    /// As [`join`].
    unsafe fn join(&self, comm: H, byte: H) -> Result<Pe, String> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: by the caller; each writes one number.
        let failed = unsafe { (self.rank)(comm, &mut rank) | (self.size)(comm, &mut size) };
        let numbers = usize::try_from(rank).ok().zip(usize::try_from(size).ok());
        let (rank, n) = numbers
            .filter(|_| failed == 0)
            .ok_or("the program's MPI reports an error for mpi_comm")?;
        let mut gather = |mine: &[u8]| -> io::Result<Vec<Vec<u8>>> {
            let bytes = c_int::try_from(mine.len()).map_err(io::Error::other)?;
            let mut all = vec![0u8; mine.len() * n];
            let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
            // SAFETY: by the caller of `join`; there is room for what each of the `n` processes brings, which is as much.
            match unsafe { (self.all_gather)(from, bytes, byte, to, bytes, byte, comm) } {
                0 => Ok(all.chunks(mine.len()).map(<[u8]>::to_vec).collect()),
                code => Err(io::Error::other(format!("MPI_Allgather returns {code}"))),
            }
        };
        init_by_exchange(rank, n, &mut gather).map_err(|error| error.to_string())
    }
}
