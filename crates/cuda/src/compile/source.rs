//! Device code: what there is to compile.

use crate::{layout, sum_layout};

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

/// A device header's name, as it is included, and its text.
macro_rules! header {
    ($name:literal) => {
        ($name, include_str!(concat!("../../device/", $name)))
    };
}

/// The device headers, as (name, text); every source can include them.
pub const HEADERS: &[(&str, &str)] = &[
    header!("base.cuh"),
    header!("warp.cuh"),
    header!("block.cuh"),
    header!("cluster.cuh"),
    ("codes.cuh", layout::CODES),
    header!("exact_sum.cuh"),
    header!("grid.cuh"),
    ("layout.cuh", layout::HEADER),
    header!("leaf.cuh"),
    header!("pe.cuh"),
    header!("pe/atomic.cuh"),
    header!("pe/collective.cuh"),
    header!("pe/exact_sum.cuh"),
    header!("pe/inbox.cuh"),
    header!("pe/memory.cuh"),
    header!("pe/reduce_by_puts.cuh"),
    header!("pe/rendezvous.cuh"),
    header!("pe/route.cuh"),
    header!("pe/signal.cuh"),
    header!("pe/staged.cuh"),
    header!("pe/units.cuh"),
    header!("pe/wait.cuh"),
    header!("pe/world.cuh"),
    ("sum_layout.cuh", sum_layout::HEADER),
    header!("superaccumulator.cuh"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_device_header_can_be_included() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/device"));
        let mut folders = vec![root.to_owned()];
        let mut files = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir().unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                    files.insert(name.to_owned());
                }
            }
        }
        let names: BTreeSet<_> = HEADERS.iter().map(|(name, _)| name.to_string()).collect();
        assert_eq!(names, files);
    }
}
