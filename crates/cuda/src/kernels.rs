//! The sources of this crate's kernels.

use crate::compile::program::Options;
use crate::compile::source::{Shape, Source};
use crate::layout::ROUTED;
use crate::pe::sources::{ON_STREAM, OVER_HOSTS};

/// The kernel of the `threads` example: each lane reports where it is.
pub const THREADS: Source<'static> =
    Source::new("threads.cu", include_str!("../kernels/threads.cu")).with_shapes(&[Shape {
        kernel: "threads",
        threads: 64,
        dynamic_shared: 0,
    }]);

/// Every source of this crate that holds kernels.
pub const KERNELS: &[Source<'static>] = &{
    let mut all = [THREADS; 1 + ON_STREAM.len()];
    let mut k = 0;
    while k < ON_STREAM.len() {
        all[1 + k] = ON_STREAM[k];
        k += 1;
    }
    all
};

/// What is compiled for the verbs of this crate, in worlds of one host and of several.
pub fn units() -> Vec<(Source<'static>, Options)> {
    let options = || Options::new().define(ROUTED, 1);
    let over_hosts = OVER_HOSTS.iter().map(|&source| (source, options()));
    let plain = KERNELS.iter().map(|&source| (source, Options::new()));
    plain.chain(over_hosts).collect()
}
