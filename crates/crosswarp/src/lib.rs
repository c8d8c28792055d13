//! The same verbs - synchronise, put, get, reduce - at every level of a parallel machine.
//!
//! Programs depend on this crate alone. Each of the others is a module of it, and a feature; all are on by default.
//!
//! | module | feature | what is in it |
//! |---|---|---|
//! | [`shmem`] | always | worlds, the symmetric heap, one-sided verbs, collectives |
//! | `shmem::Launch` | `launch` | starting a world of processes |
//! | `cuda` | `cuda` | a GPU as a PE, with the same verbs inside kernels |
//! | `prim` | `prim` (needs `cuda`) | reductions, histograms and transpositions of the same bits everywhere |
//! | `solve` | `solve` (needs `prim`) | the Laplace and Poisson solver |
//! | `lab` | `lab` (needs `solve`) | models and measurements of where time goes |
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
//!
//! Each crate has errors of its own. A PE that uses several returns `Box<dyn Error + Send + Sync>`; `spmd` itself fails
//! where there is no world, and has what each PE returned:
//!
//! ```
//! # #[cfg(feature = "prim")] {
//! use crosswarp::prim::Reducer;
//! use std::error::Error;
//!
//! let sums = crosswarp::spmd(3, |pe| -> Result<f32, Box<dyn Error + Send + Sync>> {
//!     let part = [pe.my_pe() as f32; 4];
//!     pe.barrier()?;
//!     Ok(Reducer::new().on(pe).sum(&part)?)
//! })?;
//! for sum in sums {
//!     assert_eq!(sum.unwrap(), 12.0);
//! }
//! # }
//! # Ok::<_, crosswarp::WorldError>(())
//! ```

#[cfg(feature = "cuda")]
pub use crosswarp_cuda as cuda;
#[cfg(feature = "lab")]
pub use crosswarp_lab as lab;
#[cfg(feature = "prim")]
pub use crosswarp_prim as prim;
pub use crosswarp_shmem as shmem;
#[cfg(feature = "solve")]
pub use crosswarp_solve as solve;

pub use crosswarp_shmem::{
    Cmp, Error, Pe, SignalOp, Sym, SymRef, Team, ThreadWorld, WorldError, init, op, spmd,
};

// The README's program runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
