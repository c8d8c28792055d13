// Reductions of the columns of matrices, as they lie: memory is read once, 32 neighbouring columns by a warp. Leaves are
// counted from a column's top, so it gives the bits of a reduction of its own.
//
// Two kernels. `column_parts`: a block takes 32 columns and a part of 2048 rows, one leaf; its eight warps have the rows w,
// w + 8, w + 16, … of it, a thread those of one column, and the first warp puts the eight together. A column of one part is
// done then. `column_totals`: a warp for each column adds up its parts.
//
// BODY, a class, says what is made of a column:
//     part                          what is known of a part of a column, in memory
//     BODY::walk(x, y, step, w, count, first)   a thread takes in rows w, w + 8, … of the `count` rows at x and y, which
//                                   are `step` elements apart; the first of them is row `first` of the column
//     BODY::join(of_warp)           the part, from what the eight warps have
//     BODY::finish(a, s, x, y, there, found)    a warp writes the results of columns of one part, one in each lane that
//                                   is `there`
//     BODY::total(a, s, x, y)       a warp makes the result of a column of several parts, in lane 0
#pragma once
#include "reduce/arguments.cuh"
#include "reduce/result.cuh"
#include "reduce/warp_leaf.cuh"

namespace crosswarp {

constexpr int column_warps = 8, columns_at_once = 32;
constexpr int part_rows = leaf_elements;

__device__ inline u64 parts_of(const column_arguments& a) { return (a.all.n + part_rows - 1) / part_rows; }

// The first element of the column of result `s`.
__device__ inline u64 column_at(const column_arguments& a, u64 s) {
    const u64 matrix = s / a.columns;
    return matrix * a.columns * a.all.n + (s - matrix * a.columns);
}

// Writes a result: the low bytes of `bits`.
__device__ inline void put_result(const column_arguments& a, u64 s, u64 bits) {
    void* out = reinterpret_cast<char*>(a.all.out) + s * a.result_bytes;
    if (a.result_bytes == 8) *static_cast<u64*>(out) = bits;
    if (a.result_bytes == 4) *static_cast<u32*>(out) = u32(bits);
    if (a.result_bytes == 2) *static_cast<u16*>(out) = u16(bits);
    if (a.result_bytes == 1) *static_cast<u8*>(out) = u8(bits);
}

// Gives rows w, w + 8, …, of `count` rows to `use(k, x, y, row)`: k is the place of the row among 16 that are loaded
// together, so that they are under way at the same time.
template <bool two, class S, class Use>
__device__ inline void walk_column(const S* x, const S* y, u64 step, int w, int count, Use use) {
    constexpr int flight = leaf_lanes / column_warps;
    static_assert(flight == 16, "a thread has 16 leaf lanes");
    x += w * step, y += w * step;
    const u64 apart = column_warps * step;
#pragma unroll 1
    for (int row = w; row < count; row += leaf_lanes, x += leaf_lanes * step, y += leaf_lanes * step) {
        S p[flight], q[flight];
#pragma unroll
        for (int k = 0; k < flight; ++k) {
            if (row + column_warps * k < count) {
                p[k] = __ldg(x + k * apart);
                if (two) q[k] = __ldg(y + k * apart);
            }
        }
#pragma unroll
        for (int k = 0; k < flight; ++k) {
            if (row + column_warps * k < count) use(k, p[k], two ? q[k] : p[k], row + column_warps * k);
        }
    }
}

template <class Body> __device__ void column_parts(const column_arguments& a) {
    using S = typename Body::storage;
    using parts = typename Body::part[column_warps][columns_at_once];
    // Bytes, so that nothing is constructed.
    __shared__ __align__(16) unsigned char bytes[sizeof(parts)];
    parts& of_warp = *reinterpret_cast<parts*>(bytes);
    start_early();
    const int w = threadIdx.x / 32, lane = warp::lane();
    const u64 groups = (a.results + columns_at_once - 1) / columns_at_once;
    // Neighbouring blocks have neighbouring columns of the same rows.
    const u64 part = blockIdx.x / groups, s = (blockIdx.x - part * groups) * columns_at_once + lane;
    const u64 first = part * part_rows;
    const int count = int(min(u64(part_rows), a.all.n - first));
    const bool there = s < a.results;
    const u64 at = column_at(a, there ? s : 0) + first * a.columns;
    const S *x = static_cast<const S*>(a.all.x) + at, *y = static_cast<const S*>(a.all.y) + at;
    of_warp[w][lane] = Body::walk(x, y, a.columns, w, there ? count : 0, first);
    __syncthreads();
    if (w) return;
    const auto found = Body::join(of_warp);
    if (a.all.n <= part_rows) {
        Body::finish(a, s, x, y, there, found);
    } else if (there) {
        static_cast<typename Body::part*>(a.parts)[part * a.results + s] = found;
    }
}

template <class Body> __device__ void column_totals(const column_arguments& a) {
    using S = typename Body::storage;
    start_early();
    const u64 s = u64(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (s >= a.results) return;
    const u64 at = column_at(a, s);
    const S *x = static_cast<const S*>(a.all.x) + at, *y = static_cast<const S*>(a.all.y) + at;
    const u64 bits = Body::total(a, s, x, y);
    if (warp::lane() == 0) put_result(a, s, bits);
}

// Part `part` of the column of result `s`.
template <class Part> __device__ inline Part part_of(const column_arguments& a, u64 part, u64 s) {
    return static_cast<const Part*>(a.parts)[part * a.results + s];
}

}  // namespace crosswarp

#define COLUMN_KERNELS(BODY, blocks)                                                                     \
    extern "C" __global__ void __launch_bounds__(cw::reduce_threads, blocks) column_parts(cw::column_arguments a) { \
        cw::column_parts<BODY>(a);                                                                       \
    }                                                                                                    \
    extern "C" __global__ void __launch_bounds__(cw::reduce_threads) column_totals(cw::column_arguments a) { \
        cw::column_totals<BODY>(a);                                                                      \
    }
