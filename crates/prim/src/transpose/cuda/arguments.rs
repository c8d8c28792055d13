//! What the kernels of transpositions are launched with: the header `transpose/arguments.cuh` is made from it.

crosswarp_cuda::shared_structures! {
    pub(crate) const HEADER = "// What the kernels of transpositions are launched with.
// Made from src/transpose/cuda/arguments.rs, which is to be changed instead.
#pragma once
#include \"base.cuh\"

namespace crosswarp {

", "}  // namespace crosswarp\n";

    /// The matrices; strides in bytes. Kernels of whole tiles take the first `whole_rows` × `whole_columns` elements of
    /// each, those of any tiles the rest.
    pub(crate) Matrices = "matrices", align 8, size 88, with "": {
        0 pub input: u64 = "const char*",
        8 pub output: u64 = "char*",
        /// From the first element to the end of the last.
        16 pub in_bytes: u64 = "u64",
        24 pub in_stride: u64 = "u64",
        32 pub out_stride: u64 = "u64",
        40 pub in_batch: u64 = "u64",
        48 pub out_batch: u64 = "u64",
        56 pub rows: u64 = "u64",
        64 pub columns: u64 = "u64",
        72 pub whole_rows: u64 = "u64",
        80 pub whole_columns: u64 = "u64",
    }

    /// Square matrices in place; kernels of any tiles leave out the first `whole` × `whole` elements of each.
    pub(crate) Squares = "squares", align 8, size 48, with "": {
        0 pub data: u64 = "char*",
        8 pub bytes: u64 = "u64",
        16 pub stride: u64 = "u64",
        24 pub batch: u64 = "u64",
        32 pub side: u64 = "u64",
        40 pub whole: u64 = "u64",
    }

    /// This PE's rows, and where the output lies in its own heap; strides in bytes.
    pub(crate) Part = "part", align 8, size 64, with "": {
        0 pub input: u64 = "const char*",
        8 pub output: u64 = "char*",
        16 pub in_bytes: u64 = "u64",
        24 pub in_stride: u64 = "u64",
        32 pub rows: u64 = "u64",
        40 pub first_row: u64 = "u64",
        48 pub all_rows: u64 = "u64",
        56 pub columns: u64 = "u64",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crosswarp_cuda::internal::assert_copy(
            folder,
            "kernels/transpose/arguments.cuh",
            super::HEADER,
        );
    }
}
