// What the kernels of histograms are launched with, beside the rule.
// Made from src/histogram/cuda/arguments.rs, which is to be changed instead.
#pragma once
#include "base.cuh"

namespace crosswarp::histogram {

// Threads of a block of all but the `rows` kernels.
constexpr int threads = 1024;
// Most bin groups, one per thread.
constexpr u32 most_groups = 1024;
// Most blocks that share a tile: with more, increments in device memory are as fast (one H200, 4194304 bins,
// 19 blocks: 89 · 10⁹ even samples/s, 85 in device memory).
constexpr u32 most_ranges = 20;
// Slots of the table of hot bins, one per thread.
constexpr u32 slots = 1024;
// The logarithm of the cells, of 32 bits, in which a plan counts pairs of samples.
constexpr u32 cell_bits = 15;

// How many blocks share a tile, and how many bins each of them counts.
struct alignas(4) ranges {
    u32 count;
    u32 span;
};
static_assert(sizeof(ranges) == 8, "size of ranges");
static_assert(CROSSWARP_OFFSET(ranges, count) == 0, "ranges::count");
static_assert(CROSSWARP_OFFSET(ranges, span) == 4, "ranges::span");

// Bin groups, whose counters have the same width.
struct alignas(4) grouping {
    // The logarithm of the bins of a group.
    u32 group_bits;
    // Bytes of shared memory for their counters, a multiple of 128.
    u32 room;
};
static_assert(sizeof(grouping) == 8, "size of grouping");
static_assert(CROSSWARP_OFFSET(grouping, group_bits) == 0, "grouping::group_bits");
static_assert(CROSSWARP_OFFSET(grouping, room) == 4, "grouping::room");

// A slot for each thread, lent to one bin, and what has been counted there.
struct alignas(4) hot_table {
    u32 bin[slots];
    u32 count[slots];
};
static_assert(sizeof(hot_table) == 8192, "size of hot_table");
static_assert(CROSSWARP_OFFSET(hot_table, bin) == 0, "hot_table::bin");
static_assert(CROSSWARP_OFFSET(hot_table, count) == 4096, "hot_table::count");

// What is decided.
struct alignas(4) plan {
    // 4 or 8: packed counters of one width in ranges of bins; 0: bin groups of their own widths.
    u32 bits;
    // Of bin groups: blocks that share a tile.
    u32 ranges;
    // Whether increments of equal words are to be merged.
    u32 merging;
    // One more than there are ranges: where the next would begin.
    u32 first_group[most_ranges + 1];
    u32 first_block[most_ranges + 1];
    // Where a group's counters begin in its range, in bytes, a multiple of 128, plus the logarithm of their bits.
    u32 group[most_groups];
};
static_assert(sizeof(plan) == 4276, "size of plan");
static_assert(CROSSWARP_OFFSET(plan, bits) == 0, "plan::bits");
static_assert(CROSSWARP_OFFSET(plan, ranges) == 4, "plan::ranges");
static_assert(CROSSWARP_OFFSET(plan, merging) == 8, "plan::merging");
static_assert(CROSSWARP_OFFSET(plan, first_group) == 12, "plan::first_group");
static_assert(CROSSWARP_OFFSET(plan, first_block) == 96, "plan::first_block");
static_assert(CROSSWARP_OFFSET(plan, group) == 180, "plan::group");

}  // namespace crosswarp::histogram
