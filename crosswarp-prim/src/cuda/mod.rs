//! The GPU's bodies of the primitives.

mod transpose;
mod transpose_pe;

pub use transpose::{DeviceTransposeError, DeviceTransposer, TextbookTile};
pub use transpose_pe::WorldTransposer;

/// Every source of this crate that holds kernels.
pub const KERNELS: &[crosswarp_cuda::Source<'static>] =
    &[transpose::TRANSPOSE, transpose_pe::TRANSPOSE_PE];
