// What the kernels of multigrid are launched with.
// Made from src/gpu/level_arguments.rs, which is to be changed instead.
#pragma once
#include "base.cuh"

namespace crosswarp {

// Threads of a block of a pass.
constexpr int level_pass_threads = 128;
// Threads of a block of a pass by tiles,
constexpr int level_tile_threads = 256;
// columns of a tile,
constexpr int level_tile_wide = 64;
// and rows of a thread.
constexpr int level_tile_rows = 8;
// Own columns of a tile of the finest level,
constexpr int finest_tile_columns = 52;
// and rows.
constexpr int finest_tile_rows = 48;
// Threads of a block that has a tile of the same size with a mask,
constexpr int mask_tile_threads = 512;
// and its shared memory in bytes;
constexpr int mask_tile_shared = 34848;
// of one with couplings that differ,
constexpr int varying_tile_threads = 1024;
// and that.
constexpr int varying_tile_shared = 68128;
// Threads of a block that has a tile of a coarse level whose points differ,
constexpr int varied_coarse_threads = 1024;
// and rows of the tile.
constexpr int varied_coarse_rows = 64;
// Threads of a block of other kernels.
constexpr int level_threads = 256;
// Rows of a block that restricts a right side.
constexpr int restricted_rows = 32;
// Threads of a block where each has a column of some rows: few, so that few lie beyond the last column.
constexpr int column_threads = 64;
// Threads of a block that makes a level of the finer one,
constexpr int galerkin_threads = 128;
// and its columns: each thread has a point.
constexpr int galerkin_columns = 32;
// Threads of a block of an exchange,
constexpr int level_exchange_threads = 256;
// and most PEs that it sends to.
constexpr int most_edges = 7;
// Relaxations change all points,
constexpr int no_colour = -1;
// those with an even sum of column and row, in boxes and plane,
constexpr int red = 0;
// or those with an odd one.
constexpr int black = 1;
// Most relaxations of a launch.
constexpr int most_steps = 4;
// Threads of a block of the launch that has the small levels,
constexpr int small_threads = 512;
// most points of the first level that one block has,
constexpr int small_points = 1100;
// and shared memory of that block, in bytes: every architecture has it.
constexpr int small_shared = 63488;
// Most relaxations before or after a correction.
constexpr int most_relaxations = 3;
// Most points of the coarsest level.
constexpr int coarsest_points = 64;
// Copies of a sum's words, so that not all leaves add to the same ones.
constexpr int sum_copies = 32;
// What holds at an end of an axis: cells keep their value,
constexpr int end_fixed = 0;
// the field is the same on both sides of them,
constexpr int end_mirror = 1;
// they are neighbours of those at the other end,
constexpr int end_wrap = 2;
// or, on a coarse level, nothing is beyond them.
constexpr int end_open = 3;
// A pass begins with zero,
constexpr int start_zero = 0;
// with the field,
constexpr int start_field = 1;
// with the corrected field,
constexpr int start_corrected = 2;
// or with the correction alone.
constexpr int start_correction = 3;
// Summed are the right side,
constexpr int weighed_right_side = 0;
// its magnitudes,
constexpr int weighed_magnitudes = 1;
// or the field.
constexpr int weighed_field = 2;

// A pass over a level, or another kernel's work on it. `F`: the type of its field. Rows of fields have `pitch`
// elements; addresses are those of row 0, which need not be stored where a PE has some rows only. Rows of tables are reached by an index, from row −1 on, and have all parts one after the other, each with
// a column more on both sides.
template <class F> struct alignas(8) level_pass {
    // The field before; unused where a pass begins with zero or the correction alone.
    const F* before;
    // The field after, another array; null if nothing is relaxed or corrected.
    F* after;
    // Null: zero.
    const F* right_side;
    // Cells that keep their value: byte not 0; null if none.
    const u8* fixed;
    // Couplings and excess; null where all couplings are 1.
    const u32* operator_index;
    const F* operator_rows;
    // 1 / the diagonal.
    const u32* inverse_index;
    const F* inverse_rows;
    // The next level's field.
    const float* correction;
    // Weights between the levels, by rows of the next.
    const u32* transfer_index;
    const float* transfer_rows;
    // The next level's right side; null if the residual is not wanted.
    float* coarse_right_side;
    // Gets sums of squares of the residual over the rows of each leaf, by columns.
    double* sums;
    i64 pitch;
    i64 coarse_pitch;
    i64 sum_pitch;
    // What corrections and residuals are multiplied by.
    double up_scale;
    double down_scale;
    // ω of each step; over the diagonal where all couplings are 1.
    double omega[most_steps];
    i32 nx;
    i32 ny;
    i32 coarse_nx;
    i32 coarse_ny;
    // Left, right, top, bottom.
    i32 ends[4];
    i32 start;
    // The step before which the residual is measured; −1: it is not.
    i32 measured;
    // Rows of a block; of the finest level a multiple of 16.
    i32 rows;
    // Row 0's number in the leaves.
    i32 first;
    // For the coarsest level: its factor, by rows, and whether points have an equation.
    const double* factor;
    const u8* active;
    // `sum_copies` sums; then where the host finds the sum of them.
    u64* words;
    u64* total;
    // Rows of leaves that this PE has.
    i32 leaf_bands;
    // Rows of which all couplings and weights are the same.
    i32 calm_start;
    i32 calm_end;
    // The rows that this PE computes; arrays have these and some more.
    i32 row_start;
    i32 row_end;
    // The row of leaves that the first of them is in.
    i32 first_band;
    // From sums of one kind to those of the next.
    i64 sum_kind;
    // Not 0: the field is +0 but in the first and last rows; then most blocks do not read it.
    i32 is_zero;
    // The colour that the first relaxation changes; colours take turns. Without relaxations: that the next one would.
    i32 colour;
    // On a coarse level, where all points are alike: the coupling across and to corners, that along and to two corners, 1 /
    // the diagonal.
    float same_couplings[4];
    // These columns and rows, from one to before another; none where both are 0.
    i32 same_columns[2];
    i32 same_rows[2];
};
static_assert(sizeof(level_pass<float>) == 328, "size of level_pass");
static_assert(CROSSWARP_OFFSET(level_pass<float>, before) == 0, "level_pass::before");
static_assert(CROSSWARP_OFFSET(level_pass<float>, after) == 8, "level_pass::after");
static_assert(CROSSWARP_OFFSET(level_pass<float>, right_side) == 16, "level_pass::right_side");
static_assert(CROSSWARP_OFFSET(level_pass<float>, fixed) == 24, "level_pass::fixed");
static_assert(CROSSWARP_OFFSET(level_pass<float>, operator_index) == 32, "level_pass::operator_index");
static_assert(CROSSWARP_OFFSET(level_pass<float>, operator_rows) == 40, "level_pass::operator_rows");
static_assert(CROSSWARP_OFFSET(level_pass<float>, inverse_index) == 48, "level_pass::inverse_index");
static_assert(CROSSWARP_OFFSET(level_pass<float>, inverse_rows) == 56, "level_pass::inverse_rows");
static_assert(CROSSWARP_OFFSET(level_pass<float>, correction) == 64, "level_pass::correction");
static_assert(CROSSWARP_OFFSET(level_pass<float>, transfer_index) == 72, "level_pass::transfer_index");
static_assert(CROSSWARP_OFFSET(level_pass<float>, transfer_rows) == 80, "level_pass::transfer_rows");
static_assert(CROSSWARP_OFFSET(level_pass<float>, coarse_right_side) == 88, "level_pass::coarse_right_side");
static_assert(CROSSWARP_OFFSET(level_pass<float>, sums) == 96, "level_pass::sums");
static_assert(CROSSWARP_OFFSET(level_pass<float>, pitch) == 104, "level_pass::pitch");
static_assert(CROSSWARP_OFFSET(level_pass<float>, coarse_pitch) == 112, "level_pass::coarse_pitch");
static_assert(CROSSWARP_OFFSET(level_pass<float>, sum_pitch) == 120, "level_pass::sum_pitch");
static_assert(CROSSWARP_OFFSET(level_pass<float>, up_scale) == 128, "level_pass::up_scale");
static_assert(CROSSWARP_OFFSET(level_pass<float>, down_scale) == 136, "level_pass::down_scale");
static_assert(CROSSWARP_OFFSET(level_pass<float>, omega) == 144, "level_pass::omega");
static_assert(CROSSWARP_OFFSET(level_pass<float>, nx) == 176, "level_pass::nx");
static_assert(CROSSWARP_OFFSET(level_pass<float>, ny) == 180, "level_pass::ny");
static_assert(CROSSWARP_OFFSET(level_pass<float>, coarse_nx) == 184, "level_pass::coarse_nx");
static_assert(CROSSWARP_OFFSET(level_pass<float>, coarse_ny) == 188, "level_pass::coarse_ny");
static_assert(CROSSWARP_OFFSET(level_pass<float>, ends) == 192, "level_pass::ends");
static_assert(CROSSWARP_OFFSET(level_pass<float>, start) == 208, "level_pass::start");
static_assert(CROSSWARP_OFFSET(level_pass<float>, measured) == 212, "level_pass::measured");
static_assert(CROSSWARP_OFFSET(level_pass<float>, rows) == 216, "level_pass::rows");
static_assert(CROSSWARP_OFFSET(level_pass<float>, first) == 220, "level_pass::first");
static_assert(CROSSWARP_OFFSET(level_pass<float>, factor) == 224, "level_pass::factor");
static_assert(CROSSWARP_OFFSET(level_pass<float>, active) == 232, "level_pass::active");
static_assert(CROSSWARP_OFFSET(level_pass<float>, words) == 240, "level_pass::words");
static_assert(CROSSWARP_OFFSET(level_pass<float>, total) == 248, "level_pass::total");
static_assert(CROSSWARP_OFFSET(level_pass<float>, leaf_bands) == 256, "level_pass::leaf_bands");
static_assert(CROSSWARP_OFFSET(level_pass<float>, calm_start) == 260, "level_pass::calm_start");
static_assert(CROSSWARP_OFFSET(level_pass<float>, calm_end) == 264, "level_pass::calm_end");
static_assert(CROSSWARP_OFFSET(level_pass<float>, row_start) == 268, "level_pass::row_start");
static_assert(CROSSWARP_OFFSET(level_pass<float>, row_end) == 272, "level_pass::row_end");
static_assert(CROSSWARP_OFFSET(level_pass<float>, first_band) == 276, "level_pass::first_band");
static_assert(CROSSWARP_OFFSET(level_pass<float>, sum_kind) == 280, "level_pass::sum_kind");
static_assert(CROSSWARP_OFFSET(level_pass<float>, is_zero) == 288, "level_pass::is_zero");
static_assert(CROSSWARP_OFFSET(level_pass<float>, colour) == 292, "level_pass::colour");
static_assert(CROSSWARP_OFFSET(level_pass<float>, same_couplings) == 296, "level_pass::same_couplings");
static_assert(CROSSWARP_OFFSET(level_pass<float>, same_columns) == 312, "level_pass::same_columns");
static_assert(CROSSWARP_OFFSET(level_pass<float>, same_rows) == 320, "level_pass::same_rows");

// Arrays of the caller's, of all points of a grid, and the finest level of a plane. `F`: the type of their elements.
template <class F> struct alignas(8) level_arrays {
    // Null: there is none.
    const F* source;
    // Null: zero.
    const F* initial;
    F* field;
    // Values of the sides left, right, top, bottom by the grid's rows or columns; null where they are not given.
    const F* sides[4];
    // What crosses these sides by the level's rows or columns; null where nothing can.
    const double* flows[4];
    // The level's field.
    double* u;
    // Null: zero.
    double* right_side;
    // As in `level_pass`.
    const u8* fixed;
    i64 pitch;
    // Of a cell.
    double area;
    // What the operator is multiplied by, where it differs from point to point.
    double operator_scale;
    // What the problem is multiplied by, or when it is written what the field is.
    double scale;
    // What is taken away.
    double surplus;
    // Gets the largest magnitude, by its bits, and whether a value between the first and the last row is not +0; where the
    // field is written, ones if a value has no room.
    u64* words;
    // Of the level,
    i32 nx;
    i32 ny;
    // whose first column and row have these numbers in the grid.
    i32 first[2];
    i32 grid_nx;
    i32 grid_ny;
    // As in `level_pass`.
    i32 ends[4];
    // Not 0: the operator differs from point to point.
    i32 varies;
    // What is summed.
    i32 weighed;
};
static_assert(sizeof(level_arrays<float>) == 208, "size of level_arrays");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, source) == 0, "level_arrays::source");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, initial) == 8, "level_arrays::initial");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, field) == 16, "level_arrays::field");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, sides) == 24, "level_arrays::sides");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, flows) == 56, "level_arrays::flows");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, u) == 88, "level_arrays::u");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, right_side) == 96, "level_arrays::right_side");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, fixed) == 104, "level_arrays::fixed");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, pitch) == 112, "level_arrays::pitch");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, area) == 120, "level_arrays::area");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, operator_scale) == 128, "level_arrays::operator_scale");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, scale) == 136, "level_arrays::scale");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, surplus) == 144, "level_arrays::surplus");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, words) == 152, "level_arrays::words");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, nx) == 160, "level_arrays::nx");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, ny) == 164, "level_arrays::ny");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, first) == 168, "level_arrays::first");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, grid_nx) == 176, "level_arrays::grid_nx");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, grid_ny) == 180, "level_arrays::grid_ny");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, ends) == 184, "level_arrays::ends");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, varies) == 200, "level_arrays::varies");
static_assert(CROSSWARP_OFFSET(level_arrays<float>, weighed) == 204, "level_arrays::weighed");

