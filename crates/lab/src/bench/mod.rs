//! What `crosswarp bench` measures of processors, and of GPUs beside peers: the rows, each measured by [`measure`](crate::measure).

mod cpu;
mod error;
mod histogram;
mod jacobi;
mod reduce;
mod shmem;
mod transpose;

pub use cpu::cpu;
pub use error::BenchError;
pub use histogram::histogram;
pub use jacobi::{JacobiProblem, jacobi};
pub use reduce::reduce;
pub use shmem::{SHMEM, shmem};
pub use transpose::{transpose, transpose_over_pes};
