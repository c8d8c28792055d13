// What the kernels of transpositions are launched with.
// Made from src/transpose/cuda/arguments.rs, which is to be changed instead.
#pragma once
#include "base.cuh"

namespace crosswarp {

// The matrices; strides in bytes. Kernels of whole tiles take the first `whole_rows` × `whole_columns` elements of
// each, those of any tiles the rest.
struct alignas(8) matrices {
    const char* input;
    char* output;
    // From the first element to the end of the last.
    u64 in_bytes;
    u64 in_stride;
    u64 out_stride;
    u64 in_batch;
    u64 out_batch;
    u64 rows;
    u64 columns;
    u64 whole_rows;
    u64 whole_columns;
};
static_assert(sizeof(matrices) == 88, "size of matrices");
static_assert(CROSSWARP_OFFSET(matrices, input) == 0, "matrices::input");
static_assert(CROSSWARP_OFFSET(matrices, output) == 8, "matrices::output");
static_assert(CROSSWARP_OFFSET(matrices, in_bytes) == 16, "matrices::in_bytes");
static_assert(CROSSWARP_OFFSET(matrices, in_stride) == 24, "matrices::in_stride");
static_assert(CROSSWARP_OFFSET(matrices, out_stride) == 32, "matrices::out_stride");
static_assert(CROSSWARP_OFFSET(matrices, in_batch) == 40, "matrices::in_batch");
static_assert(CROSSWARP_OFFSET(matrices, out_batch) == 48, "matrices::out_batch");
static_assert(CROSSWARP_OFFSET(matrices, rows) == 56, "matrices::rows");
static_assert(CROSSWARP_OFFSET(matrices, columns) == 64, "matrices::columns");
static_assert(CROSSWARP_OFFSET(matrices, whole_rows) == 72, "matrices::whole_rows");
static_assert(CROSSWARP_OFFSET(matrices, whole_columns) == 80, "matrices::whole_columns");

// Square matrices in place; kernels of any tiles leave out the first `whole` × `whole` elements of each.
struct alignas(8) squares {
    char* data;
    u64 bytes;
    u64 stride;
    u64 batch;
    u64 side;
    u64 whole;
};
static_assert(sizeof(squares) == 48, "size of squares");
static_assert(CROSSWARP_OFFSET(squares, data) == 0, "squares::data");
static_assert(CROSSWARP_OFFSET(squares, bytes) == 8, "squares::bytes");
static_assert(CROSSWARP_OFFSET(squares, stride) == 16, "squares::stride");
static_assert(CROSSWARP_OFFSET(squares, batch) == 24, "squares::batch");
static_assert(CROSSWARP_OFFSET(squares, side) == 32, "squares::side");
static_assert(CROSSWARP_OFFSET(squares, whole) == 40, "squares::whole");

// This PE's rows, and where the output lies in its own heap; strides in bytes.
struct alignas(8) part {
    const char* input;
    char* output;
    u64 in_bytes;
    u64 in_stride;
    u64 rows;
    u64 first_row;
    u64 all_rows;
    u64 columns;
};
static_assert(sizeof(part) == 64, "size of part");
static_assert(CROSSWARP_OFFSET(part, input) == 0, "part::input");
static_assert(CROSSWARP_OFFSET(part, output) == 8, "part::output");
static_assert(CROSSWARP_OFFSET(part, in_bytes) == 16, "part::in_bytes");
static_assert(CROSSWARP_OFFSET(part, in_stride) == 24, "part::in_stride");
static_assert(CROSSWARP_OFFSET(part, rows) == 32, "part::rows");
static_assert(CROSSWARP_OFFSET(part, first_row) == 40, "part::first_row");
static_assert(CROSSWARP_OFFSET(part, all_rows) == 48, "part::all_rows");
static_assert(CROSSWARP_OFFSET(part, columns) == 56, "part::columns");

}  // namespace crosswarp
