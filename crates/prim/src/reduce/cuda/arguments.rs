//! What the kernels of reductions are launched with: the header `reduce/arguments.cuh` is made from it.

/// What a kernel writes, here and as `crosswarp::finish_kind`.
macro_rules! finish_kinds {
    ($($(#[doc = $doc:literal])+ $name:ident = $device:literal, $value:literal;)+) => {
        /// What a kernel writes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Finish {
            $($(#[doc = $doc])+ $name = $value,)+
        }
        macro_rules! finish_text {
            () => {
                concat!(
                    "// What a kernel writes.\nenum finish_kind : u64 {\n",
                    $($("    //", $doc, "\n",)+ "    ", $device, " = ", $value, ",\n",)+
                    "};\n\n",
                )
            };
        }
    };
}
finish_kinds! {
    /// What parts of an array are combined from.
    Words = "finish_words", 0;
    /// The result itself: bits, zero-extended; for sums:
    Value = "finish_value", 1;
    /// the sum divided by the number of elements,
    Mean = "finish_mean", 2;
    /// the square root of the sum.
    Norm = "finish_norm", 3;
    /// For extrema: where it is.
    Index = "finish_index", 4;
}

crosswarp_cuda::shared_structures! {
    pub(crate) const HEADER = concat!("// What the kernels of reductions are launched with.
// Made from src/reduce/cuda/arguments.rs, which is to be changed instead.
#pragma once
#include \"base.cuh\"

namespace crosswarp {

", finish_text!()), "}  // namespace crosswarp\n";

    numbers {
        /// Most threads of a block: the kernels are compiled for them.
        pub(crate) THREADS: u32 = "reduce_threads": "int" = 256;
        /// The same where every thread has an accumulator of `f64`.
        pub(crate) EXACT_F64_THREADS: u32 = "exact_f64_threads": "int" = 64;
        /// Loads of 16 bytes that a thread has under way where it walks through one input.
        pub(crate) WALK_LOADS: u64 = "walk_loads": "int" = 8;
        /// Most blocks, or warps, that combine what they have: a word counts fewer than 2^11 additions.
        pub(crate) MOST_COMBINED_BLOCKS: u64 = "most_combined_blocks": "int" = 2047;
        /// Words of the state before those of blocks, of which each has two.
        pub(crate) BLOCK_SLOTS: usize = "block_slots": "int" = 128;
        /// Of segments: words of the state before those of warps,
        pub(crate) SEGMENT_SLOTS: usize = "segment_slots": "int" = 128;
        /// and words of each warp.
        pub(crate) SEGMENT_SLOT: usize = "segment_slot": "int" = 128;
    }

    /// What every reduction is launched with.
    pub(crate) Arguments = "reduce_arguments", align 8, size 72, with "": {
        /// First input.
        0 pub x: u64 = "const void*",
        /// Second input, if the reduction has two.
        8 pub y: u64 = "const void*",
        /// Elements of each input, at most.
        16 pub n: u64 = "u64",
        /// If not null, how many there are; read when the kernel runs.
        24 pub count: u64 = "const u64*",
        /// The workspace: zero, and zero again after the launch.
        32 pub state: u64 = "u64*",
        /// The result.
        40 pub out: u64 = "u64*",
        /// What the result is, a `finish_kind`.
        48 pub finish: u64 = "u64",
        /// Bytes of its first part that each warp brings to the second-level cache early.
        56 pub ahead: u64 = "u64",
        /// Bytes of a result that is no `finish_words`: 1, 2, 4 or 8, the low ones of its bits.
        64 pub result_bytes: u64 = "u64",
    }

    /// A segment that several warps share, in the queue.
    pub(crate) LongSegment = "long_segment", align 8, size 32, with "": {
        0 pub segment: u64 = "u64",
        /// Its elements.
        8 pub begin: u64 = "u64",
        16 pub length: u64 = "u64",
        /// Leaves of the segments before it in the queue.
        24 pub leaves_before: u64 = "u64",
    }

    /// What reductions of segments are launched with.
    pub(crate) SegmentArguments = "segment_arguments", align 8, size 128, with "": {
        /// `n`: elements of the array; `state`: zero, and zero again after the launches.
        0 pub all: Arguments = "reduce_arguments",
        /// Segment s is elements offsets[s] to offsets[s + 1]; or null:
        72 pub offsets: u64 = "const u64*",
        /// it is elements columns * s to columns * (s + 1).
        80 pub columns: u64 = "u64",
        88 pub segments: u64 = "u64",
        /// Segments that a warp takes at a time: 1 or 32.
        96 pub together: u64 = "u64",
        /// Segments of more leaves are long.
        104 pub long_leaves: u64 = "u64",
        /// The long ones, as `short_segments` finds them; or null: all are long, and alike.
        112 pub queue: u64 = "long_segment*",
        /// For so many.
        120 pub room: u64 = "u64",
    }

    /// What reductions of columns are launched with.
    pub(crate) ColumnArguments = "column_arguments", align 8, size 136, with "": {
        /// `n`: rows of a matrix, at least one. `state`: a counter for each tile of columns, if one launch does all; zero, and
        /// zero again afterwards.
        0 pub all: Arguments = "reduce_arguments",
        /// Columns of a matrix.
        72 pub columns: u64 = "u64",
        /// Columns of all matrices.
        80 pub results: u64 = "u64",
        /// What becomes of parts of columns, if a column has several.
        88 pub parts: u64 = "void*",
        /// Columns of a tile: of narrow matrices, all.
        96 pub at_once: u32 = "u32",
        /// Elements of a row that a thread loads at once: a power of two.
        100 pub vector: u32 = "u32",
        /// The same in the last block.
        104 pub last_vector: u32 = "u32",
        /// Rows of a tile, a power of two: of narrow matrices, 8 for each element of a vector.
        108 pub ways: u32 = "u32",
        /// Of narrow matrices: parts of all of them,
        112 pub tiles: u32 = "u32",
        /// and parts that a block takes; of others 0.
        116 pub side: u32 = "u32",
        /// Threads that add up the parts of a column: a power of two up to those of a warp, or all of a block.
        120 pub lanes: u32 = "u32",
        /// Of few rows: columns of which a thread has all, which it loads at once. Else 0.
        124 pub few: u32 = "u32",
        /// Rows of a part of a column: of sums of floating-point elements, those of a leaf.
        128 pub part_rows: u64 = "u64",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crosswarp_cuda::internal::assert_copy(
            folder,
            "kernels/reduce/arguments.cuh",
            super::HEADER,
        );
    }
}