// An array with voids, and what is made of it: `nx` columns and `ny` rows one after the other. `F`: the type of its elements.
template <class F> struct alignas(8) array_with_voids {
    const F* values;
    // Byte not 0: known; null: what is not NaN is.
    const u8* known;
    // Gets a value for each cell, known ones as they are.
    F* guess;
    // Gets 1 for each known cell, else 0, by rows of `pitch` elements,
    u8* kept;
    // and for each row whether one of its cells is known.
    u8* rows;
    // By rows without a known cell: the nearest rows before and behind that have one, or −1.
    const i32* nearest;
    // To the first the number of known cells is added; the second becomes not 0 if the value of one is not finite.
    u64* words;
    // Cells of this value are not known; NaN: none.
    double nodata;
    i64 pitch;
    i32 nx;
    i32 ny;
};
static_assert(sizeof(array_with_voids<float>) == 80, "size of array_with_voids");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, values) == 0, "array_with_voids::values");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, known) == 8, "array_with_voids::known");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, guess) == 16, "array_with_voids::guess");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, kept) == 24, "array_with_voids::kept");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, rows) == 32, "array_with_voids::rows");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, nearest) == 40, "array_with_voids::nearest");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, words) == 48, "array_with_voids::words");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, nodata) == 56, "array_with_voids::nodata");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, pitch) == 64, "array_with_voids::pitch");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, nx) == 72, "array_with_voids::nx");
static_assert(CROSSWARP_OFFSET(array_with_voids<float>, ny) == 76, "array_with_voids::ny");

