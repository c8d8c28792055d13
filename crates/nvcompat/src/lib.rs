//! Programs written for NVSHMEM, recompiled and otherwise as they are, over `crosswarp-cuda`.
//!
//! `libnvshmem_host.so.3` (and an archive) export the functions of the host; the header defines those of kernels, over
//! the verbs of Crosswarp's device headers. One table (`generator/table.rs`) gives both; `build.rs` makes them. Here are
//! the implementations of the host, one generic function for each row of the table.
//!
//! Install it with `crosswarp install --nvshmem --prefix DIR`, and give build systems `NVSHMEM_HOME=DIR`. See the crate's
//! README for what is there and what is not.
//!
//! No panic crosses into C: a Rust function with the C calling convention aborts instead.
//!
//! Not affiliated with NVIDIA; names, signatures and values of constants are those of NVSHMEM's public documentation.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod amo;
mod collective;
mod driver;
mod environment;
mod exports;
mod gpu;
pub mod installation;
mod invitations;
mod joining;
#[doc(hidden)]
pub mod kernels;
mod memory;
mod memory_words;
mod module;
mod mpi;
mod on;
mod openshmem;
mod order;
mod reduce;
mod rma;
mod say;
mod setup;
mod signal;
mod state;
mod team;
mod teams;
mod threads;
mod types;
mod under_way;
mod units;
mod wait;
