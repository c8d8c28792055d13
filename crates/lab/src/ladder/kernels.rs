//! The kernels of the rungs.

use crosswarp_cuda::{Shape, Source};

macro_rules! source {
    ($name:literal) => {
        Source::new(
            concat!("ladder/", $name),
            include_str!(concat!("../../kernels/ladder/", $name)),
        )
    };
}

pub const REDUCE: Source<'static> = source!("reduce.cu");
pub const REDUCE_F16: Source<'static> = source!("reduce_f16.cu");
pub const HISTOGRAM: Source<'static> = source!("histogram.cu").with_shapes(&[
    Shape {
        kernel: "shared_atomics",
        threads: 512,
        dynamic_shared: 1024,
    },
    Shape {
        kernel: "shared_wide",
        threads: 512,
        dynamic_shared: 1024,
    },
]);
pub const TRANSPOSE: Source<'static> = source!("transpose.cu");
pub const JACOBI1D: Source<'static> = source!("jacobi1d.cu");
pub const SGEMM: Source<'static> = source!("sgemm.cu").with_shapes(&[Shape {
    kernel: "naive",
    threads: 1024,
    dynamic_shared: 0,
}]);
pub const CEILINGS: Source<'static> = source!("ceilings.cu");
pub const MARK: Source<'static> = source!("profiler_mark.cu");

/// The ladders' kernels.
pub const SOURCES: &[Source<'static>] = &[
    REDUCE, REDUCE_F16, HISTOGRAM, TRANSPOSE, JACOBI1D, SGEMM, CEILINGS, MARK,
];