// What an operator of a plane is made of, and where. `F`: the type of arrays of all points of a grid.
template <class F> struct alignas(8) operator_arrays {
    // Byte not 0: the cell keeps its value.
    const u8* fixed;
    // Null: 1.
    const F* coefficient;
    // Null: 0.
    const F* reaction;
    // Of a mixed side a/b by the level's rows or columns: left, right, top, bottom; else null.
    const double* mixed[4];
    // Where the coefficient along these sides goes, by the same; null: nowhere.
    double* kappas[4];
    // The level's: as in `level_pass`, by rows of `pitch` elements.
    u8* mask;
    // Rows of the couplings' table and of 1 / the diagonal, from one of zeros on.
    double* parts;
    double* inverse;
    // Gets a count, or the largest coefficient by its bits and whether something ties the field to a value.
    u64* words;
    i64 pitch;
    // Of columns and of rows.
    double spacings[2];
    // What couplings are multiplied by: a power of two.
    double scale;
    // Of the level,
    i32 nx;
    i32 ny;
    // whose first column and row have these numbers in the grid.
    i32 first[2];
    i32 grid_nx;
    i32 grid_ny;
    // As in `level_pass`.
    i32 ends[4];
};
static_assert(sizeof(operator_arrays<float>) == 192, "size of operator_arrays");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, fixed) == 0, "operator_arrays::fixed");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, coefficient) == 8, "operator_arrays::coefficient");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, reaction) == 16, "operator_arrays::reaction");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, mixed) == 24, "operator_arrays::mixed");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, kappas) == 56, "operator_arrays::kappas");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, mask) == 88, "operator_arrays::mask");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, parts) == 96, "operator_arrays::parts");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, inverse) == 104, "operator_arrays::inverse");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, words) == 112, "operator_arrays::words");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, pitch) == 120, "operator_arrays::pitch");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, spacings) == 128, "operator_arrays::spacings");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, scale) == 144, "operator_arrays::scale");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, nx) == 152, "operator_arrays::nx");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, ny) == 156, "operator_arrays::ny");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, first) == 160, "operator_arrays::first");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, grid_nx) == 168, "operator_arrays::grid_nx");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, grid_ny) == 172, "operator_arrays::grid_ny");
static_assert(CROSSWARP_OFFSET(operator_arrays<float>, ends) == 176, "operator_arrays::ends");

