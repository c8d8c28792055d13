//! The program's MPI, found in the program: rank, size, and a broadcast of an id.
#![allow(unsafe_code)] // Calls functions of the program's MPI.

use crate::driver::of_program;
use std::ffi::{c_int, c_void};

/// This process's rank in the communicator `comm` points to, how many there are, and rank 0's `id`.
///
/// Open MPI's handles are pointers, MPICH's (and those of its kin, Intel's and Cray's) are integers.
///
/// # Safety
/// `comm` points to an `MPI_Comm` of the MPI that the program is linked with, which is initialised. Collective over it.
pub(crate) unsafe fn agree(
    comm: *mut c_void,
    id: [u8; 16],
) -> Result<(c_int, c_int, [u8; 16]), String> {
    let find = |name| {
        of_program(name).ok_or_else(|| {
            format!(
                "the program has no MPI: {} is not in it",
                name.to_string_lossy()
            )
        })
    };
    let (rank, size, broadcast) = (
        find(c"MPI_Comm_rank")?,
        find(c"MPI_Comm_size")?,
        find(c"MPI_Bcast")?,
    );
    if comm.is_null() {
        return Err("mpi_comm is null; it points to a communicator".into());
    }
    // SAFETY: MPI's interface, with handles as this implementation has them.
    unsafe {
        match of_program(c"ompi_mpi_byte") {
            Some(byte) => {
                let comm = comm.cast::<*mut c_void>().read();
                let calls = Calls::<*mut c_void>::new(rank, size, broadcast);
                calls.agree(comm, byte, id)
            }
            None => {
                /// `MPI_BYTE` in the binary interface that MPICH and its kin share.
                const BYTE: c_int = 0x4c00_010d;
                let comm = comm.cast::<c_int>().read();
                let calls = Calls::<c_int>::new(rank, size, broadcast);
                calls.agree(comm, BYTE, id)
            }
        }
    }
}

struct Calls<H> {
    rank: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    size: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    broadcast: unsafe extern "C" fn(*mut c_void, c_int, H, c_int, H) -> c_int,
}

impl<H: Copy> Calls<H> {
    /// # Safety
    /// The functions are MPI's, and its handles are of type `H`.
    unsafe fn new(rank: *mut c_void, size: *mut c_void, broadcast: *mut c_void) -> Self {
        // SAFETY: by the caller.
        unsafe {
            Self {
                rank: std::mem::transmute_copy(&rank),
                size: std::mem::transmute_copy(&size),
                broadcast: std::mem::transmute_copy(&broadcast),
            }
        }
    }

    /// # Safety
    /// As [`agree`].
    unsafe fn agree(
        &self,
        comm: H,
        byte: H,
        mut id: [u8; 16],
    ) -> Result<(c_int, c_int, [u8; 16]), String> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: by the caller; each writes what it is given.
        let failed = unsafe {
            (self.rank)(comm, &mut rank)
                | (self.size)(comm, &mut size)
                | (self.broadcast)(id.as_mut_ptr().cast(), 16, byte, 0, comm)
        };
        match failed {
            0 => Ok((rank, size, id)),
            _ => Err("the program's MPI reports an error for mpi_comm".into()),
        }
    }
}
