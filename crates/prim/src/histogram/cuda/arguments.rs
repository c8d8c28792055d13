//! What the kernels of histograms are launched with, beside the rule: the header `histogram/arguments.cuh` is made from
//! it.

crosswarp_cuda::shared_structures! {
    pub(crate) const HEADER = "// What the kernels of histograms are launched with, beside the rule.
// Made from src/histogram/cuda/arguments.rs, which is to be changed instead.
#pragma once
#include \"base.cuh\"

namespace crosswarp::histogram {

", "}  // namespace crosswarp::histogram\n";

    numbers {
        /// Threads of a block of all but the `rows` kernels.
        pub(crate) THREADS: u32 = "threads": "int" = 1024;
        /// Most bin groups, one per thread.
        pub(crate) MOST_GROUPS: u32 = "most_groups": "u32" = 1024;
        /// Most blocks that share a tile: with more, increments in device memory are as fast (one H200, 4194304 bins,
        /// 19 blocks: 89 · 10⁹ even samples/s, 85 in device memory).
        pub(crate) MOST_RANGES: u32 = "most_ranges": "u32" = 20;
        /// Slots of the table of hot bins, one per thread.
        pub(crate) HOT_SLOTS: u32 = "slots": "u32" = 1024;
        /// The logarithm of the cells, of 32 bits, in which a plan counts pairs of samples.
        pub(crate) CELL_BITS: u32 = "cell_bits": "u32" = 15;
    }

    /// How many blocks share a tile, and how many bins each of them counts.
    pub(crate) Ranges = "ranges", align 4, size 8, with "": {
        0 pub count: u32 = "u32",
        4 pub span: u32 = "u32",
    }

    /// Bin groups, whose counters have the same width.
    pub(crate) BinGrouping = "grouping", align 4, size 8, with "": {
        /// The logarithm of the bins of a group.
        0 pub group_bits: u32 = "u32",
        /// Bytes of shared memory for their counters, a multiple of 128.
        4 pub room: u32 = "u32",
    }

    /// A slot for each thread, lent to one bin, and what has been counted there.
    pub(crate) HotTable = "hot_table", align 4, size 8192, with "": {
        0 pub bin: [u32; HOT_SLOTS as usize] = "u32"["slots"],
        4096 pub count: [u32; HOT_SLOTS as usize] = "u32"["slots"],
    }

    /// What is decided.
    pub(crate) Decision = "plan", align 4, size 4276, with "": {
        /// 4 or 8: packed counters of one width in ranges of bins; 0: bin groups of their own widths.
        0 pub bits: u32 = "u32",
        /// Of bin groups: blocks that share a tile.
        4 pub ranges: u32 = "u32",
        /// Whether increments of equal words are to be merged.
        8 pub merging: u32 = "u32",
        /// One more than there are ranges: where the next would begin.
        12 pub first_group: [u32; MOST_RANGES as usize + 1] = "u32"["most_ranges + 1"],
        96 pub first_block: [u32; MOST_RANGES as usize + 1] = "u32"["most_ranges + 1"],
        /// Where a group's counters begin in its range, in bytes, a multiple of 128, plus the logarithm of their bits.
        180 pub group: [u32; MOST_GROUPS as usize] = "u32"["most_groups"],
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_copy_of_the_header_is_what_is_made() {
        let folder = env!("CARGO_MANIFEST_DIR");
        crosswarp_cuda::internal::assert_copy(
            folder,
            "kernels/histogram/arguments.cuh",
            super::HEADER,
        );
    }
}
