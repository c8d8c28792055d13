//! Transpositions: what they are ([`layout`]), and the CPU's way of making them.
//!
//! On the CPU the input is read in strips one cache line wide and one run of output high. A strip is
//! transposed tile by tile in registers ([`tile`]) into a buffer in the first-level cache, whose rows
//! then go to their places a run at a time, past the caches if the output is larger than they are: so
//! memory sees whole lines on both sides, wherever rows begin.

mod cpu;
pub(crate) mod cuda;

pub(crate) mod layout;
pub(crate) mod team;
mod tile;
mod transposer;

pub use layout::{Layout, TransposeError};
pub use team::{part_len, rows_of};
pub use transposer::Transposer;