// A step on the finest level beside passes. What fields and weights are is said of each step in `finest_steps.cuh`.
struct alignas(8) finest_step {
    double* u;
    double* r;
    double* p;
    double* q;
    double weights[2];
    // From sums of one kind to those of the next.
    i64 sum_kind;
};
static_assert(sizeof(finest_step) == 56, "size of finest_step");
static_assert(CROSSWARP_OFFSET(finest_step, u) == 0, "finest_step::u");
static_assert(CROSSWARP_OFFSET(finest_step, r) == 8, "finest_step::r");
static_assert(CROSSWARP_OFFSET(finest_step, p) == 16, "finest_step::p");
static_assert(CROSSWARP_OFFSET(finest_step, q) == 24, "finest_step::q");
static_assert(CROSSWARP_OFFSET(finest_step, weights) == 32, "finest_step::weights");
static_assert(CROSSWARP_OFFSET(finest_step, sum_kind) == 48, "finest_step::sum_kind");

// The relaxations of a cycle: ω of each.
struct alignas(8) relaxations {
    double pre[most_relaxations];
    double post[most_relaxations];
    i32 pre_count;
    i32 post_count;
};
static_assert(sizeof(relaxations) == 56, "size of relaxations");
static_assert(CROSSWARP_OFFSET(relaxations, pre) == 0, "relaxations::pre");
static_assert(CROSSWARP_OFFSET(relaxations, post) == 24, "relaxations::post");
static_assert(CROSSWARP_OFFSET(relaxations, pre_count) == 48, "relaxations::pre_count");
static_assert(CROSSWARP_OFFSET(relaxations, post_count) == 52, "relaxations::post_count");

