//! Where GPU time goes: models that need no GPU, and the textbook variants measured beside them.

use crosswarp_cuda::Source;

/// Every source of this crate that holds kernels.
pub const KERNELS: &[Source<'static>] = &[];
