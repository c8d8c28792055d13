// What the kernels of reductions are launched with.
// Made from src/reduce/cuda/arguments.rs, which is to be changed instead.
#pragma once
#include "base.cuh"

namespace crosswarp {

// What a kernel writes.
enum finish_kind : u64 {
    // What parts of an array are combined from.
    finish_words = 0,
    // The result itself: bits, zero-extended; for sums:
    finish_value = 1,
    // the sum divided by the number of elements,
    finish_mean = 2,
    // the square root of the sum.
    finish_norm = 3,
    // For extrema: where it is.
    finish_index = 4,
};

// Most threads of a block: the kernels are compiled for them.
constexpr int reduce_threads = 256;
// The same where every thread has an accumulator of `f64`.
constexpr int exact_f64_threads = 64;
// Loads of 16 bytes that a thread has under way where it walks through one input.
constexpr int walk_loads = 8;
// Most blocks, or warps, that combine what they have: a word counts fewer than 2^11 additions.
constexpr int most_combined_blocks = 2047;
// Words of the state before those of blocks, of which each has two.
constexpr int block_slots = 128;
// Of segments: words of the state before those of warps,
constexpr int segment_slots = 128;
// and words of each warp.
constexpr int segment_slot = 128;

// What every reduction is launched with.
struct alignas(8) reduce_arguments {
    // First input.
    const void* x;
    // Second input, if the reduction has two.
    const void* y;
    // Elements of each input, at most.
    u64 n;
    // If not null, how many there are; read when the kernel runs.
    const u64* count;
    // The workspace: zero, and zero again after the launch.
    u64* state;
    // The result.
    u64* out;
    // What the result is, a `finish_kind`.
    u64 finish;
    // Bytes of its first part that each warp brings to the second-level cache early.
    u64 ahead;
    // Bytes of a result that is no `finish_words`: 1, 2, 4 or 8, the low ones of its bits.
    u64 result_bytes;
};
static_assert(sizeof(reduce_arguments) == 72, "size of reduce_arguments");
static_assert(CROSSWARP_OFFSET(reduce_arguments, x) == 0, "reduce_arguments::x");
static_assert(CROSSWARP_OFFSET(reduce_arguments, y) == 8, "reduce_arguments::y");
static_assert(CROSSWARP_OFFSET(reduce_arguments, n) == 16, "reduce_arguments::n");
static_assert(CROSSWARP_OFFSET(reduce_arguments, count) == 24, "reduce_arguments::count");
static_assert(CROSSWARP_OFFSET(reduce_arguments, state) == 32, "reduce_arguments::state");
static_assert(CROSSWARP_OFFSET(reduce_arguments, out) == 40, "reduce_arguments::out");
static_assert(CROSSWARP_OFFSET(reduce_arguments, finish) == 48, "reduce_arguments::finish");
static_assert(CROSSWARP_OFFSET(reduce_arguments, ahead) == 56, "reduce_arguments::ahead");
static_assert(CROSSWARP_OFFSET(reduce_arguments, result_bytes) == 64, "reduce_arguments::result_bytes");

// A segment that several warps share, in the queue.
struct alignas(8) long_segment {
    u64 segment;
    // Its elements.
    u64 begin;
    u64 length;
    // Leaves of the segments before it in the queue.
    u64 leaves_before;
};
static_assert(sizeof(long_segment) == 32, "size of long_segment");
static_assert(CROSSWARP_OFFSET(long_segment, segment) == 0, "long_segment::segment");
static_assert(CROSSWARP_OFFSET(long_segment, begin) == 8, "long_segment::begin");
static_assert(CROSSWARP_OFFSET(long_segment, length) == 16, "long_segment::length");
static_assert(CROSSWARP_OFFSET(long_segment, leaves_before) == 24, "long_segment::leaves_before");

// What reductions of segments are launched with.
struct alignas(8) segment_arguments {
    // `n`: elements of the array; `state`: zero, and zero again after the launches.
    reduce_arguments all;
    // Segment s is elements offsets[s] to offsets[s + 1]; or null:
    const u64* offsets;
    // it is elements columns * s to columns * (s + 1).
    u64 columns;
    u64 segments;
    // Segments that a warp takes at a time: 1 or 32.
    u64 together;
    // Segments of more leaves are long.
    u64 long_leaves;
    // The long ones, as `short_segments` finds them; or null: all are long, and alike.
    long_segment* queue;
    // For so many.
    u64 room;
};
static_assert(sizeof(segment_arguments) == 128, "size of segment_arguments");
static_assert(CROSSWARP_OFFSET(segment_arguments, all) == 0, "segment_arguments::all");
static_assert(CROSSWARP_OFFSET(segment_arguments, offsets) == 72, "segment_arguments::offsets");
static_assert(CROSSWARP_OFFSET(segment_arguments, columns) == 80, "segment_arguments::columns");
static_assert(CROSSWARP_OFFSET(segment_arguments, segments) == 88, "segment_arguments::segments");
static_assert(CROSSWARP_OFFSET(segment_arguments, together) == 96, "segment_arguments::together");
static_assert(CROSSWARP_OFFSET(segment_arguments, long_leaves) == 104, "segment_arguments::long_leaves");
static_assert(CROSSWARP_OFFSET(segment_arguments, queue) == 112, "segment_arguments::queue");
static_assert(CROSSWARP_OFFSET(segment_arguments, room) == 120, "segment_arguments::room");

// What reductions of columns are launched with.
struct alignas(8) column_arguments {
    // `n`: rows of a matrix, at least one. `state`: a counter for each tile of columns, if one launch does all; zero, and
    // zero again afterwards.
    reduce_arguments all;
    // Columns of a matrix.
    u64 columns;
    // Columns of all matrices.
    u64 results;
    // What becomes of parts of columns, if a column has several.
    void* parts;
    // Columns of a tile: of narrow matrices, all.
    u32 at_once;
    // Elements of a row that a thread loads at once: a power of two.
    u32 vector;
    // The same in the last block.
    u32 last_vector;
    // Rows of a tile, a power of two: of narrow matrices, 8 for each element of a vector.
    u32 ways;
    // Of narrow matrices: parts of all of them,
    u32 tiles;
    // and parts that a block takes; of others 0.
    u32 side;
    // Threads that add up the parts of a column: a power of two up to those of a warp, or all of a block.
    u32 lanes;
    // Of few rows: columns of which a thread has all, which it loads at once. Else 0.
    u32 few;
    // Rows of a part of a column: of sums of floating-point elements, those of a leaf.
    u64 part_rows;
};
static_assert(sizeof(column_arguments) == 136, "size of column_arguments");
static_assert(CROSSWARP_OFFSET(column_arguments, all) == 0, "column_arguments::all");
static_assert(CROSSWARP_OFFSET(column_arguments, columns) == 72, "column_arguments::columns");
static_assert(CROSSWARP_OFFSET(column_arguments, results) == 80, "column_arguments::results");
static_assert(CROSSWARP_OFFSET(column_arguments, parts) == 88, "column_arguments::parts");
static_assert(CROSSWARP_OFFSET(column_arguments, at_once) == 96, "column_arguments::at_once");
static_assert(CROSSWARP_OFFSET(column_arguments, vector) == 100, "column_arguments::vector");
static_assert(CROSSWARP_OFFSET(column_arguments, last_vector) == 104, "column_arguments::last_vector");
static_assert(CROSSWARP_OFFSET(column_arguments, ways) == 108, "column_arguments::ways");
static_assert(CROSSWARP_OFFSET(column_arguments, tiles) == 112, "column_arguments::tiles");
static_assert(CROSSWARP_OFFSET(column_arguments, side) == 116, "column_arguments::side");
static_assert(CROSSWARP_OFFSET(column_arguments, lanes) == 120, "column_arguments::lanes");
static_assert(CROSSWARP_OFFSET(column_arguments, few) == 124, "column_arguments::few");
static_assert(CROSSWARP_OFFSET(column_arguments, part_rows) == 128, "column_arguments::part_rows");

}  // namespace crosswarp
