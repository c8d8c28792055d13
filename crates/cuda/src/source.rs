//! Device code: what there is to compile.

/// One translation unit of CUDA C++ and what its host code has to say about it.
///
/// ```
/// use crosswarp_cuda::Source;
/// const FILL: Source = Source::new(
///     "fill.cu",
///     r#"
///     extern "C" __global__ void fill(float* out, float value, unsigned n) {
///         unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
///         if (i < n) out[i] = value;
///     }"#,
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// File name, for messages.
    pub name: &'a str,
    /// The text. Kernels are found by name, so they are `extern "C" __global__`.
    pub text: &'a str,
    /// Headers of its own, as (name, text), found by `#include "name"`. The headers of [`HEADERS`]
    /// are always there.
    pub headers: &'a [(&'a str, &'a str)],
    /// How its kernels are launched, for [`kernel_table`](crate::kernel_table).
    pub shapes: &'a [Shape<'a>],
}

/// The block a kernel is launched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block, bytes.
    pub dynamic_shared: u32,
}

impl<'a> Source<'a> {
    /// A source without headers of its own.
    pub const fn new(name: &'a str, text: &'a str) -> Self {
        Self {
            name,
            text,
            headers: &[],
            shapes: &[],
        }
    }

    /// The same with headers of its own.
    pub const fn with_headers(self, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self { headers, ..self }
    }

    /// The same with its kernels' launch shapes.
    pub const fn with_shapes(self, shapes: &'a [Shape<'a>]) -> Self {
        Self { shapes, ..self }
    }
}

/// The device headers, as (name, text); every source can include them.
pub const HEADERS: &[(&str, &str)] = &[
    ("base.cuh", include_str!("../device/base.cuh")),
    ("warp.cuh", include_str!("../device/warp.cuh")),
    ("block.cuh", include_str!("../device/block.cuh")),
    ("cluster.cuh", include_str!("../device/cluster.cuh")),
    ("exact_sum.cuh", include_str!("../device/exact_sum.cuh")),
    ("grid.cuh", include_str!("../device/grid.cuh")),
    ("leaf.cuh", include_str!("../device/leaf.cuh")),
    ("pe.cuh", include_str!("../device/pe.cuh")),
    ("pe_atomic.cuh", include_str!("../device/pe_atomic.cuh")),
    (
        "pe_collective.cuh",
        include_str!("../device/pe_collective.cuh"),
    ),
    ("pe_memory.cuh", include_str!("../device/pe_memory.cuh")),
    ("pe_signal.cuh", include_str!("../device/pe_signal.cuh")),
    ("pe_staged.cuh", include_str!("../device/pe_staged.cuh")),
    ("pe_world.cuh", include_str!("../device/pe_world.cuh")),
];

/// The kernel of the `threads` example: each lane reports where it is.
pub const THREADS: Source<'static> =
    Source::new("threads.cu", include_str!("../kernels/threads.cu")).with_shapes(&[Shape {
        kernel: "threads",
        threads: 64,
        dynamic_shared: 0,
    }]);

/// Every source of this crate that holds kernels.
pub const KERNELS: &[Source<'static>] = &[THREADS, crate::ON_STREAM];
