//! The sources of this crate's kernels.

use crate::compile::source::{Shape, Source};
use crate::pe::kernels::ON_STREAM;

/// The kernel of the `threads` example: each lane reports where it is.
pub const THREADS: Source<'static> =
    Source::new("threads.cu", include_str!("../kernels/threads.cu")).with_shapes(&[Shape {
        kernel: "threads",
        threads: 64,
        dynamic_shared: 0,
    }]);

/// Every source of this crate that holds kernels.
pub const KERNELS: &[Source<'static>] = &[THREADS, ON_STREAM];