// Rows that travel between two PEs.
struct alignas(8) level_edge {
    // The other PE.
    i32 pe;
    // Which signal says that they have come.
    i32 signal;
    // A multiple of 16, as both addresses are.
    i64 bytes;
    // Where they are, or will be, in this PE's memory.
    u64 rows;
    // Symmetric: where they are put.
    u64 buffer;
};
static_assert(sizeof(level_edge) == 32, "size of level_edge");
static_assert(CROSSWARP_OFFSET(level_edge, pe) == 0, "level_edge::pe");
static_assert(CROSSWARP_OFFSET(level_edge, signal) == 4, "level_edge::signal");
static_assert(CROSSWARP_OFFSET(level_edge, bytes) == 8, "level_edge::bytes");
static_assert(CROSSWARP_OFFSET(level_edge, rows) == 16, "level_edge::rows");
static_assert(CROSSWARP_OFFSET(level_edge, buffer) == 24, "level_edge::buffer");

// An exchange of rows.
struct alignas(8) level_exchange_of {
    // Symmetric: blocks that have sent, added up over all exchanges of a kind.
    u64* signals;
    // What a signal is when all of this exchange have sent.
    u64 sent;
    i32 sends;
    i32 receives;
    level_edge send[most_edges];
    level_edge receive[most_edges];
};
static_assert(sizeof(level_exchange_of) == 472, "size of level_exchange_of");
static_assert(CROSSWARP_OFFSET(level_exchange_of, signals) == 0, "level_exchange_of::signals");
static_assert(CROSSWARP_OFFSET(level_exchange_of, sent) == 8, "level_exchange_of::sent");
static_assert(CROSSWARP_OFFSET(level_exchange_of, sends) == 16, "level_exchange_of::sends");
static_assert(CROSSWARP_OFFSET(level_exchange_of, receives) == 20, "level_exchange_of::receives");
static_assert(CROSSWARP_OFFSET(level_exchange_of, send) == 24, "level_exchange_of::send");
static_assert(CROSSWARP_OFFSET(level_exchange_of, receive) == 248, "level_exchange_of::receive");

}  // namespace crosswarp
