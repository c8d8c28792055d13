//! The same verbs - synchronise, put, get, reduce - at every level of a parallel machine.
//!
//! This crate is the front door. [`shmem`] has the worlds, the symmetric heap and the one-sided
//! verbs; [`cuda`] makes a GPU a PE, with the same verbs inside kernels; [`prim`] has the reductions whose
//! bits never change; [`solve`] the Laplace and Poisson solver; [`lab`] models and measures where time goes.
//!
//! ```
//! // Four PEs, each adds its number into a counter on every PE.
//! let sums = crosswarp::spmd(4, |pe| {
//!     let counter = pe.alloc_zeroed::<u64>(1)?;
//!     for other in 0..pe.n_pes() {
//!         pe.atomic_add(&counter, pe.my_pe() as u64, other);
//!     }
//!     pe.barrier()?;
//!     Ok::<_, crosswarp::Error>(pe.g(&counter, pe.my_pe()))
//! })?;
//! assert!(sums.iter().all(|sum| *sum == Ok(6)));
//! # Ok::<_, crosswarp::WorldError>(())
//! ```

pub use crosswarp_cuda as cuda;
pub use crosswarp_lab as lab;
pub use crosswarp_prim as prim;
pub use crosswarp_shmem as shmem;
pub use crosswarp_solve as solve;

pub use crosswarp_shmem::{
    Cmp, Error, Pe, SignalOp, Sym, SymRef, Team, ThreadWorld, WorldError, init, op, spmd,
};
