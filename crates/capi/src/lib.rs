//! OpenSHMEM 1.5 for C and C++ over `crosswarp-shmem`.
//!
//! `libcrosswarp_shmem.so` (and `.a`) export every function of the specification, its deprecated names,
//! those of 1.6, and a `pshmem_` twin of each. One table (`generator/table.rs`) gives the headers, the
//! exports, the C11 selections and the C++ overloads; `build.rs` makes them. Here are the
//! implementations, one generic function for each row of the table, and they are thin: what OpenSHMEM
//! means is in `crosswarp-shmem`.
//!
//! Install it with `crosswarp install --prefix DIR`; then `oshcc`, `oshc++` and `oshrun` in `DIR/bin`
//! compile and run programs. See the crate's README for static data and its limits.
//!
//! No panic crosses into C: a Rust function with the C calling convention aborts instead, after one line
//! of explanation (see `misuse`).
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod active;
mod amo;
mod collective;
mod context;
mod debug;
mod exports;
mod handles;
pub mod installation;
mod library_state;
mod lock;
mod long_double;
mod memory;
mod misuse;
mod mixture;
mod objects;
mod old_amo;
mod order;
mod reduce;
mod rma;
mod setup;
mod signal;
mod static_data;
mod team;
mod wait;
mod world;
